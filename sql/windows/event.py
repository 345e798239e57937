"""Events and deltas: what operators exchange.

A relation that changes with time is told by its changes. A `Delta` is one partial update: the events that entered, in
order, and those that left. Rows may be any object the compiled expressions can read (a dict, a struct, a tuple of
rows for joins); operators never look inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Event:
    """One event inside a query. Compared by identity: two equal messages are two events.

    seq      its place in the order of arrival within the query
    time_ms  its instant on the query's clock
    row      its columns
    extra    values fixed when it arrived: results of analytic functions and of `prior`
    """

    __slots__ = ("extra", "row", "seq", "time_ms")

    def __init__(self, row: Any, time_ms: int, seq: int, extra: Any = None) -> None:
        self.row = row
        self.time_ms = time_ms
        self.seq = seq
        self.extra = extra

    def __repr__(self) -> str:
        return f"Event({self.seq}@{self.time_ms} {self.row!r})"


class Delta(NamedTuple):
    """One partial update of a relation: what entered and what left, both in order."""

    inserted: Sequence[Event] = ()
    removed: Sequence[Event] = ()


EMPTY = Delta()
"""An update without change: what FORCE_UPDATE windows post at an empty boundary."""
