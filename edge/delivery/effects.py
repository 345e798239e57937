"""The data that a commit makes durable beside the journal: dead letters before it, spooled rows after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cloud_sync.errors import SpoolError
from edge.clock import Clock
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.spools import Spools

WAITING_BYTES_MAX = 2_000_000
"""Bytes of dead letters that may wait in memory for a commit."""


class CommitEffects:
    """Implements `edge.journal.commits.Effects`."""

    def __init__(
        self, spools: Spools, clock: Clock, dead_letters: DeadLetters, state: Callable[[], dict[str, Any]]
    ) -> None:
        self._spools = spools
        self._clock = clock
        self._dead_letters = dead_letters
        self.state = state

    @property
    def is_synced(self) -> bool:
        """True if all dead letters are durable."""
        return self._dead_letters.is_synced

    def before(self) -> None:
        """Make the dead letters durable; on any thread. Raises OSError."""
        self._dead_letters.sync()

    def due_in_ms(self) -> int | None:
        """The time until a spool is due to commit; 0 if enough large dead letters wait to be written."""
        if self._dead_letters.waiting_bytes >= WAITING_BYTES_MAX:
            return 0
        due: list[int] = []
        for spool in self._spools.opened:  # called in each turn of the loop: no comprehension
            if spool.pending.rows and (due_ms := spool.due_ms) is not None:
                due.append(due_ms)  # noqa: PERF401
        return max(0, min(due) - self._clock.now_ms()) if due else None

    def rows(self, *, force: bool) -> Sequence[int]:
        """The number of rows to enter each spool's file now: all that wait if that is due, or with
        `force`; else none."""
        due_ms = self.due_in_ms()
        if due_ms is None or not (force or due_ms == 0):
            return ()
        return [spool.pending_rows for spool in self._spools.opened]

    def after(self, rows: Sequence[int]) -> None:
        """Commit so many rows of each spool, the first that wait; on any thread. Raises OSError."""
        try:
            for spool, count in zip(self._spools.opened, rows, strict=False):
                if count:
                    spool.commit(self._clock.now_ms(), rows_max=count)
        except SpoolError as error:
            raise OSError(str(error)) from error
