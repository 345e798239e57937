"""The data that a commit makes durable beside the journal: dead letters before it, spooled rows after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloud_sync.errors import SpoolError
from cloud_sync.spool import Spool
from edge.clock import Clock
from edge.delivery.dead_letters import DeadLetters

WAITING_BYTES_MAX = 2_000_000
"""Bytes of dead letters that may wait in memory for a commit."""


class Effects:
    """Implements `edge.journal.commits.Effects`."""

    def __init__(
        self, spool: Spool, clock: Clock, dead_letters: DeadLetters, state: Callable[[], dict[str, Any]]
    ) -> None:
        self._spool = spool
        self._clock = clock
        self._dead_letters = dead_letters
        self.state = state

    def before(self) -> None:
        """Make the dead letters durable; on any thread. Raises OSError."""
        self._dead_letters.sync()

    def due_in_ms(self) -> int | None:
        """The time until the spool is due to commit; 0 if enough large dead letters wait to be written."""
        if self._dead_letters.waiting_bytes >= WAITING_BYTES_MAX:
            return 0
        due_ms = self._spool.due_ms
        return None if due_ms is None else max(0, due_ms - self._clock.now_ms())

    def rows(self, *, force: bool) -> int:
        """The number of rows to enter the spool's file now: all that wait if that is due, or with
        `force`; else none."""
        due_ms = self.due_in_ms()
        return 0 if due_ms is None or not (force or due_ms == 0) else self._spool.pending_rows

    def after(self, rows: int) -> None:
        """Commit so many rows, the first that wait; on any thread. Raises OSError."""
        try:
            self._spool.commit(self._clock.now_ms(), rows_max=rows)
        except SpoolError as error:
            raise OSError(str(error)) from error
