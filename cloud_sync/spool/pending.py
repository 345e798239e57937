"""Rows that wait in memory for the next commit, and the number of the last row taken of each origin.

Thread-safe: the gateway appends while the rows of a commit are being stored.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cloud_sync.records import Record

CHUNK_BYTES = 500_000
"""Rows stored in one transaction, in bytes."""


class PendingRow(NamedTuple):
    """A row that waits for a commit, with its number among the rows of its origin."""

    record: Record
    created_ms: int
    key: str | None
    number: int


class Pending:
    """The group that the next commit stores, and the number of the last row of each origin, those here
    included."""

    def __init__(self, marks: Mapping[str, int]) -> None:
        self.bytes = 0
        self._marks = dict(marks)
        self.rows: list[PendingRow] = []
        """Those that wait; only read outside of here."""
        self._since_ms = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.rows)

    def mark(self, key: str) -> int:
        """The number of the last row taken from an origin; 0 if there is none."""
        return self._marks.get(key, 0)

    def add(self, records: Sequence[Record], now_ms: int, key: str | None, first: int, last: int) -> None:
        """Let rows wait. Those of origin `key` are numbered from `first`, and `last` is the
        last one it has offered."""
        with self._lock:
            if not self.rows:
                self._since_ms = now_ms
            self.rows += [
                PendingRow(record, now_ms, key, number) for number, record in enumerate(records, first)
            ]
            self.bytes += sum(record.size_bytes for record in records)
            if key is not None and last > self.mark(key):
                self._marks[key] = last

    def due_ms(self, group_rows: int, group_wait_ms: int) -> int | None:
        """The time to store pending rows: in the past if there is a whole group; None if there are none."""
        if not self.rows:  # asked by the loop at each turn
            return None
        with self._lock:
            return self._since_ms + (0 if len(self.rows) >= group_rows else group_wait_ms)

    def take(self, count: int | None = None) -> list[PendingRow]:
        """The first `count` rows that wait, or all. They count in `bytes` until `settle`."""
        with self._lock:
            rows = self.rows[:count]
            del self.rows[:count]
            return rows

    def give_back(self, rows: list[PendingRow]) -> None:
        """Put rows back that could not be stored: they wait again, before everything that came since."""
        with self._lock:
            self.rows[:0] = rows

    def settle(self) -> None:
        """End a `take`: the rows are stored, or were given back."""
        with self._lock:
            self.bytes = sum(row.record.size_bytes for row in self.rows)
            if self.rows:
                self._since_ms = self.rows[0].created_ms


def that_fit(records: Sequence[Record], room: int) -> list[Record]:
    """The first records whose sizes add up to `room` bytes at most."""
    kept: list[Record] = []
    for record in records:
        room -= record.size_bytes
        if room < 0:
            break
        kept.append(record)
    return kept


def chunks(rows: list[PendingRow]) -> Iterator[list[PendingRow]]:
    """Rows in groups of about `CHUNK_BYTES`; one, perhaps empty, at least."""
    size, first = 0, 0
    for position, waiting in enumerate(rows):
        size += waiting.record.size_bytes
        if size >= CHUNK_BYTES:
            yield rows[first : position + 1]
            size, first = 0, position + 1
    if first < len(rows) or not rows:
        yield rows[first:]
