"""What the sources have handed over and the rules have not seen yet, given out in slices.

A slice is what the loop does between two looks at everything else: timers, commits, questions from other threads. It is
small enough that none of them waits long, however much has come at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from edge.intake.sources.base import BadMessage, Message
from edge.journal.record import Session

SLICE_MESSAGES = 500
SLICE_BYTES = 250_000
"""Bounds of a slice; one message at least."""


class Arrival(NamedTuple):
    """What one wake-up of a source brought."""

    source: str
    messages: list[Message]
    bad: list[BadMessage]
    session: Session | None = None


class Backlog:
    """Arrivals in order. Used by the gateway loop only."""

    def __init__(self) -> None:
        self._arrivals: deque[Arrival] = deque()

    def __bool__(self) -> bool:
        return bool(self._arrivals)

    def put(self, arrivals: Iterable[Arrival]) -> None:
        """Add what has come."""
        self._arrivals += arrivals

    def next_slice(self) -> Arrival | None:
        """The first arrival, or the first part of it; None when nothing waits."""
        if not self._arrivals:
            return None
        arrival = self._arrivals.popleft()
        count = _that_fit(arrival.messages)
        if count < len(arrival.messages):
            rest = arrival._replace(messages=arrival.messages[count:], session=None)
            self._arrivals.appendleft(rest)
            return arrival._replace(messages=arrival.messages[:count], bad=[])
        return arrival


def _that_fit(messages: list[Message]) -> int:
    """How many of the first messages make a slice."""
    if len(messages) <= 1:
        return len(messages)
    size = 0
    for number, message in enumerate(messages):
        size += len(message[1])
        if number and (size > SLICE_BYTES or number == SLICE_MESSAGES):
            return number
    return len(messages)
