"""Taps on the data that passes through the gateway, for listeners. Without a listener
they cost one check a batch.

The loop puts references into a bounded buffer and never waits: items beyond the bound of a slow
listener are dropped and counted. Decoding, filtering and writing are done by the listener's own thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from edge.base.message import Message
from edge.clock import Clock
from sql import Emission

ITEMS_MAX = 10_000
BYTES_MAX = 4_000_000
"""The bounds of one listener's buffer: items, and bytes of payloads and of letters."""

LISTENERS_MAX = 8

ROW_BYTES = 200
"""The bytes that each row counts for: rows are references to objects that the gateway has anyway."""


class Passed(NamedTuple):
    """Something that passed: a message of a stream, an emission of a rule, or a dead letter."""

    at_ms: int
    name: str
    what: Message | Emission | dict[str, Any]


@dataclass(slots=True)
class Tap:
    """One listener's buffer. `names`: the streams and rules it listens to."""

    names: frozenset[str]
    clock: Clock
    dropped: int = 0
    """Items for which there was no room since the last `take`."""
    _items: deque[Passed] = field(default_factory=deque)
    _bytes: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def offer(self, item: Passed, size: int) -> None:
        """Add an item, or count it as dropped. Never waits for the listener."""
        self.offer_all([item], size)

    def offer_all(self, items: Sequence[Passed], size: int) -> None:
        """Add items of `size` bytes together, as far as there is room; count the others as dropped."""
        with self._changed:
            room = 0 if self._bytes + size > BYTES_MAX and self._items else ITEMS_MAX - len(self._items)
            self._items.extend(items[:room])
            self._bytes += size if room > 0 else 0
            self.dropped += max(0, len(items) - max(0, room))
            self._changed.notify()

    def take(self, timeout_ms: int) -> tuple[list[Passed], int]:
        """Everything that has passed, waiting for it at most so long; and the number of items
        dropped before that."""
        with self._changed:
            if not self._items and not self.dropped:
                self.clock.wait(self._changed, timeout_ms)
            items = list(self._items)
            self._items.clear()
            self._bytes = 0
            dropped, self.dropped = self.dropped, 0
            return items, dropped


class Taps:
    """The listeners. `add` and `remove` may be called from any thread."""

    def __init__(self) -> None:
        self.listeners: tuple[Tap, ...] = ()
        """Replaced as a whole, so that the loop may go through it without a lock."""
        self._lock = threading.Lock()

    def add(self, tap: Tap) -> bool:
        """Begin to listen; False when there are too many listeners."""
        with self._lock:
            if len(self.listeners) >= LISTENERS_MAX:
                return False
            self.listeners = (*self.listeners, tap)
            return True

    def remove(self, tap: Tap) -> None:
        """Listen no more."""
        with self._lock:
            self.listeners = tuple(known for known in self.listeners if known is not tap)

    # --- items passing --------------------------------------------------------------------------------------

    def messages(
        self, messages: Sequence[Message], now_ms: int, streams_of: Callable[[str], Sequence[str]]
    ) -> None:
        """Messages that are about to take effect."""
        for tap in self.listeners:
            names = tap.names
            items = [
                Passed(now_ms, stream, message)
                for message in messages
                for stream in streams_of(message[0])
                if stream in names
            ]
            if items:
                tap.offer_all(items, sum([len(message[1]) for message in messages]))

    def emission(self, emission: Emission) -> None:
        """Hand an emission of a rule to its listeners."""
        for tap in self.listeners:
            if emission.rule in tap.names:
                rows = len(emission.inserted) + len(emission.removed)
                tap.offer(Passed(emission.at_ms, emission.rule, emission), ROW_BYTES * rows)

    def letter(
        self, streams_of: Callable[[str], Sequence[str]], letter: dict[str, Any], payload: bytes | None
    ) -> None:
        """A dead letter of a rule, or of the streams that read its topic. On any thread."""
        if not self.listeners:
            return
        topic, rule = letter["topic"], letter.get("rule")
        names = [*(streams_of(topic) if topic else ()), *([] if rule is None else [rule])]
        shown = letter if payload is None else letter | {"payload": payload.decode(errors="replace")}
        for tap in self.listeners:
            name = next((name for name in names if name in tap.names), None)
            if name is not None:
                tap.offer(Passed(letter["at_ms"], name, shown), ROW_BYTES + len(payload or b""))
