"""The spool as the place where checkpoints are kept: rows and state in one transaction."""

from __future__ import annotations

from collections.abc import Mapping

from cloud_sync.errors import SpoolError
from cloud_sync.spool import Spool
from edge.clock import Clock
from edge.delivery.dead_letters import DeadLetters


class SpoolState:
    """Implements `edge.checkpoint.checkpoints.StateStore`."""

    def __init__(self, spool: Spool, clock: Clock, dead_letters: DeadLetters) -> None:
        self._spool = spool
        self._clock = clock
        self._dead_letters = dead_letters

    def load_state(self) -> Mapping[str, bytes]:
        """Everything stored, by key."""
        return self._spool.state()

    def commit_state(self, changes: Mapping[str, bytes | None]) -> None:
        """Store all or nothing, with the rows appended so far; before it the dead letters."""
        self._dead_letters.sync()
        try:
            self._spool.commit(self._clock.now_ms(), changes)
        except SpoolError as error:
            raise OSError(str(error)) from error
