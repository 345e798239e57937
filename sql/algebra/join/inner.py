"""Inner joins: the pairs of a change are found from its rows outward, one source after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from sql.algebra.event import Event
from sql.algebra.join.store import Store
from sql.algebra.table.lookup import Find, equalities, finder, ranges
from sql.codegen.functions import FunctionSet
from sql.plan.bound import Bound, Op, conjuncts

Sides = tuple[Event | None, ...]


def both(conditions: Sequence[Bound | None]) -> Bound | None:
    """All conditions as one."""
    found = [condition for condition in conditions if condition is not None]
    return reduce(lambda left, right: Op("and", (left, right)), found) if found else None


class Inner:
    """Finds the joined rows that a row of one source is part of."""

    def __init__(self, on: Sequence[Bound | None], where: Bound | None, stores: Sequence[Store],
                 functions: FunctionSet) -> None:  # fmt: skip
        self.stores = stores
        self.functions = functions
        self.condition = both([*on, where])
        self.holds: list[Callable[..., Any]] = [functions.true(part) for part in on if part is not None]
        self.ways: dict[int, list[tuple[int, Find]]] = {}

    def way(self, start: int) -> list[tuple[int, Find]]:
        """In which order the other sources are looked into from a source, those with an index first."""
        found = self.ways.get(start)
        if found is None:
            found = self.ways[start] = list(self._way(start))
        return found

    def _way(self, start: int) -> Iterator[tuple[int, Find]]:
        known = {start}
        rest = [place for place in range(len(self.stores)) if place != start]
        while rest:
            place = min(rest, key=lambda place: (self._rank(place, known), place))
            yield place, finder(self.condition, place, frozenset(known), self.stores[place], self.functions)
            known.add(place)
            rest.remove(place)

    def _rank(self, place: int, known: set[int]) -> int:
        """0 for a source found by equality, 1 by a range, 2 by looking at all."""
        parts = list(conjuncts(self.condition))
        if any(item.needs <= known and item.needs for item in equalities(parts, place)):
            return 0
        return 1 if any(item.needs <= known and item.needs for item in ranges(parts, place)) else 2

    def partners(self, start: int, event: Event, without: Mapping[int, Any] | None = None) -> list[Sides]:
        """The joined rows of a row of source `start`; `without`: by source, rows that take no part."""
        width = len(self.stores)
        sides: list[list[Event | None]] = [[None] * width]
        sides[0][start] = event
        rows: list[list[Any]] = [[None] * width]
        rows[0][start] = event.row
        for place, find in self.way(start):
            kept: Any = None if without is None else without.get(place)
            longer, shown = [], []
            for side, row in zip(sides, rows, strict=True):
                for other in find(Event(tuple(row), event.time_ms, -1)):
                    if kept is None or other not in kept:
                        longer.append([*side[:place], other, *side[place + 1 :]])
                        shown.append([*row[:place], other.row, *row[place + 1 :]])
            sides, rows = longer, shown
            if not sides:
                return []
        return [tuple(side) for side, row in zip(sides, rows, strict=True) if self._true(row, event)]

    def _true(self, row: list[Any], event: Event) -> bool:
        if not self.holds:
            return True
        probe = Event(tuple(row), event.time_ms, -1)
        return all(condition(probe) for condition in self.holds)
