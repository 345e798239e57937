"""A running query as others see it: the engine, the stage of event time, the room of those that wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.event import Delta, Event
from sql.compiler.shared_code import Environment
from sql.emission import Emission
from sql.plan.logical import Plan


class Running(ABC):
    """A query in processing or event time. What only some queries do has no effect here.

    steps_itself  it goes through due instants by itself: their bounds are nominal
    takes_lots    rows that another query gave out together enter it as one step
    takes_times   events may be given with their own instants, many at a time
    """

    name: str
    plan: Plan
    now_ms: int
    counts: dict[str, int]
    steps_itself = False
    takes_lots = False
    takes_times = False

    @abstractmethod
    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one stream arrive, in order, at `now_ms`. Everything due by then has been done."""

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Events with their own instants, which never decrease, for queries with `takes_times`; what is due
        before each is done before it."""
        raise AssertionError(f"a {type(self).__name__} takes events one by one")

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows that another query gave out together arrive."""
        return self.push(stream, rows, now_ms)

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        """An event arrives: filters that read relations are evaluated before any statement acts on it."""

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed, all of them before anything is computed from one."""
        return []

    def fill(self, *, posts: bool = False) -> list[Emission]:
        """Start from the present rows of named windows; what that gives where it is to be posted."""
        return []

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due at or before `now_ms`."""
        return []

    def next_deadline(self) -> int | None:
        """The earliest instant at which `advance` has something to do."""
        return None

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended."""
        return []

    def terminate(self, now_ms: int) -> list[Emission]:
        """The context partition of the instance ends: the output of `when terminated`. Windows that are open
        go with it."""
        return []

    def leave(self) -> None:
        """Work alone from now on, with a copy of what was done together with other rules."""

    def variable_changed(self, name: str) -> None:
        """A variable has a new value; what that causes is posted at the next advance of time."""

    @abstractmethod
    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        """An event was refused before it came here: counted, and an emission of its own."""

    @abstractmethod
    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        """Leave out results that come too late (`catchUp: skip`): they count as skipped, errors remain."""

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the content between two steps; without a window there are none."""
        return []

    def held(self) -> Iterable[Event]:
        """Every event the state refers to."""
        return ()

    def retained(self) -> int:
        """The number of events held, or of which what they contributed is."""
        return 0

    def counters(self) -> dict[str, int]:
        """The counters."""
        return dict(self.counts)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data."""
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back into a query just made; CorruptState where it does not fit."""


MakeInstance = Callable[[Environment], Running]
"""Makes an instance of a compiled statement."""


class QueryDecorator(Running):
    """A query behind something that holds its events back; what that does not change is the query's.

    Rows of another query wait one by one like all events. Filters see relations as they are when the event
    enters the query, not as it arrives.
    """

    def __init__(self, query: Running) -> None:
        self.query = query
        self.name = query.name
        self.plan = query.plan

    def fill(self, *, posts: bool = False) -> list[Emission]:
        return self.query.fill(posts=posts)

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        return self.query.feed(changes, now_ms)

    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        return self.query.reject(row, why, now_ms)

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        return self.query.unseen(emissions)

    def variable_changed(self, name: str) -> None:
        self.query.variable_changed(name)

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return self.query.read(now_ms)
