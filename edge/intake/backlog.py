"""Messages that the sources have handed over and the rules have not processed yet, emitted in
slices, topic by topic in turn.

A slice is the work of the loop between two checks of everything else: timers, commits, calls from other
threads. It is small enough that none of them waits long, however much has come at once.

Messages that fit into one slice keep their order. Where more waits, each topic has a lane, and a slice takes
the same number of bytes from each: a flood on one topic, or a few payloads of a megabyte,
hold up its own lane and no other. The order within a topic is kept then, that of different topics is not.
Topics whose order matters share a lane (`edge.intake.lanes`).

Slices become smaller where rules take long for them, and larger again where they do not: so the time of a
slice is bounded too, whatever an event costs.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from edge.base.message import BadMessage, Message, payload_bytes, qos_of
from edge.journal.record import Session

log = logging.getLogger("penstock.gateway")

SLICE_MESSAGES = 500
SLICE_BYTES = 250_000
"""Bounds of a slice; one message at least."""

LANE_BYTES_MIN = 2_000
"""The bytes that a slice takes of each lane at least, where the lane has them: with thousands of topics
a turn has several slices."""

SLICE_PARTS_MAX = 32
"""A slice is this part of its usual size at least."""

LONG_MS, SHORT_MS = 5, 2
"""A slice that took longer makes the next ones half as large; one that took less, twice as large."""


_token = itemgetter(2)


class Arrival(Struct, frozen=True):
    """The messages of one wake-up of a source."""

    source: str
    messages: list[Message]
    bad: list[BadMessage]
    session: Session | None = None


def tokens_of(arrival: Arrival) -> list[int]:
    """The tokens of its messages, bad ones included, that are to be acknowledged."""
    tokens = [*map(_token, arrival.messages), *map(_token, arrival.bad)]
    without = tokens.count(None)
    if without:
        return [] if without == len(tokens) else [token for token in tokens if token is not None]
    return tokens


class Backlog:
    """Arrivals, and messages in lanes. Used by the gateway loop only."""

    def __init__(self, lane_of: Callable[[str, str], str] = lambda source, topic: topic) -> None:
        """`lane_of`: the name of the lane for a topic of a source."""
        self.bytes = 0
        """Payload bytes that wait."""
        self.sheds: set[str] = set()
        """The sources whose messages of QoS 0 are dropped, rather than held back, where too many wait. Their
        senders drop what is not read, uncounted, and what comes on other topics would wait behind it."""
        self.dropped = 0
        """Messages of QoS 0 that were dropped."""
        self._lane_of = lane_of
        self._parts = 1
        """Into how many parts a slice of the usual size is cut."""
        self._arrivals: deque[tuple[Arrival, int]] = deque()
        """Each with its payload bytes."""
        self._arrived = 0
        """The number of their messages."""
        self._lanes: dict[tuple[str, str], deque[Message]] = {}

    def __bool__(self) -> bool:
        return bool(self._arrivals or self._lanes)

    def holds(self, source: str) -> bool:
        """True if messages of a source wait."""
        return any(key[0] == source for key in self._lanes) or any(
            arrival.source == source for arrival, _ in self._arrivals
        )

    def put(self, arrivals: Iterable[Arrival]) -> None:
        """Add an arrival."""
        for arrival in arrivals:
            size = payload_bytes(arrival.messages)
            self.bytes += size
            self._arrived += len(arrival.messages)
            self._arrivals.append((arrival, size))

    def took(self, elapsed_ms: int) -> None:
        """Adapt the size of slices to the time that the last one took."""
        if elapsed_ms > LONG_MS:
            self._parts = min(SLICE_PARTS_MAX, self._parts * 2)
        elif elapsed_ms < SHORT_MS and self._parts > 1:
            self._parts //= 2

    def relieve(self, bytes_max: int) -> None:
        """Once `bytes_max` wait, drop messages of QoS 0, the oldest of the fullest lanes, until three
        quarters wait."""
        if not self.sheds:
            return
        before, worst = self.dropped, ""
        sizes = {
            key: payload_bytes(lane)
            for key, lane in self._lanes.items()
            if key[0] in self.sheds
            and not qos_of(lane[0][3])  # others are the broker's until they are acknowledged
        }
        while self.bytes > bytes_max * 3 // 4 and sizes:
            key = max(sizes, key=lambda key: sizes[key])
            worst = worst or self._lanes[key][0][0]
            sizes[key] = self._drop_quarter(key, sizes[key])
            if not sizes[key]:
                del sizes[key]
        if worst:
            dropped = self.dropped - before
            log.warning(
                "intake.dropped", extra={"topic": worst, "messages": dropped, "note": "QoS 0, too many"}
            )

    def _drop_quarter(self, key: tuple[str, str], size: int) -> int:
        """Drop the first quarter of a lane of `size` bytes; what is left of it, 0 where
        no more can be dropped."""
        lane, kept = self._lanes[key], size * 3 // 4
        while lane and size > kept and not qos_of(lane[0][3]):
            length = len(lane.popleft()[1])
            size -= length
            self.bytes -= length
            self.dropped += 1
        if not lane:
            del self._lanes[key]
        return 0 if not lane or qos_of(lane[0][3]) else size

    def next_slice(self) -> Arrival | None:
        """The messages to be processed next; None when nothing waits."""
        if not self._arrivals:
            return self._from_lanes() if self._lanes else None
        if not self._lanes and (
            self._arrived <= 1
            or (self._arrived <= SLICE_MESSAGES // self._parts and self.bytes <= SLICE_BYTES // self._parts)
        ):
            arrival, size = self._arrivals.popleft()
            self._arrived -= len(arrival.messages)
            self.bytes -= size
            return arrival
        # A session defines the packet ids of later messages: earlier messages go first.
        while self._arrivals and not (self._lanes and self._arrivals[0][0].session is not None):
            arrival, _ = self._arrivals.popleft()
            self._arrived -= len(arrival.messages)
            self._spread(arrival)
            if arrival.session is not None or arrival.bad:
                return replace(arrival, messages=[])
        return self._from_lanes() if self._lanes else None

    def _spread(self, arrival: Arrival) -> None:
        """Put messages into the lanes of their topics."""
        lanes, topic = self._lanes, None
        for message in arrival.messages:
            if message[0] != topic:  # mostly many of one topic stand together
                topic = message[0]
                append = lanes.setdefault(
                    (arrival.source, self._lane_of(arrival.source, topic)), deque()
                ).append
            append(message)

    def _from_lanes(self) -> Arrival:
        """The same share of each lane of the first source; the lanes served last come last the next time."""
        source = next(iter(self._lanes))[0]
        keys = [key for key in self._lanes if key[0] == source]
        messages_max, bytes_max = SLICE_MESSAGES // self._parts, SLICE_BYTES // self._parts
        share = max(LANE_BYTES_MIN, bytes_max // len(keys))
        found: list[Message] = []
        size = 0
        for key in keys:
            size += self._share_of(key, share, found, messages_max)
            if size >= bytes_max or len(found) >= messages_max:
                break
        self.bytes -= payload_bytes(found)
        return Arrival(source, found, [])

    def _share_of(self, key: tuple[str, str], share: int, found: list[Message], messages_max: int) -> int:
        """Move the first messages of a lane, one at least; returns their bytes."""
        lane = self._lanes.pop(key)
        size = 0
        while lane and (not size or size + len(lane[0][1]) <= share) and len(found) < messages_max:
            message = lane.popleft()
            size += len(message[1]) or 1
            found.append(message)
        if lane:
            self._lanes[key] = lane
        return size
