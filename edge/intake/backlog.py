"""What the sources have handed over and the rules have not seen yet, given out in slices, topic by topic in turn.

A slice is what the loop does between two looks at everything else: timers, commits, questions from other threads. It is
small enough that none of them waits long, however much has come at once.

Where more waits than one slice, each topic has a lane, and a slice takes the same number of bytes from each: a flood on
one topic, or a few payloads of a megabyte, hold up its own lane and no other. The order within a topic is kept.
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

LANE_BYTES_MIN = 2_000
"""What a slice takes of each lane at least, if there is so much: with thousands of topics a turn has several slices."""


class Arrival(NamedTuple):
    """What one wake-up of a source brought."""

    source: str
    messages: list[Message]
    bad: list[BadMessage]
    session: Session | None = None


class Backlog:
    """Arrivals, and messages in lanes. Used by the gateway loop only."""

    def __init__(self) -> None:
        self.bytes = 0
        """Payload bytes that wait."""
        self._arrivals: deque[Arrival] = deque()
        self._lanes: dict[tuple[str, str], deque[Message]] = {}

    def __bool__(self) -> bool:
        return bool(self._arrivals or self._lanes)

    def put(self, arrivals: Iterable[Arrival]) -> None:
        """Add what has come."""
        for arrival in arrivals:
            self.bytes += sum([len(message[1]) for message in arrival.messages])
            self._arrivals.append(arrival)

    def next_slice(self) -> Arrival | None:
        """What is to be processed next; None when nothing waits."""
        if not self._lanes and len(self._arrivals) == 1 and _is_slice(self._arrivals[0].messages):
            self.bytes = 0
            return self._arrivals.popleft()
        # A session says what the packet ids of later messages mean: what came before it goes first.
        while self._arrivals and not (self._lanes and self._arrivals[0].session is not None):
            arrival = self._arrivals.popleft()
            for message in arrival.messages:
                self._lanes.setdefault((arrival.source, message[0]), deque()).append(message)
            if arrival.session is not None or arrival.bad:
                return arrival._replace(messages=[])
        return self._from_lanes()

    def _from_lanes(self) -> Arrival | None:
        """The same share of each lane of the first source; the lanes served last come last the next time."""
        if not self._lanes:
            return None
        source = next(iter(self._lanes))[0]
        keys = [key for key in self._lanes if key[0] == source]
        share = max(LANE_BYTES_MIN, SLICE_BYTES // len(keys))
        found: list[Message] = []
        size = 0
        for key in keys:
            size += self._share_of(key, share, found)
            if size >= SLICE_BYTES or len(found) >= SLICE_MESSAGES:
                break
        self.bytes -= sum([len(message[1]) for message in found])
        return Arrival(source, found, [])

    def _share_of(self, key: tuple[str, str], share: int, found: list[Message]) -> int:
        """Move the first messages of a lane, one at least; returns their bytes."""
        lane = self._lanes.pop(key)
        size = 0
        while lane and (not size or size + len(lane[0][1]) <= share) and len(found) < SLICE_MESSAGES:
            message = lane.popleft()
            size += len(message[1]) or 1
            found.append(message)
        if lane:
            self._lanes[key] = lane
        return size


def _is_slice(messages: list[Message]) -> bool:
    """Whether messages make no more than a slice."""
    if len(messages) > SLICE_MESSAGES:
        return False
    return len(messages) <= 1 or sum([len(message[1]) for message in messages]) <= SLICE_BYTES
