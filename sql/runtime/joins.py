"""Joins: the product of the sources' relations, and what a change of one of them changes in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sql.codegen.functions import FunctionSet
from sql.plan.plan import Plan
from sql.windows.event import Delta, Event
from sql.windows.operator import FindEvent, Operator

Sides = tuple[Event | None, ...]


class Joined:
    """Keeps the joined rows; an outer side without partner is NULL.

    A delta of one source adds the rows that its inserted events make with the present content of the others, and removes
    those that its removed events were part of. With `unidirectional` only that source's events post rows, and nothing is
    kept. Cost per event: the matches, plus a scan of the other side (no index yet).
    """

    def __init__(self, plan: Plan, functions: FunctionSet, windows: Sequence[Operator],
                 new_event: Callable[[Any, int], Event]) -> None:  # fmt: skip
        self.windows = windows
        self.new_event = new_event
        self.kinds = [join.kind for join in plan.joins]
        self.conditions = [None if join.on is None else functions.true(join.on) for join in plan.joins]
        self.driver = next((i for i, source in enumerate(plan.sources) if source.unidirectional), None)
        self.rows: dict[Sides, Event] = {}

    def change(self, index: int, delta: Delta) -> Delta | None:
        """The change of the joined relation when source `index` has changed; None where it posts nothing."""
        if self.driver is not None:
            if index != self.driver:
                return None
            rows = self._combine({index: list(delta.inserted)})
            inserted = [self._event(sides) for sides in rows]
            return Delta(inserted, ()) if inserted else None
        before = self.rows
        after = dict.fromkeys(self._combine({}))
        removed = [event for sides, event in before.items() if sides not in after]
        inserted = []
        self.rows = {}
        for sides in after:
            event = before.get(sides)
            if event is None:
                event = self._event(sides)
                inserted.append(event)
            self.rows[sides] = event
        return Delta(inserted, removed) if inserted or removed else None

    def _event(self, sides: Sides) -> Event:
        time_ms = max(event.time_ms for event in sides if event is not None)
        return self.new_event(tuple(None if event is None else event.row for event in sides), time_ms)

    def _combine(self, given: dict[int, list[Event]]) -> list[Sides]:
        """All joined rows of the present content; `given` replaces the content of a source."""
        contents = [given.get(i) for i in range(len(self.windows))]
        present = [list(w.content()) if c is None else c for w, c in zip(self.windows, contents, strict=True)]
        rows: list[Sides] = [(event,) for event in present[0]]
        for place, (kind, condition) in enumerate(zip(self.kinds, self.conditions, strict=True), start=1):
            rows = _pair(rows, present[place], kind, condition, place, len(self.windows))
        return rows

    def content(self) -> Iterable[Event]:
        return self.rows.values()

    def held(self) -> Iterable[Event]:
        yield from self.rows.values()
        for sides in self.rows:
            yield from (event for event in sides if event is not None)

    def snapshot(self) -> Any:
        return [[[None if e is None else e.seq for e in sides], event.seq] for sides, event in self.rows.items()]

    def restore(self, state: Any, find: FindEvent) -> None:
        self.rows = {tuple(None if s is None else find(s) for s in sides): find(seq) for sides, seq in state}


def _pair(rows: list[Sides], others: list[Event], kind: str, condition: Callable[..., Any] | None, place: int,
          width: int) -> list[Sides]:  # fmt: skip
    out: list[Sides] = []
    matched: set[Event] = set()
    for sides in rows:
        found = False
        for other in others:
            if condition is None or condition(_probe((*sides, other), width)):
                out.append((*sides, other))
                matched.add(other)
                found = True
        if not found and kind in ("left", "full"):
            out.append((*sides, None))
    if kind in ("right", "full"):
        out += [((None,) * place + (other,)) for other in others if other not in matched]
    return out


def _probe(sides: Sides, width: int) -> Event:
    """An event to test a join condition with; sources not joined yet are NULL."""
    rows = [None if event is None else event.row for event in sides]
    return Event(tuple(rows + [None] * (width - len(rows))), 0, -1)
