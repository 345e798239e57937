"""When the journal is made durable, and when a snapshot is due.

    messages --> journal (memory), engine --> results          each turn of the loop
                     |
                  commit: one fdatasync                        the line is quiet, or `syncIntervalMs` passed
                     |
                acknowledge                                    the broker forgets the messages
                     |
                  spool: rows with their numbers               every `spoolIntervalMs`
                     |
                  snapshot, forked                             the journal grew by a multiple of the state
                     |
                  its name                                     a later commit: all it stands for is durable

A crash at any point finds a message either in the journal or still at the broker, never in neither; and if
the broker sends again what the journal has, its packet id and content show it. Rows are committed to the
spool after the journal that holds their inputs, with the number of the last one, so that those a replay
makes again are known.

Messages that leave nothing which a crash could lose need no commit before they are acknowledged (`settle`):
no rule that they reached keeps state, and sinks have all of their results.
Their records are written with the next one.

On a slow disk a thread writes and syncs, and the loop goes on: what is appended
meanwhile is for the next commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from edge.base.message import Message
from edge.clock import Clock
from edge.config import JournalConfig
from edge.journal.acknowledgements import Acknowledgements
from edge.journal.background import Background
from edge.journal.record import Record
from edge.journal.snapshots import Snapshots
from edge.journal.wear import Wear
from edge.journal.writer import Journal
from rules.problems import in_words

log = logging.getLogger("penstock.journal")

FAILURE_PAUSE_MS = 1_000
"""After a commit that failed (disk full) the next attempt waits this long."""

STATE_MULTIPLE = 4
"""A snapshot is due when the journal has grown by this many times the last one: writing
stays within a factor."""

CHILD_POLL_MS = 50
"""The interval at which the loop checks a child that writes a snapshot."""


class Effects(Protocol):
    """Data that a commit makes durable beside the journal. `before` and `after` may be called on a thread."""

    @property
    def is_synced(self) -> bool:
        """True if `before` has nothing to do."""

    def before(self) -> None:
        """Make durable the data that must be so before the messages are acknowledged. Raises OSError."""

    def due_in_ms(self) -> int | None:
        """The time until spooled rows are to be committed; None when there are none."""

    def rows(self, *, force: bool) -> Sequence[int]:
        """The number of rows of each spool to be committed now; empty for none.
        `force`: even if they are not due."""

    def after(self, rows: Sequence[int]) -> None:
        """Commit these numbers of rows, whose inputs the journal has. Raises OSError."""

    def state(self) -> dict[str, Any]:
        """The whole state of the gateway, for a snapshot."""


class Commits:
    """Owns the end of the journal. Used by the gateway loop only."""

    def __init__(
        self,
        journal: Journal,
        snapshots: Snapshots,
        clock: Clock,
        config: JournalConfig,
        effects: Effects,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`wake` ends the sleep of the loop; it is called on a thread when a commit has ended there."""
        self.journal = journal
        self.snapshots = snapshots
        self.made = self.failures = 0
        self.last_ms = 0
        self.problem: str | None = None
        self.snapshot_at = journal.position
        """Position of the last snapshot that was begun."""
        self._is_covered = True
        """All that the snapshot under way stands for is durable: its inputs, and the rows they caused."""
        self.bytes = 0
        """Bytes of the journal on the disk, as of the last snapshot."""
        self._clock = clock
        self._config = config
        self._effects = effects
        self.wear = Wear(config.bytes_per_day, clock.monotonic_ms())
        self.background = Background(clock, wake)
        """It writes and syncs, on a thread where the disk is slow."""
        self._then: Callable[[], bool] = lambda: True
        self._began_ms = 0
        self.acknowledgements = Acknowledgements()
        self.idle_interval_ms = config.idle_interval_ms
        """The longest time until something is durable for which no acknowledgement waits."""
        self._changed_ms: int | None = None
        self._not_before_ms = 0
        self.latency_ms = 0
        """The longest time for which the loop does not read messages."""

    @property
    def _quiet_ms(self) -> int:
        """The time without messages after which a line is quiet."""
        return self.latency_ms + self._config.quiet_ms

    def share(self, streams: int) -> None:
        """Set the number of streams that are read: the flight recorder keeps its bytes for each."""
        self.snapshots.recorder_bytes = streams * self._config.recorder_bytes

    def append(self, record: Record) -> None:
        """Record an input before it takes effect."""
        self.journal.append(record)
        self._changed()

    def append_batch(self, at_ms: int, messages: Sequence[Message], connection: str = "") -> None:
        """Record messages of one connection before they take effect."""
        self.journal.append_batch(at_ms, messages, connection)
        if self._changed_ms is None:
            self._changed()

    def settle(self) -> None:
        """Acknowledge what waits as far as no commit is needed for it, also while one is under way."""
        if self._effects.is_synced:
            self.acknowledgements.settle(self._clock.monotonic_ms(), self._quiet_ms)

    def _changed(self) -> None:
        """Something was recorded, or a commit is to be tried again."""
        if self._changed_ms is None:
            self._changed_ms = self._clock.monotonic_ms()

    def due_in_ms(self, now_ms: int) -> int | None:
        """The time from `now_ms`, on the monotonic clock, until `make` should be called; None when there is
        nothing to do."""
        if self.background.is_busy:  # its end wakes the loop
            return 0 if self.background.is_done else None
        config = self._config
        due = []
        if self.acknowledgements.messages:
            acknowledge_ms = self.acknowledgements.due_ms(config.sync_interval_ms, self._quiet_ms)
            if acknowledge_ms is not None:
                due.append(acknowledge_ms - now_ms)
        if self._changed_ms is not None:
            due.append(self._changed_ms + self.idle_interval_ms - now_ms)
        if (rows_ms := self._effects.due_in_ms()) is not None:
            due.append(rows_ms)
        if due:
            due = [max(0, min(due), self._not_before_ms - now_ms)]
        if self.snapshots.is_busy:
            due.append(CHILD_POLL_MS)
        return min(due, default=None)

    def make(self, *, force: bool = False) -> bool:
        """Begin to make everything recorded durable and to acknowledge it, or go on with that.

        False when it failed: nothing of it is acknowledged then.
        `force`: return when it is done, and commit spooled rows too, though they are not due.
        """
        if self.background.is_busy:
            if not self._went_on(wait=force):
                return False
            if not force and self.due_in_ms(self._clock.monotonic_ms()) != 0:
                return True
        self._began_ms = self._clock.monotonic_ms()
        if self._is_covered and self.snapshots.poll():
            # On a full disk the journal of the older snapshot is given up.
            self.bytes = self.journal.forget(
                self.snapshots.newest if self.journal.is_short else self.snapshots.oldest
            )
        self.acknowledgements.begin(self._began_ms, self._quiet_ms)
        self._changed_ms = None
        # Only these rows: what is appended from now on belongs to inputs that this commit does not hold.
        rows = self._effects.rows(force=force or not self._is_covered)
        handed = self.journal.begin()
        covers = self.snapshots.is_busy

        def write() -> None:
            self._effects.before()
            self.journal.write(handed)

        return self._run(write, partial(self._stored, rows, covers, force), force=force)

    def _run(self, work: Callable[[], None], then: Callable[[], bool], *, force: bool) -> bool:
        """Do the work, now or on the thread, and what follows it."""
        self._then = then
        self.background.begin(work, at_once=force)
        return self._end() if self.background.is_done else True

    def _went_on(self, *, wait: bool) -> bool:
        """Go on with the commit under way as far as its work is done, or to its end; False when it failed."""
        while self.background.is_busy and (wait or self.background.is_done):
            if not self._end():
                return False
        return True

    def _end(self) -> bool:
        """Take the result of the work under way, which is waited for, and begin what follows it."""
        try:
            self.background.patience_ms = self.latency_ms
            self.background.end()
        except OSError as error:
            self._failed(error)
            return False
        return self._then()

    def _stored(self, rows: Sequence[int], covers: bool, force: bool) -> bool:
        """Acknowledge the recorded messages, which are durable now, and commit the rows behind them."""
        self.acknowledgements.succeed()
        if not rows:
            return self._made(covers)
        return self._run(partial(self._effects.after, rows), partial(self._made, covers), force=force)

    def _made(self, covers: bool) -> bool:
        """The commit is complete. `covers`: it began after the fork of the snapshot under way."""
        self.made += 1
        self._is_covered = self._is_covered or covers
        self._look_at_disk()
        now_ms = self._clock.monotonic_ms()
        self.last_ms = now_ms - self._began_ms
        self.wear.note(now_ms, self.journal.written_bytes + self.snapshots.written_bytes)
        grown = self.journal.position - self.snapshot_at
        enough = max(self._config.snapshot_bytes, STATE_MULTIPLE * self.snapshots.last_bytes)
        if (grown >= enough or (grown and self.journal.is_short)) and not self.snapshots.is_busy:
            self._begin_snapshot()  # older segments can be removed when it is there
        return True

    def _look_at_disk(self) -> None:
        """All is written; but without room for the next segment nothing more may be taken in."""
        if self.journal.is_short:
            self._changed()
            self._not_before_ms = self._clock.monotonic_ms() + FAILURE_PAUSE_MS
            if self.problem is None:
                log.error("journal.disk_full", extra={"note": "intake stops until there is room"})
            self.problem = (
                "the disk has no room for the next segment of the journal "
                f"({self._config.segment_bytes / 1e6:g} MB): free some, or wait for uploads"
            )
        elif self.problem:
            log.info("journal.recovered")
            self.problem = None

    def _begin_snapshot(self, *, in_haste: bool = False) -> bool:
        """Let a child write the state as of now; whether that went well so far.

        A snapshot may hold no effect of an input that is not durable, nor stand for rows that are not
        spooled. The loop does not wait for that: a later commit sees to it, and then the files get names.
        """
        position = self.journal.end_frame()
        try:
            self.snapshots.begin(position, self._effects.state, in_haste=in_haste)
        except OSError as error:
            self._failed(error)
            return False
        self._is_covered = False
        self.snapshot_at = position
        return True

    def snapshot(self) -> bool:
        """Make everything durable, and write the state as of now; whether that went well."""
        if not self.make(force=True):
            return False
        if self.snapshots.is_busy:
            return True
        try:
            self.snapshots.make(self.journal.position, self._effects.state)
            self.bytes = self.journal.forget(self.snapshots.oldest)
        except OSError as error:
            self._failed(error)
            return False
        self.snapshot_at = self.journal.position
        return True

    def last_snapshot(self, until_ms: int) -> bool:
        """Store the state before an orderly end, so that the next start has nothing to replay; False where
        there is no time for it until the monotonic `until_ms`. A child writes, for it can be ended at any
        time."""
        if not self.make(force=True):
            return False
        self.snapshots.wait(until_ms)
        if (
            self.snapshots.is_busy
            or not self._begin_snapshot(in_haste=True)
            or not self.snapshots.wait(until_ms)
        ):
            return False
        self.bytes = self.journal.forget(self.snapshots.oldest)
        return True

    def _failed(self, error: Exception) -> None:
        """Acknowledge nothing: the broker keeps the messages, intake stops, the commit is tried again."""
        self.failures += 1
        self.problem = f"the journal cannot be written: {in_words(error)}"
        self._not_before_ms = self._clock.monotonic_ms() + FAILURE_PAUSE_MS
        self._changed()
        self.acknowledgements.fail(self._clock.monotonic_ms())
        log.error(
            "journal.failed",
            extra={"error": in_words(error), "unacknowledged": self.acknowledgements.messages},
        )

    def close(self) -> None:
        """Stop writing. What was not committed is as if it had not happened."""
        self.snapshots.abandon()
        self.background.close()
        self.journal.close()
