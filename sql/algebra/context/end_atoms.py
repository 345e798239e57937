"""The conditions under which an event of a stream can move a pattern that ends partitions.

A filter of the pattern that an event does not pass leaves the pattern as it is. So a part of the filter that
reads the event alone is asked once for all partitions, and an equality of a column with a property of the
partition finds the partitions by hash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sql.algebra.context.by_property import Find, KeyOf
from sql.algebra.pattern.filter_conditions import conjuncts, joined, reads
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.plan.bound import Bound, Op, Read, Slot
from sql.plan.pattern_plan import OWN, FilterPlan, PatternPlan
from sql.record import Record


class AtomPlan(Record):
    """One filter of a pattern: `alone`, its part that reads the event alone, and the two sides of an equality
    between a column of the event and a property of the partition. Without either every partition is asked."""

    stream: str
    alone: Bound | None = None
    column: Bound | None = None
    value: Bound | None = None


def atoms_of(pattern: PatternPlan) -> tuple[AtomPlan, ...]:
    """The filters of a pattern that may end partitions."""
    return tuple(_atom(step) for step in pattern.root.walk() if isinstance(step, FilterPlan))


def _atom(step: FilterPlan) -> AtomPlan:
    parts = [] if step.condition is None else list(conjuncts(step.condition))
    alone = [part for part in parts if reads(part) <= {OWN} and not _slots(part)]
    column, value = next((pair for part in parts if (pair := _equality(part)) is not None), (None, None))
    return AtomPlan(step.stream, joined(alone), column, value)


def _equality(part: Bound) -> tuple[Bound, Bound] | None:
    """The column and the property that a part sets equal."""
    if not isinstance(part, Op) or part.name != "=":
        return None
    for column, value in (part.args, part.args[::-1]):
        own = isinstance(column, Read) and column.source == OWN and column.column is not None
        if own and _is_property(value):
            return column, value
    return None


def _is_property(value: Bound) -> bool:
    """True for a property of the partition, or a field of one: reading it cannot fail."""
    while isinstance(value, Op) and value.name == "field":
        value = value.args[0]
    return isinstance(value, Slot) and value.kind == "context"


def _slots(part: Bound) -> bool:
    return any(isinstance(node, Slot) for node in part.walk())


@dataclass(slots=True, frozen=True)
class Atom:
    """The functions of one filter: what is asked of a row once, and the two sides of the equality."""

    alone: Callable[[Any], bool] | None = None
    find: Find | None = None
    key: KeyOf | None = None

    def passes(self, row: object) -> bool:
        """True if a row passes what is asked once.
        What cannot be evaluated is left to the patterns to report."""
        if self.alone is None:
            return True
        try:
            return self.alone(row)
        except DATA_ERRORS:
            return True


def compiled(
    pattern: PatternPlan, of_rows: FunctionSet, of_partitions: FunctionSet
) -> dict[str, tuple[Atom, ...]]:
    """The filters of a pattern as functions, by stream."""
    found: dict[str, tuple[Atom, ...]] = {}
    for plan in atoms_of(pattern):
        find = None if plan.column is None else of_rows.find(plan.column)
        key = None if plan.value is None else of_partitions.wanted_key((plan.value,), (False,))
        atom = Atom(None if plan.alone is None else of_rows.true(plan.alone), find, key)
        found[plan.stream] = (*found.get(plan.stream, ()), atom)
    return found
