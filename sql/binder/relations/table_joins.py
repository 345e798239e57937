"""Outer joins with tables whose aggregate columns the statement reads.

Of a row that is not there such a column has no accumulator to read. The reference fails for an event without
a partner, so it posts nothing, unless the event's stream is unidirectional. Here the join leaves these rows
out, and an event without a partner stands beside NULL only where the statement reads plain columns of the
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sql.catalog.streams import Catalog
from sql.plan.bound import Read
from sql.plan.clauses import JoinPlan
from sql.plan.declared import TableDeclaration
from sql.plan.logical import Plan
from sql.plan.walk import bounds_of
from sql.record import replace

KINDS: Mapping[tuple[bool, bool], Literal["inner", "left", "right", "full"]] = {
    (False, False): "inner",
    (True, False): "left",
    (False, True): "right",
    (True, True): "full",
}
"""The kind of a join by whether rows of the left, and of the right, side are kept without a partner."""


def without_missing_aggregates(plan: Plan, catalog: Catalog) -> Plan:
    """The plan, with joins that show no row in which an aggregate column of a table is missing and read."""
    if not plan.joins or plan.drivers:
        return plan
    needed = {place for place in range(len(plan.sources)) if _reads_aggregates(plan, place, catalog)}
    if not needed:
        return plan
    joins = tuple(_joined(join, place, needed) for place, join in enumerate(plan.joins, start=1))
    return replace(plan, joins=joins)


def _joined(join: JoinPlan, place: int, needed: set[int]) -> JoinPlan:
    """The join of the source at `place`, where those of `needed` are never NULL."""
    keeps_left = join.keeps_left and place not in needed
    keeps_right = join.keeps_right and not any(before < place for before in needed)
    if (keeps_left, keeps_right) == (join.keeps_left, join.keeps_right):
        return join
    return replace(join, kind=KINDS[keeps_left, keeps_right])


def _reads_aggregates(plan: Plan, place: int, catalog: Catalog) -> bool:
    """True if the rows of the statement read an aggregate column of the table at this place of FROM."""
    relation = catalog.relations.get(plan.sources[place].stream)
    declaration = None if relation is None else relation.declaration
    if not isinstance(declaration, TableDeclaration) or not declaration.aggregates:
        return False
    read = bounds_of((plan.items, plan.where, plan.having, plan.order_by, plan.group_by, plan.aggregates))
    return any(
        isinstance(bound, Read) and bound.source == place and bound.column in declaration.aggregates
        for bound in read
    )
