"""Joins: the product of the sources' relations, and what a change of one of them changes in it.

The relations are kept by integrating the deltas of the windows, so a batch window joins what it has posted. Inner joins
are incremental: a new event meets its partners through a hash index on the equalities of ON and WHERE, cost per event =
its matches; without an equality the other relation is scanned. Outer joins are computed anew at each change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from sql.codegen.functions import FunctionSet
from sql.plan.bound import Bound, Op, Read
from sql.plan.logical import Plan
from sql.windows.event import Delta, Event
from sql.windows.operator import FindEvent

Sides = tuple[Event | None, ...]
NewEvent = Callable[[Any, int], Event]


class Relation:
    """The present events of one source, with the hash indexes its joins look up."""

    def __init__(self) -> None:
        self.events: dict[Event, None] = {}
        self.indexes: dict[Any, tuple[Callable[[Event], Hashable], dict[Hashable, dict[Event, None]]]] = {}

    def index(self, name: Any, key: Callable[[Event], Hashable]) -> None:
        """Keep an index of the events by `key`."""
        self.indexes.setdefault(name, (key, {}))

    def add(self, event: Event) -> None:
        self.events[event] = None
        for key, index in self.indexes.values():
            index.setdefault(key(event), {})[event] = None

    def remove(self, event: Event) -> bool:
        """Whether the event was there."""
        if event not in self.events:
            return False
        del self.events[event]
        for key, index in self.indexes.values():
            found = key(event)
            del index[found][event]
            if not index[found]:
                del index[found]
        return True

    def matching(self, name: Any, key: Hashable) -> Iterable[Event]:
        """The events with this key in an index."""
        return self.indexes[name][1].get(key, ())


class Joined:
    """The joined relation. With `unidirectional` only that source's events make rows, and none is kept."""

    def __init__(self, plan: Plan, functions: FunctionSet, new_event: NewEvent) -> None:
        self.new_event = new_event
        self.kinds = [join.kind for join in plan.joins]
        self.conditions = [None if join.on is None else functions.true(join.on) for join in plan.joins]
        self.driver = next((i for i, source in enumerate(plan.sources) if source.unidirectional), None)
        self.relations = [Relation() for _ in plan.sources]
        self.is_outer = any(kind in ("left", "right", "full") for kind in self.kinds)
        self.links = _Links(plan, functions, self.relations)
        self.rows: dict[Sides, Event] = {}
        self.rows_of: dict[Event, dict[Sides, None]] = {}

    def change(self, index: int, delta: Delta) -> Delta | None:
        """The change of the joined relation when source `index` has changed; None where it posts nothing."""
        if self.driver is not None:
            return self._drive(index, delta)
        out = self._recompute(index, delta) if self.is_outer else self._increment(index, delta)
        return out if out.inserted or out.removed else None

    def _increment(self, index: int, delta: Delta) -> Delta:
        inserted = []
        for event in delta.inserted:
            self.relations[index].add(event)
            inserted += [self._enter(sides) for sides in self.partners(index, event)]
        removed = []
        for event in delta.removed:
            self.relations[index].remove(event)
            removed += [self._leave(sides) for sides in tuple(self.rows_of.get(event, ()))]
        return Delta(inserted, removed)

    def partners(self, index: int, event: Event) -> list[Sides]:
        """All joined rows that one event of a source is part of, in order of the others' events."""
        partial: list[list[Event | None]] = [[event if i == index else None for i in range(len(self.relations))]]
        for place in range(len(self.relations)):
            if place != index:
                partial = [
                    [*sides[:place], other, *sides[place + 1 :]]
                    for sides in partial
                    for other in self.links.candidates(place, sides)
                ]
        return [tuple(sides) for sides in partial if self._holds(tuple(sides))]

    def _holds(self, sides: Sides) -> bool:
        probe = Event(tuple(None if event is None else event.row for event in sides), 0, -1)
        return all(condition is None or condition(probe) for condition in self.conditions)

    def _enter(self, sides: Sides) -> Event:
        event = self.rows[sides] = self._event(sides)
        for side in sides:
            if side is not None:
                self.rows_of.setdefault(side, {})[sides] = None
        return event

    def _leave(self, sides: Sides) -> Event:
        for side in sides:
            if side is not None:
                del self.rows_of[side][sides]
                if not self.rows_of[side]:
                    del self.rows_of[side]
        return self.rows.pop(sides)

    def _event(self, sides: Sides) -> Event:
        time_ms = max(event.time_ms for event in sides if event is not None)
        return self.new_event(tuple(None if event is None else event.row for event in sides), time_ms)

    def _drive(self, index: int, delta: Delta) -> Delta | None:
        if index != self.driver:
            self._apply(index, delta)
            return None
        inserted = []
        for event in delta.inserted:
            found = self._product({index: [event]}) if self.is_outer else self.partners(index, event)
            inserted += [self._event(sides) for sides in found]
        return Delta(inserted, ()) if inserted else None

    def _apply(self, index: int, delta: Delta) -> None:
        for event in delta.inserted:
            self.relations[index].add(event)
        for event in delta.removed:
            self.relations[index].remove(event)

    # --- outer joins --------------------------------------------------------------------------------------------------

    def _recompute(self, index: int, delta: Delta) -> Delta:
        self._apply(index, delta)
        after = dict.fromkeys(self._product({}))
        removed = [self._leave(sides) for sides in tuple(self.rows) if sides not in after]
        return Delta([self._enter(sides) for sides in after if sides not in self.rows], removed)

    def _product(self, given: dict[int, list[Event]]) -> list[Sides]:
        """All joined rows; `given` replaces the events of a source."""
        contents = [given.get(i) or list(relation.events) for i, relation in enumerate(self.relations)]
        rows: list[Sides] = [(event,) for event in contents[0]]
        for place, (kind, condition) in enumerate(zip(self.kinds, self.conditions, strict=True), start=1):
            rows = _pair(rows, contents[place], kind, condition, place, len(contents))
        return rows

    # --- state --------------------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        """The joined rows as events."""
        return self.rows.values()

    def held(self) -> Iterator[Event]:
        """Every event the join refers to."""
        yield from self.rows.values()
        for relation in self.relations:
            yield from relation.events

    def snapshot(self) -> Any:
        rows = [[[None if e is None else e.seq for e in sides], event.seq] for sides, event in self.rows.items()]
        return {"rows": rows, "relations": [[e.seq for e in relation.events] for relation in self.relations]}

    def restore(self, state: Any, find: FindEvent) -> None:
        for relation, events in zip(self.relations, state["relations"], strict=True):
            for seq in events:
                relation.add(find(seq))
        for numbers, seq in state["rows"]:
            sides = tuple(None if number is None else find(number) for number in numbers)
            self.rows[sides] = find(seq)
            for side in sides:
                if side is not None:
                    self.rows_of.setdefault(side, {})[sides] = None


