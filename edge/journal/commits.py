"""When the journal is made durable, and when a snapshot is due.

    messages --> journal (memory), engine --> results          each turn of the loop
                     |
                  commit: one fdatasync                        the line is quiet, or `syncIntervalMs` have passed
                     |
                acknowledge                                    the broker forgets the messages
                     |
                  spool: rows with their numbers               every `spoolIntervalMs`
                     |
                  snapshot, forked                             the journal has grown by a multiple of the state

A crash at any point finds a message either in the journal or still at the broker, never in neither; and if the broker
sends again what the journal has, its packet id and content tell. Rows are committed to the spool after the journal
that holds their inputs, with the number of the last one, so that those a replay makes again are known.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from edge.clock import Clock
from edge.config import JournalConfig
from edge.intake.sources.base import Message
from edge.journal.record import Record
from edge.journal.snapshots import Snapshots
from edge.journal.window import Window
from edge.journal.writer import Journal

log = logging.getLogger("penstock.journal")

FAILURE_PAUSE_MS = 1_000
"""After a commit that failed (disk full) the next attempt waits this long."""

STATE_MULTIPLE = 4
"""A snapshot is due when the journal has grown by this many times the last one: writing stays within a factor."""

CHILD_POLL_MS = 50
"""How often the loop looks after a child that writes a snapshot."""


class Effects(Protocol):
    """What must be durable beside the journal."""

    def before(self) -> None:
        """Make dead letters durable: replay does not write them again. Raises OSError."""

    def after(self, *, force: bool) -> None:
        """Commit spooled rows if that is due (`force`: in any case). Raises OSError."""

    def due_in_ms(self) -> int | None:
        """How long until rows should be committed; None when there are none."""

    def state(self) -> dict[str, Any]:
        """The whole state of the gateway, for a snapshot."""


class Commits:
    """Owns the end of the journal. Used by the gateway loop only."""

    def __init__(
        self, journal: Journal, snapshots: Snapshots, clock: Clock, config: JournalConfig, effects: Effects
    ) -> None:
        self.journal = journal
        self.snapshots = snapshots
        self.made = self.failures = 0
        self.last_ms = 0
        self.latency_ms = 0
        """How long the loop may not have looked for messages: a line is quiet only after that."""
        self.problem: str | None = None
        self.snapshot_at = journal.position
        """Position of the last snapshot that was begun."""
        self.bytes = 0
        """Bytes of the journal on the disk, as of the last snapshot."""
        self._clock = clock
        self._config = config
        self._effects = effects
        self._acknowledge: list[tuple[Callable[[Any], None], Any]] = []
        self._messages = 0
        self._window = Window()
        self._first_ms: int | None = None
        self._last_ms = 0
        self._changed_ms: int | None = None
        self._not_before_ms = 0

    def share(self, streams: int) -> None:
        """So many streams are read: the flight recorder keeps its bytes for each."""
        self.snapshots.recorder_bytes = streams * self._config.recorder_bytes

    @property
    def unacknowledged(self) -> int:
        """Messages taken in and not acknowledged yet."""
        return self._messages

    @property
    def is_waited_for(self) -> bool:
        """Whether the broker sends nothing more before an acknowledgement, as far as its traffic shows."""
        return self._window.is_full(self._messages)

    def append(self, record: Record) -> None:
        """Record an input before it takes effect."""
        self.journal.append(record)
        self._changed()

    def append_batch(self, at_ms: int, messages: Sequence[Message]) -> None:
        """Record messages before they take effect."""
        self.journal.append_batch(at_ms, messages)
        self._changed()

    def received(self, acknowledge: Callable[[Any], None], receipt: Any, messages: int) -> None:
        """Remember to call `acknowledge(receipt)` when what was recorded until now is durable."""
        self._acknowledge.append((acknowledge, receipt))
        self._messages += messages
        self._last_ms = self._clock.monotonic_ms()
        if self._first_ms is None:
            self._first_ms = self._last_ms

    def _changed(self) -> None:
        if self._changed_ms is None:
            self._changed_ms = self._clock.monotonic_ms()

    def due_in_ms(self) -> int | None:
        """How long until `make` should be called; None when there is nothing to do."""
        now_ms = self._clock.monotonic_ms()
        due = []
        if self._first_ms is not None:
            due.append(0 if self.is_waited_for else self._sync_ms - now_ms)
        if self._changed_ms is not None:
            due.append(self._changed_ms + self._config.idle_interval_ms - now_ms)
        if (rows_ms := self._effects.due_in_ms()) is not None:
            due.append(rows_ms)
        if due:
            due = [max(0, min(due), self._not_before_ms - now_ms)]
        if self.snapshots.is_busy:
            due.append(CHILD_POLL_MS)
        return min(due, default=None)

    @property
    def _sync_ms(self) -> int:
        """When what has been received is to be acknowledged."""
        assert self._first_ms is not None
        return min(self._first_ms + self._config.sync_interval_ms, self._quiet_ms)

    @property
    def _quiet_ms(self) -> int:
        """From when on the line is quiet, unless something comes."""
        return self._last_ms + self.latency_ms + self._config.quiet_ms

    def make(self, *, force: bool = False) -> bool:
        """Make everything recorded durable and acknowledge it; False (and nothing acknowledged) when that failed.

        `force`: commit spooled rows too, though they are not due.
        """
        began_ms = self._clock.monotonic_ms()
        if self._messages and began_ms >= self._quiet_ms:
            self._window.fell_quiet(self._messages)
        if self.snapshots.poll():
            # On a full disk the journal of the older snapshot is given up.
            self.bytes = self.journal.forget(self.snapshots.newest if self.journal.is_short else self.snapshots.oldest)
        try:
            self._effects.before()
            self.journal.sync()
            if self.journal.is_short:
                self.journal.try_spare()
            self._first_ms = self._changed_ms = None
            self._acknowledge_all()
            self._effects.after(force=force)
        except OSError as error:
            self._failed(error)
            return False
        self.made += 1
        self._look_at_disk()
        self.last_ms = self._clock.monotonic_ms() - began_ms
        if self._wants_snapshot():
            self.snapshot(fork=True)
        return True

    def _look_at_disk(self) -> None:
        """All is written; but without room for the next segment nothing more may be taken in."""
        if self.journal.is_short:
            self._changed()
            self._not_before_ms = self._clock.monotonic_ms() + FAILURE_PAUSE_MS
            if self.problem is None:
                log.error("journal.disk_full", extra={"note": "intake stops until there is room"})
            self.problem = "the disk has no room for the next segment of the journal: free some, or wait for uploads"
        elif self.problem:
            log.info("journal.recovered")
            self.problem = None

    def _wants_snapshot(self) -> bool:
        grown = self.journal.position - self.snapshot_at
        if self.journal.is_short:  # what the snapshot covers makes room
            return grown > 0
        return grown >= max(self._config.snapshot_bytes, STATE_MULTIPLE * self.snapshots.last_bytes)

    def snapshot(self, *, fork: bool, in_haste: bool = False) -> bool:
        """Write the state as of now, by a child or at once; whether that went well so far."""
        if self.snapshots.is_busy:
            return True
        try:
            # A snapshot may hold no effect of an input that is not durable, nor stand for rows that are not spooled.
            self._effects.before()
            self.journal.sync()
            self._effects.after(force=True)
            position = self.journal.position
            if fork:
                self.snapshots.begin(position, self._effects.state, in_haste=in_haste)
            else:
                self.snapshots.make(position, self._effects.state)
                self.bytes = self.journal.forget(self.snapshots.oldest)
        except OSError as error:
            self._failed(error)
            return False
        self.snapshot_at = position
        return True

    def last_snapshot(self, until_ms: int) -> bool:
        """Store the state before an orderly end, so that the next start has nothing to replay; False where there is no
        time for it until the monotonic `until_ms`. A child writes, for it can be ended at any time."""
        self.snapshots.wait(until_ms)
        if self.snapshots.is_busy or not self.snapshot(fork=True, in_haste=True) or not self.snapshots.wait(until_ms):
            return False
        self.bytes = self.journal.forget(self.snapshots.oldest)
        return True

    def _failed(self, error: Exception) -> None:
        """Nothing more is acknowledged: the broker keeps the messages, intake stops, and we try again."""
        self.failures += 1
        self.problem = f"the journal cannot be written: {error}"
        self._not_before_ms = self._clock.monotonic_ms() + FAILURE_PAUSE_MS
        self._changed()
        log.error("journal.failed", extra={"error": str(error), "unacknowledged": self._messages})

    def _acknowledge_all(self) -> None:
        pending, self._acknowledge = self._acknowledge, []
        self._messages = 0
        for acknowledge, receipt in pending:
            acknowledge(receipt)

    def close(self) -> None:
        """Stop writing. What was not committed is as if it had not happened."""
        self.snapshots.abandon()
        self.journal.close()
