"""Joining what a window shows: at each sample the rows of each stream meet those of the
others, and those of tables.

The sources are joined from left to right. An event of one source is a joined row already, of which only
that side is there: its row is a tuple as wide as FROM. Partners are found through a hash of the equalities
of ON; where there is none, all pairs are tried. A pair whose condition cannot be evaluated is an error event
and does not match.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.event_store import EventStore
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.plan.bound import Bound, both_ways, conjuncts, sources_read
from sql.plan.clauses import JoinPlan
from sql.plan.logical import Plan

Key = Callable[[Event], Hashable]

OnError = Callable[[Event, BaseException], None]
"""Called for two rows that could not be compared."""


class SourceJoinCode:
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
        self.steps = [_Step(join, place, functions) for place, join in enumerate(plan.joins, start=1)]


class SourceJoin:
    """The join of one instance of a rule, and the newest rows of its tables."""

    def __init__(
        self,
        code: SourceJoinCode,
        relations: Mapping[str, Any],
        failed: Callable[[Any, BaseException, int], None],
    ) -> None:
        """`failed` takes a joined row whose condition cannot be evaluated, and the instant of the sample."""
        self.code = code
        self.tables: dict[int, deque[Event]] = {
            index: deque(maxlen=retained) for index, retained in code.tables.items()
        }
        self.relations = {index: relations[name] for index, name in code.relations.items()}
        self.failed = failed

    def one_sided(self, row: object, index: int) -> tuple[Any, ...]:
        """The row of one source as a joined row of which only that side is there."""
        return tuple(row if place == index else None for place in range(self.code.width))

    def keep(self, index: int, row: object, time_ms: int, seq: int) -> None:
        """A row of a table has come."""
        self.tables[index].append(Event(self.one_sided(row, index), time_ms, seq))

    def pack(self) -> dict[str, Any]:
        """The rows of tables by the numbers of their events."""
        return {str(index): [event.seq for event in table] for index, table in self.tables.items()}

    def unpack(self, state: dict[str, Any], store: EventStore) -> None:
        for index, seqs in state.items():
            self.tables[int(index)].extend(map(store.find, seqs))

    def __call__(self, events: Iterable[Event], at_ms: int) -> Iterable[Event]:
        """The joined rows at an instant, in order of the first source's events, then of the second's, and so
        on; behind a right join, in order of its right side's first."""

        def on_error(event: Event, error: BaseException) -> None:
            self.failed(event.row, error, at_ms)

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
        rows: Sequence[Event] = contents[0]
        for place, step in enumerate(self.code.steps, start=1):
            rows = step.pairs(rows, contents[place], on_error)
        return rows


class _Step:
    """One JOIN: the rows so far on its left, one source on its right."""

    def __init__(self, join: JoinPlan, place: int, functions: FunctionSet) -> None:
        self.keeps_left, self.keeps_right = join.keeps_left, join.keeps_right
        self.place = place
        self.condition = None if join.on is None else functions.true(join.on)
        pairs = [pair for part in conjuncts(join.on) if (pair := _equality(part, place)) is not None]
        self.left: Key | None = functions.key(tuple(left for left, _ in pairs)) if pairs else None
        self.right: Key | None = functions.key(tuple(right for _, right in pairs)) if pairs else None
        self.keys = len(pairs)

    def pairs(self, rows: Sequence[Event], others: Sequence[Event], on_error: OnError) -> list[Event]:
        """The rows of the join, of a right join in the order of its right side. What has no partner stays as
        it is where the join is outer on its side."""
        out: list[Event] = []
        matched: dict[Event, list[Event]] = {}
        candidates = self._candidates(others, on_error)
        for row in rows:
            found = False
            for other in candidates(row):
                pair = self._pair(row, other)
                if self._holds(pair, on_error):
                    out.append(pair)
                    found = True
                    if self.keeps_right:
                        matched.setdefault(other, []).append(pair)
            if not found and self.keeps_left:
                out.append(row)
        if self.keeps_right and not self.keeps_left:
            return [pair for other in others for pair in matched.get(other, (other,))]
        return [*out, *(other for other in others if other not in matched)] if self.keeps_right else out

    def _pair(self, row: Event, other: Event) -> Event:
        """Two rows as one, at the time of the newer."""
        sides = (*row.row[: self.place], other.row[self.place], *row.row[self.place + 1 :])
        return Event(sides, max(row.time_ms, other.time_ms), max(row.seq, other.seq))

    def _candidates(self, others: Sequence[Event], on_error: OnError) -> Callable[[Event], Iterable[Event]]:
        """The candidates beside a row: the others with its key. NULL equals nothing."""
        left, right = self.left, self.right
        if left is None or right is None:
            return lambda row: others
        index: dict[Hashable, list[Event]] = {}
        for other in others:
            key = self._key(right, other, on_error)
            if key is not None:
                index.setdefault(key, []).append(other)

        def found(row: Event) -> Iterable[Event]:
            key = self._key(left, row, on_error)
            return () if key is None else index.get(key, ())

        return found

    def _key(self, function: Key, event: Event, on_error: OnError) -> Hashable | None:
        try:
            key = function(event)
        except DATA_ERRORS as error:
            on_error(event, error)
            return None
        return None if isinstance(key, tuple) and self.keys > 1 and None in key else key

    def _holds(self, pair: Event, on_error: OnError) -> bool:
        if self.condition is None:
            return True
        try:
            return bool(self.condition(pair))
        except DATA_ERRORS as error:
            on_error(pair, error)
            return False


def _equality(part: Bound, place: int) -> tuple[Bound, Bound] | None:
    """(what the left side reads, what the source at `place` reads) of an equality that ties them."""
    for _, left, right in both_ways(part, ("=",)):
        if sources_read(right) == {place} and -1 < max(sources_read(left), default=-1) < place:
            return left, right
    return None