def _key_alone(key: Callable[[Event], Hashable], place: int, width: int, event: Event) -> Hashable:
    return key(_alone(event, place, width))


class _Links:
    """Which equalities tie a source to others, and so which index finds its partners."""

    def __init__(self, plan: Plan, functions: FunctionSet, relations: Sequence[Relation]) -> None:
        self.relations = relations
        self.by_place: dict[int, list[tuple[int, Callable[[Event], Hashable], int]]] = {}
        conditions = [join.on for join in plan.joins] + [plan.where]
        number = 0
        for equality in (op for condition in conditions if condition is not None for op in _equalities(condition)):
            sides = [(_only_source(arg), arg) for arg in equality.args]
            for (place, own), (other, partner) in (sides, sides[::-1]):
                if place is None or other is None or place == other:
                    continue
                relations[place].index(number, partial(_key_alone, functions.key((own,)), place, len(relations)))
                self.by_place.setdefault(place, []).append((other, functions.key((partner,)), number))
                number += 1

    def candidates(self, place: int, sides: list[Event | None]) -> Iterable[Event]:
        """The events of a source that can stand beside those bound already."""
        for other, key, number in self.by_place.get(place, ()):
            bound = sides[other]
            if bound is not None:
                found = key(_alone(bound, other, len(sides)))
                # NULL equals nothing.
                return tuple(self.relations[place].matching(number, found)) if found is not None else ()
        return tuple(self.relations[place].events)


def _alone(event: Event, place: int, width: int) -> Event:
    """An event as a joined row of which only one side is known."""
    rows = [None] * width
    rows[place] = event.row
    return Event(tuple(rows), event.time_ms, event.seq)


def _equalities(condition: Bound) -> Iterator[Op]:
    """The equalities that must hold for the condition to hold."""
    if isinstance(condition, Op) and condition.name == "and":
        for part in condition.args:
            yield from _equalities(part)
    elif isinstance(condition, Op) and condition.name == "=":
        yield condition


def _only_source(expression: Bound) -> int | None:
    """The one source an expression reads, if it reads just one and nothing else."""
    places = {part.source for part in expression.walk() if isinstance(part, Read)}
    plain = all(isinstance(part, Read | Op) or not part.parts() for part in expression.walk())
    return places.pop() if len(places) == 1 and plain else None


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
