"""Joining what a window shows: at each sample the rows of each stream meet those of the
others, and those of tables.

The sources are joined from left to right. Partners are found through a hash of the equalities of ON; where
there is none, all pairs are tried. A pair whose condition cannot be evaluated is an error event and does not
match.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.event_store import EventStore
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.plan.bound import Bound, Op, Read, conjuncts
from sql.plan.clauses import JoinPlan
from sql.plan.logical import Plan

Sides = tuple[Event | None, ...]
Key = Callable[[Event], Hashable]

OnError = Callable[[Event, BaseException], None]
"""Called for two rows that could not be compared."""


class JoinCode:
    """The conditions of a rule's joins as functions, made once for all instances of the rule."""

    def __init__(self, plan: Plan, functions: FunctionSet) -> None:
        self.width = len(plan.sources)
        self.tables = {
            index: source.retained_rows
            for index, source in enumerate(plan.sources)
            if source.retained_rows is not None
        }
        """How many rows are kept of a table, by its place in FROM."""
        self.relations = {
            index: source.stream for index, source in enumerate(plan.sources) if source.relation is not None
        }
        """The tables and named windows whose rows are read where they are."""
        self.steps = [
            _Step(join, place, self.width, functions) for place, join in enumerate(plan.joins, start=1)
        ]


class SourceJoin:
    """The join of one instance of a rule, and the newest rows of its tables.

    Events of the window hold one side each: their row is a tuple, as wide as FROM, with a single row in it.
    """

    def __init__(self, code: JoinCode, relations: Mapping[str, Any], on_error: OnError) -> None:
        self.code = code
        self.tables: dict[int, deque[Event]] = {
            index: deque(maxlen=retained) for index, retained in code.tables.items()
        }
        self.relations = {index: relations[name] for index, name in code.relations.items()}
        self.on_error = on_error

    def one_sided(self, row: object, index: int) -> tuple[Any, ...]:
        """The row of one source as a joined row of which only that side is there."""
        return tuple(row if place == index else None for place in range(self.code.width))

    def pack(self) -> dict[str, Any]:
        """The rows of tables by the numbers of their events."""
        return {str(index): [event.seq for event in table] for index, table in self.tables.items()}

    def unpack(self, state: dict[str, Any], store: EventStore) -> None:
        """Put a snapshot back."""
        for index, seqs in state.items():
            self.tables[int(index)].extend(map(store.find, seqs))

    def __call__(self, events: Iterable[Event]) -> Iterable[Event]:
        """The joined rows, in order of the first source's events, then of the second's, and so on."""
        width = self.code.width
        contents: list[list[Event] | deque[Event]] = [[] for _ in range(width)]
        for index, table in self.tables.items():
            contents[index] = table
        for index, relation in self.relations.items():
            contents[index] = [
                Event(self.one_sided(row.row, index), row.time_ms, row.seq) for row in relation.content()
            ]
        for event in events:
            index = next(place for place, row in enumerate(event.row) if row is not None)
            contents[index].append(event)
        rows: list[Sides] = [(event,) for event in contents[0]]
        for place, step in enumerate(self.code.steps, start=1):
            rows = step.pairs(rows, contents[place], self.on_error)
        return [_joined(sides, width) for sides in rows]


class _Step:
    """One JOIN: the rows so far on its left, one source on its right."""

    def __init__(self, join: JoinPlan, place: int, width: int, functions: FunctionSet) -> None:
        self.kind = join.kind
        self.place = place
        self.width = width
        self.condition = None if join.on is None else functions.true(join.on)
        pairs = [pair for part in conjuncts(join.on) if (pair := _equality(part, place)) is not None]
        self.left: Key | None = functions.key(tuple(left for left, _ in pairs)) if pairs else None
        self.right: Key | None = functions.key(tuple(right for _, right in pairs)) if pairs else None
        self.keys = len(pairs)

    def pairs(self, rows: list[Sides], others: Sequence[Event], on_error: OnError) -> list[Sides]:
        """The rows of the join; what has no partner beside NULL where the join is outer on its side."""
        out: list[Sides] = []
        matched: set[Event] = set()
        candidates = self._candidates(others, on_error)
        for sides in rows:
            found = [other for other in candidates(sides) if self._holds((*sides, other), on_error)]
            out += [(*sides, other) for other in found]
            matched.update(found)
            if not found and self.kind in ("left", "full"):
                out.append((*sides, None))
        if self.kind in ("right", "full"):
            out += [(None,) * self.place + (other,) for other in others if other not in matched]
        return out

    def _candidates(self, others: Sequence[Event], on_error: OnError) -> Callable[[Sides], Iterable[Event]]:
        """The candidates beside a row: the others with its key. NULL equals nothing."""
        left, right = self.left, self.right
        if left is None or right is None:
            return lambda sides: others
        index: dict[Hashable, list[Event]] = {}
        for other in others:
            key = self._key(right, other, on_error)
            if key is not None:
                index.setdefault(key, []).append(other)

        def found(sides: Sides) -> Iterable[Event]:
            key = self._key(left, _joined(sides, self.width), on_error)
            return () if key is None else index.get(key, ())

        return found

    def _key(self, function: Key, event: Event, on_error: OnError) -> Hashable | None:
        try:
            key = function(event)
        except DATA_ERRORS as error:
            on_error(event, error)
            return None
        return None if isinstance(key, tuple) and self.keys > 1 and None in key else key

    def _holds(self, sides: Sides, on_error: OnError) -> bool:
        if self.condition is None:
            return True
        event = _joined(sides, self.width)
        try:
            return bool(self.condition(event))
        except DATA_ERRORS as error:
            on_error(event, error)
            return False


def _joined(sides: Sides, width: int) -> Event:
    """The joined row as an event, at the time of its newest side."""
    rows = [None if side is None else side.row[place] for place, side in enumerate(sides)]
    present = [side for side in sides if side is not None]
    newest = max(present, key=lambda side: side.seq, default=None)
    time_ms, seq = (0, -1) if newest is None else (max(side.time_ms for side in present), newest.seq)
    return Event(tuple(rows + [None] * (width - len(rows))), time_ms, seq)


def _equality(part: Bound, place: int) -> tuple[Bound, Bound] | None:
    """(what the left side reads, what the source at `place` reads) of an equality that ties them."""
    if not isinstance(part, Op) or part.name != "=":
        return None
    a, b = part.args
    places = [{node.source for node in side.walk() if isinstance(node, Read)} for side in (a, b)]
    if places[1] == {place} and places[0] and max(places[0]) < place:
        return a, b
    if places[0] == {place} and places[1] and max(places[1]) < place:
        return b, a
    return None
