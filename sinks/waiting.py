"""The emissions that wait for a sink: the time a batch may fill, and the emissions sent together.

Plain data without a lock; `sinks.delivery` guards it. Times are the clock's `monotonic_ms()`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from sinks.settings import SinkSettings
from sql.record import Record

if TYPE_CHECKING:
    from sql import Emission

PIPELINE_MAX = 256
"""The most waiting emissions passed to a sink in one `send`; the worker never waits for more to come."""


class Entry(Record):
    """One emission with its receipt's token; `rows` counts at least 1."""

    emission: Emission
    token: Any
    rows: int
    since_ms: int


class Waiting:
    """A queue of entries, oldest first."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._entries: deque[Entry] = deque()
        self._rows = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_full(self) -> bool:
        """True if `bufferLength` emissions wait."""
        return len(self._entries) >= self._settings.buffer_length

    def append(self, emission: Emission, token: object, now_ms: int) -> None:
        """Queue one emission."""
        rows = max(1, len(emission.inserted) + len(emission.removed))
        self._entries.append(Entry(emission, token, rows, now_ms))
        self._rows += rows

    def pop(self) -> Entry:
        """Remove the oldest entry."""
        entry = self._entries.popleft()
        self._rows -= entry.rows
        return entry

    def linger_ms(self, now_ms: int) -> int:
        """The time that the batch of the oldest entry may still fill; 0 or less: send it."""
        settings = self._settings
        is_enough = self.is_full or (settings.batch_size > 1 and self._rows >= settings.batch_size)
        if is_enough or not settings.batches:
            return 0
        return self._entries[0].since_ms + settings.linger_interval - now_ms

    def pop_batch(self) -> list[Entry]:
        """Remove the entries that are sent together; there is at least one."""
        settings = self._settings
        entries, rows = [self.pop()], 0
        limit = settings.buffer_length if settings.batches else PIPELINE_MAX
        while self._entries and len(entries) < limit:
            rows += entries[-1].rows
            if settings.batch_size > 1 and rows >= settings.batch_size:
                break
            entries.append(self.pop())
        return entries
