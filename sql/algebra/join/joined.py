"""The joined relation: what a change of its sources changes in it.

All sources that a step changes change first, then the join: no transient pairs, one delta. Inner joins put
out the pairs of rows that came and those of rows that left; outer joins the net change of the content. With
`unidirectional` only that source's events make rows, of the pairs with that event, and nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.join.inner import Inner, Sides
from sql.algebra.join.join_sources import JoinCode, JoinSources
from sql.algebra.join.outer import Outer
from sql.algebra.join.store import Pulled
from sql.algebra.operator import FindEvent
from sql.errors import Fail
from sql.plan.bound import take_events_once
from sql.plan.logical import Plan
from sql.types import Saved

NewEvent = Callable[[Any, int], Event]


class Joined(JoinSources):
    """The joined rows of a query, and how they change."""

    def __init__(
        self,
        plan: Plan,
        code: JoinCode,
        pulled: Mapping[int, Pulled],
        fail: Fail,
        new_event: NewEvent,
    ) -> None:
        super().__init__(plan, code, pulled, fail)
        self.new_event = new_event
        for store in pulled.values():
            store.own = lambda event: new_event(event.row, event.time_ms)
        self.found = self.way()
        self.pulls = bool(pulled)
        self.alone = len(self.drivers) == len(plan.sources)
        """True if no source keeps anything: each event stands alone."""
        self.is_numbered = take_events_once(plan.aggregates)
        """True if each joined row has the numbers of its events beside it."""
        self.rows: dict[Sides, Event] = {}
        self.rows_of: dict[Event, dict[Sides, None]] = {}

    def change(self, changes: Mapping[int, Delta]) -> Delta | None:
        """The change of the joined rows when sources have changed; None where it posts nothing."""
        if self.drivers:
            out = self._drive(changes)
        elif isinstance(self.found, Outer):
            out = self._net(self.found.change(changes))
        else:
            out = self._increment(self.found, changes)
        return out if out.inserted or out.removed else None

    # --- inner joins ----------------------------------------------------------------------------------------

    def _increment(self, inner: Inner, changes: Mapping[int, Delta]) -> Delta:
        self.apply(changes)
        inserted = []
        entered: dict[int, set[Event]] = {}
        for index in sorted(changes):
            for event in changes[index].inserted:
                found = inner.of_event(index, event, entered)
                inserted += [self._put(self._kept(sides), self._event(sides)) for sides in found]
            entered[index] = set(changes[index].inserted)
        removed = []
        for index in sorted(changes):
            for event in changes[index].removed:
                removed += [self._leave(sides) for sides in tuple(self.rows_of.get(event, ()))]
        return Delta(inserted, removed)

    def _net(self, net: Mapping[Sides, int]) -> Delta:
        removed = [self._leave(sides) for sides, count in net.items() if count < 0]
        return Delta([self._enter(sides) for sides, count in net.items() if count > 0], removed)

    def _kept(self, sides: Sides) -> Sides:
        """Joined rows that stay hold events of the query, also of sources that are looked up."""
        if not self.pulls:
            return sides
        return tuple(
            [
                store.own(side) if isinstance(store, Pulled) and side is not None else side
                for store, side in zip(self.stores, sides, strict=True)
            ]
        )

    def _enter(self, sides: Sides) -> Event:
        return self._put(sides, self._event(sides))

    def _put(self, sides: Sides, event: Event) -> Event:
        self.rows[sides] = event
        for side in sides:
            if side is not None:
                self.rows_of.setdefault(side, {})[sides] = None
        return event

    def _leave(self, sides: Sides) -> Event:
        for side in sides:
            if side is not None:
                rows = self.rows_of.get(side)
                if rows is not None:
                    rows.pop(sides, None)
                    if not rows:
                        del self.rows_of[side]
        return self.rows.pop(sides)

    def _event(self, sides: Sides) -> Event:
        time_ms = max(event.time_ms for event in sides if event is not None)
        made = self.new_event(tuple([None if event is None else event.row for event in sides]), time_ms)
        if self.is_numbered:
            made.extra = _numbers(sides)
        return made

    # --- unidirectional -------------------------------------------------------------------------------------

    def _drive(self, changes: Mapping[int, Delta]) -> Delta:
        self.apply({index: delta for index, delta in changes.items() if index not in self.drivers})
        inserted = []
        for driver in self.drivers:
            for event in changes[driver].inserted if driver in changes else ():
                inserted += [self._event(sides) for sides in self._rows_with(driver, event)]
        return Delta(inserted, ())

    def _rows_with(self, driver: int, event: Event) -> Sequence[Sides]:
        if self.alone:
            nothing: list[Event | None] = [None] * len(self.stores)
            nothing[driver] = event
            return [tuple(nothing)] if isinstance(self.found, Outer) else []
        return self.found.of_event(driver, event)

    def once(self) -> list[Event]:
        """All joined rows of sources that are only looked up."""
        return [self._event(sides) for sides in self.found.product()]

    # --- state ----------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        return self.rows.values()

    def held(self) -> Iterator[Event]:
        yield from self.rows.values()
        for joined in (self.rows, *self._between()):
            for sides in joined:
                yield from (side for side in sides if side is not None)
        yield from super().held()

    def _between(self) -> list[list[Sides]]:
        return self.found.between() if isinstance(self.found, Outer) else []

    def snapshot(self) -> dict[str, Any]:
        """The joined rows, those of an outer join's steps and those of each source, by number."""
        rows = [[_numbers(sides), event.seq] for sides, event in self.rows.items()]
        between = [[*map(_numbers, joined)] for joined in self._between()]
        return {**super().snapshot(), "rows": rows, "between": between}

    def restore(self, state: Saved, find: FindEvent) -> None:
        def found(numbers: Sequence[int | None]) -> Sides:
            return tuple([None if number is None else find(number) for number in numbers])

        for numbers, seq in state["rows"]:
            self._put(found(numbers), find(seq))
        if isinstance(self.found, Outer) and not self.drivers:
            sources = [[*map(find, numbers or ())] for numbers in state["relations"]]
            between = [[*map(found, joined)] for joined in state.get("between", ())]
            self.found.restore(sources, between, [*self.rows])
        else:
            super().restore(state, find)


def _numbers(sides: Sides) -> list[int | None]:
    return [None if event is None else event.seq for event in sides]
