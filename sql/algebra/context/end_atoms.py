"""The conditions under which an event of a stream can move a pattern that ends partitions.

A filter of the pattern that an event does not pass leaves the pattern as it is. So a part of the filter that
reads the event alone is asked once for all partitions, and an equality of a column with a property of the
partition finds the partitions by hash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sql.algebra.context.by_property import Sides
from sql.algebra.pattern.filter_conditions import parts_in
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.plan.bound import Bound, Op, Slot, all_of, sources_read
from sql.plan.context_plan import Correlation
from sql.plan.correlation import equality_of
from sql.plan.pattern_plan import OWN, FilterPlan, PatternPlan
from sql.record import Record


class AtomPlan(Record):
    """One filter of a pattern: `alone`, its part that reads the event alone, and an equality between a column
    of the event and a property of the partition. Without either every partition is asked."""

    stream: str
    alone: Bound | None = None
    correlation: Correlation | None = None


def atoms_of(pattern: PatternPlan) -> tuple[AtomPlan, ...]:
    """The filters of a pattern that may end partitions."""
    return tuple(_atom(step) for step in pattern.root.walk() if isinstance(step, FilterPlan))


def _atom(step: FilterPlan) -> AtomPlan:
    parts = list(parts_in(step.condition))
    alone = [part for part in parts if sources_read(part) <= {OWN} and not _slots(part)]
    found = (equality_of(part) for part in parts)
    return AtomPlan(step.stream, all_of(alone), next((each for each in found if _is_sure(each)), None))


def _is_sure(found: Correlation | None) -> bool:
    """True for an equality of the event itself with a property of the partition, or a field of one: reading
    it cannot fail."""
    if found is None or sources_read(found.event) != {OWN}:
        return False
    value = found.partition
    while isinstance(value, Op) and value.name == "field":
        value = value.args[0]
    return isinstance(value, Slot)


def _slots(part: Bound) -> bool:
    return any(isinstance(node, Slot) for node in part.walk())


class Atom(NamedTuple):
    """The functions of one filter: what is asked of a row once, and the sides of the equality."""

    alone: Callable[[Any], bool] | None
    sides: Sides | None

    def passes(self, row: object) -> bool:
        """True if a row passes what is asked once.
        What cannot be evaluated is left to the patterns to report."""
        if self.alone is None:
            return True
        try:
            return self.alone(row)
        except DATA_ERRORS:
            return True


def compiled(pattern: PatternPlan, of_rows: FunctionSet, of_partitions: FunctionSet) -> dict[str, list[Atom]]:
    """The filters of a pattern as functions, by stream."""
    found: dict[str, list[Atom]] = {}
    for plan in atoms_of(pattern):
        sides = None if plan.correlation is None else Sides.of(plan.correlation, of_rows, of_partitions)
        alone = None if plan.alone is None else of_rows.true(plan.alone)
        found.setdefault(plan.stream, []).append(Atom(alone, sides))
    return found
