"""Messages that a connection has read, on their way to the consumer; held while the consumer is paused.

A connection that publishes reads on in a pause as well, because confirmations of what it has published come
between the messages. What it reads is held, in order, up to a bound:

    QoS 1   what has no room comes again: the connection is given up once the consumer takes messages, and
            the broker repeats what was not acknowledged. It is seldom so much: a broker bounds how many
            messages are in flight
    QoS 0   what has no room is dropped and counted
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from edge.base.message import DUPLICATE, BadMessage, Message
from edge.intake.sources.base import OnBad, OnBatch

log = logging.getLogger("penstock.mqtt")

OVERHEAD_BYTES = 200
"""The memory of a message beside its payload."""


@dataclass(slots=True)
class Counters:
    """Sums over all connections of a source."""

    messages: int = 0
    bad: int = 0
    dropped: int = 0
    duplicates: int = 0
    acknowledged: int = 0
    stale_acknowledgements: int = 0
    connects: int = 0


@dataclass(slots=True)
class Consumer:
    """The consumer of a source's messages, over all connections."""

    on_batch: OnBatch = lambda batch: None
    on_bad: OnBad = lambda bad: None
    is_paused: bool = False


class HandOver:
    """Hands the messages of one connection to the consumer, or holds them.

    bytes_max   the most bytes that are held
    is_kept     the broker keeps the session, and repeats messages of QoS 1 on the next connection
    """

    def __init__(self, consumer: Consumer, counters: Counters, bytes_max: int, *, is_kept: bool) -> None:
        self.left_out: list[int] = []
        """Packet ids of messages that had no room, and whose first transmission that was."""
        self._consumer, self._counters = consumer, counters
        self._bytes_max, self._is_kept = bytes_max, is_kept
        self._batch: list[Message] = []
        self._bad: list[BadMessage] = []
        self._bytes = 0
        self._has_left_out = False
        self._dropped = 0
        """Messages dropped since the last that were handed on."""

    @property
    def is_due(self) -> bool:
        """True if messages are held that may be handed on."""
        return bool(self._bytes) and not self._consumer.is_paused

    def take(self, batch: list[Message], bad: list[BadMessage]) -> bool:
        """Hand on what was read, behind what is held; or hold it. Whether the connection must be given up
        now, because messages had no room."""
        counters = self._counters
        counters.messages += len(batch)
        counters.bad += len(bad)
        if self._consumer.is_paused:
            self._hold(batch, bad)
            return False
        if self._bytes:
            self.hand_on_held()
        self._hand_on(batch, bad)
        return self._has_left_out

    def hand_on_held(self) -> None:
        """Hand on what is held, in a pause as well: before the loss of the connection is reported."""
        batch, bad, dropped = self._batch, self._bad, self._dropped
        self._batch, self._bad, self._bytes, self._dropped = [], [], 0, 0
        if dropped:
            note = "QoS 0, too many in a pause"
            log.warning("intake.dropped", extra={"messages": dropped, "note": note})
        self._hand_on(batch, bad)

    def _hand_on(self, batch: list[Message], bad: list[BadMessage]) -> None:
        if bad:
            self._consumer.on_bad(bad)
        if batch:
            self._consumer.on_batch(batch)

    def _hold(self, batch: list[Message], bad: list[BadMessage]) -> None:
        for message in batch:
            if self._has_room(message[1], message[2], is_first=not message[3] & DUPLICATE):
                self._batch.append(message)
        for item in bad:
            if self._has_room(item[1], item[2], is_first=True):
                self._bad.append(item)

    def _has_room(self, payload: bytes, token: int | None, *, is_first: bool) -> bool:
        """Take room for a message; without room, count it or see to it that it comes again."""
        if self._bytes < self._bytes_max:
            self._bytes += len(payload) + OVERHEAD_BYTES
            return True
        if token is None or not self._is_kept:
            self._dropped += 1
            self._counters.dropped += 1
        else:
            self._has_left_out = True
            self.left_out += [token & 0xFFFF] if is_first else []
        return False
