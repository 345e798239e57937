"""The bounds of a relation: the number of rows, the age of a row, and counts of the rows
refused or removed because of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from sql.algebra.event import Event
from sql.errors import DataError
from sql.plan.declared import Bounds

Stored = tuple[int, int, int, list[tuple[int, int]]]
"""The counts refused, expired and dropped; by the number of a row the instant of its last write."""


class Bounded:
    """The rows of one relation in the order of their last write, as far as its bounds need it.

    A row of a named window is written once, when it enters; one of a table with every change. `expired` and
    `dropped` count the rows that left because of their age, and because newer ones needed their place.
    """

    def __init__(self, what: str, bounds: Bounds) -> None:
        """`what`: what messages call the relation."""
        self.what = what
        self.wake: Callable[[], None] = lambda: None
        """Called when rows came that time will change, although nothing was posted: the next deadline
        may be another one."""
        self._limit(bounds)
        self.written: dict[Event, int] = {}
        """The time of each row's last write (ms), the oldest first; empty if no bound needs it."""
        self.refused = self.expired = self.dropped = 0

    def _limit(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.is_kept = bounds.ttl_ms is not None or bounds.oldest_first
        """True if the order of writing matters."""

    def wrote(self, row: Event, now_ms: int) -> None:
        """A row came or was changed."""
        if self.is_kept:
            was_empty = not self.written
            self.written.pop(row, None)
            self.written[row] = now_ms
            if was_empty and self.bounds.ttl_ms is not None:
                self.wake()

    def change(self, bounds: Bounds, rows: Iterable[Event]) -> None:
        """Other bounds from now on; rows of which the last write is not known count from their arrival."""
        self._limit(bounds)
        self.restore(self.snapshot(), rows)

    def left(self, row: Event) -> None:
        self.written.pop(row, None)

    def room(self, held: int, coming: int, leaving: Container[Event]) -> list[Event]:
        """The rows that must go before `coming` more rows fit beside `held`. Raises
        DataError where none may."""
        excess = held + coming - self.bounds.max_rows
        if not coming or excess <= 0:
            return []
        if not self.bounds.oldest_first or coming > self.bounds.max_rows:
            self.refused += 1
            raise DataError(f"{self.what} holds {self.bounds.max_rows} rows, its most; raise maxRows")
        oldest = (row for row in self.written if row not in leaving)
        found = [row for row, _ in zip(oldest, range(excess), strict=False)]
        self.dropped += len(found)
        return found

    def next_deadline(self) -> int | None:
        """When the next row is too old."""
        if self.bounds.ttl_ms is None:
            return None
        first = next(iter(self.written.values()), None)
        return None if first is None else first + self.bounds.ttl_ms

    def aged(self, now_ms: int) -> list[Event]:
        """The rows that are too old."""
        found: list[Event] = []
        if self.bounds.ttl_ms is not None:
            for row, written_ms in self.written.items():
                if written_ms + self.bounds.ttl_ms > now_ms:
                    break
                found.append(row)
            self.expired += len(found)
        return found

    # --- state ----------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """The numbers of rows refused, expired and dropped because of the bounds."""
        return {"refused": self.refused, "expired": self.expired, "dropped": self.dropped}

    def snapshot(self) -> Stored:
        """Counts, and the numbers of the rows with the time of their last write."""
        written = [(row.seq, at_ms) for row, at_ms in self.written.items()]
        return self.refused, self.expired, self.dropped, written

    def restore(self, state: Stored, rows: Iterable[Event]) -> None:
        """Put a snapshot back; rows that it does not hold, for the bounds were others,
        count from their arrival."""
        self.refused, self.expired, self.dropped, written = state
        by_number = {row.seq: row for row in rows}
        known = [(seq, at_ms) for seq, at_ms in written if seq in by_number]
        self.written.clear()
        if self.is_kept:
            times = {by_number[seq]: at_ms for seq, at_ms in known}
            rest = {row: row.time_ms for row in by_number.values() if row not in times}
            self.written = dict(sorted({**rest, **times}.items(), key=lambda item: item[1]))
