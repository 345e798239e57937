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
from sql.algebra.join.outer import Outer
from sql.algebra.join.store import Pulled, Rows, Store
from sql.algebra.operator import FindEvent
from sql.codegen.functions import FunctionSet
from sql.plan.logical import Plan
from sql.rows import Shape
from sql.types import Saved

NewEvent = Callable[[Any, int], Event]


class Joined:
    """The joined rows of a query, and how they change."""

    def __init__(
        self,
        plan: Plan,
        functions: FunctionSet,
        new_event: NewEvent,
        shape: Shape,
        pulled: Mapping[int, Pulled],
    ) -> None:
        """`pulled`: sources whose rows are only looked up."""
        self.new_event = new_event
        self.stores: list[Store] = [pulled.get(i) or Rows(shape) for i in range(len(plan.sources))]
        for store in pulled.values():
            store.own = lambda event: new_event(event.row, event.time_ms)
        self.drivers = [i for i, source in enumerate(plan.sources) if source.unidirectional]
        kinds = [join.kind for join in plan.joins]
        on = [join.on for join in plan.joins]
        self.inner: Inner | None = None
        self.outer: Outer | None = None
        if any(kind in ("left", "right", "full") for kind in kinds):
            self.outer = Outer(kinds, on, self.stores, shape, functions)
        else:
            self.inner = Inner(on, plan.where, self.stores, shape, functions)
        self.pulls = bool(pulled)
        self.alone = len(self.drivers) == len(plan.sources)
        """True if no source keeps anything: each event stands alone."""
        self.rows: dict[Sides, Event] = {}
        self.rows_of: dict[Event, dict[Sides, None]] = {}

    def change(self, changes: Mapping[int, Delta]) -> Delta | None:
        """The change of the joined rows when sources have changed; None where it posts nothing."""
        if self.drivers:
            out = self._drive(changes)
        elif self.outer is not None:
            out = self._net(
                self.outer.change({i: (delta.inserted, delta.removed) for i, delta in changes.items()})
            )
        else:
            out = self._increment(changes)
        return out if out.inserted or out.removed else None

    # --- inner joins ----------------------------------------------------------------------------------------

    def _increment(self, changes: Mapping[int, Delta]) -> Delta:
        self._apply(changes)
        assert self.inner is not None
        inserted = []
        entered: dict[int, set[Event]] = {}
        for index in sorted(changes):
            for event in changes[index].inserted:
                found = self.inner.partners(index, event, entered)
                inserted += [self._enter(self._kept(sides) if self.pulls else sides) for sides in found]
            entered[index] = set(changes[index].inserted)
        removed = []
        for index in sorted(changes):
            for event in changes[index].removed:
                removed += [self._leave(sides) for sides in tuple(self.rows_of.get(event, ()))]
        return Delta(inserted, removed)

    def _apply(self, changes: Mapping[int, Delta]) -> None:
        for index, delta in changes.items():
            store = self.stores[index]
            if isinstance(store, Rows):
                for event in delta.inserted:
                    store.add(event)
                for event in delta.removed:
                    store.remove(event)

    def _net(self, net: Mapping[Sides, int]) -> Delta:
        removed = [self._leave(sides) for sides, count in net.items() if count < 0]
        return Delta([self._enter(sides) for sides, count in net.items() if count > 0], removed)

    def _kept(self, sides: Sides) -> Sides:
        """Joined rows that stay hold events of the query, also of sources that are looked up."""
        return tuple(
            [
                store.own(side) if isinstance(store, Pulled) and side is not None else side
                for store, side in zip(self.stores, sides, strict=True)
            ]
        )

    def _enter(self, sides: Sides) -> Event:
        event = self.rows[sides] = self._event(sides)
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
        return self.new_event(tuple([None if event is None else event.row for event in sides]), time_ms)

    # --- unidirectional -------------------------------------------------------------------------------------

    def _drive(self, changes: Mapping[int, Delta]) -> Delta:
        self._apply({index: delta for index, delta in changes.items() if index not in self.drivers})
        inserted = []
        for driver in self.drivers:
            for event in changes[driver].inserted if driver in changes else ():
                inserted += [self._event(sides) for sides in self._rows_with(driver, event)]
        return Delta(inserted, ())

    def _rows_with(self, driver: int, event: Event) -> Sequence[Sides]:
        if self.alone:
            nothing: list[Event | None] = [None] * len(self.stores)
            nothing[driver] = event
            return [tuple(nothing)] if self.outer is not None else []
        if self.outer is not None:
            return self.outer.of_event(driver, event)
        assert self.inner is not None
        return self.inner.partners(driver, event)

    def once(self) -> list[Event]:
        """All joined rows of sources that are only looked up."""
        if self.outer is not None:
            return [self._event(sides) for sides in self.outer.product()]
        assert self.inner is not None
        found = (self.inner.partners(0, event) for event in self.stores[0].content())
        return [self._event(sides) for rows in found for sides in rows]

    # --- state ----------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        """The joined rows as events."""
        return self.rows.values()

    def held(self) -> Iterator[Event]:
        """Every event the join refers to."""
        yield from self.rows.values()
        for sides in self.rows:
            yield from (side for side in sides if side is not None)
        for store in self.stores:
            if isinstance(store, Rows):
                yield from store.events

    def snapshot(self) -> Saved:
        """The joined rows and those of each source, by number."""
        rows = [
            [[None if e is None else e.seq for e in sides], event.seq] for sides, event in self.rows.items()
        ]
        kept = [[e.seq for e in store.events] if isinstance(store, Rows) else None for store in self.stores]
        return {"rows": rows, "relations": kept}

    def restore(self, state: Saved, find: FindEvent) -> None:
        """Put a snapshot back."""
        contents = [
            None if events is None else [find(seq) for seq in events] for events in state["relations"]
        ]
        if self.outer is not None and not self.drivers:
            self.outer.change({i: (events, ()) for i, events in enumerate(contents) if events})
        else:
            for store, events in zip(self.stores, contents, strict=True):
                if isinstance(store, Rows):
                    for event in events or ():
                        store.add(event)
        for numbers, seq in state["rows"]:
            sides = tuple(None if number is None else find(number) for number in numbers)
            self.rows[sides] = find(seq)
            for side in sides:
                if side is not None:
                    self.rows_of.setdefault(side, {})[sides] = None
        if self.outer is not None and not self.drivers:
            self.outer.recall(self.rows)
