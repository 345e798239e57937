"""The uploader: rows leave the spool as files that count exactly once in the cloud.

    plan (durable) -> schema, if new -> data file -> manifest -> acknowledge (rows deleted, durable)

A crash between any two steps is repaired by doing the same again: the plan fixes the boundaries, the name
follows from the content, and both uploads are create-if-absent. "Already there" with the same content means
done. With another content the uploader does not overwrite it: it sets the rows aside, counts them, and goes
on with the others. A file that is too large for the target is divided; a row that is too large is set aside.

Time comes in as an argument; `UploadWorker` runs the steps in a thread of its own.
"""

from __future__ import annotations

import hashlib
import logging
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cloud_sync.errors import SpoolError, TargetError, TooLarge
from cloud_sync.heartbeat import Pulse
from cloud_sync.names import schema_name
from cloud_sync.records import SpooledRow
from cloud_sync.signing import is_same
from cloud_sync.spool import PlannedFile, Spool
from cloud_sync.targets.base import Target
from cloud_sync.upload_files import form_file, manifest
from sinks.backoff import Backoff

LOG = logging.getLogger("penstock.uploader")


BACKOFF = Backoff(1_000, 30_000)
"""The waiting time after a failure."""


@dataclass(frozen=True, slots=True)
class UploadSettings:
    """The bounds of a file, and the time between heartbeats.

    A file holds rows of one rule and one date: at most `rows_max` rows and `bytes_max` bytes before
    compression. It is formed when `rows_max` rows wait, when the oldest has waited `wait_ms`, or when the
    spool is more than half full. `heartbeat_ms`: between two heartbeats (`cloud_sync.heartbeat`); 0 writes
    none. `sign_key`: signs manifests (`cloud_sync.signing`); empty for none.
    """

    rows_max: int = 20_000
    bytes_max: int = 8_000_000
    wait_ms: int = 60_000
    heartbeat_ms: int = 0
    sign_key: str = field(default="", repr=False)


@dataclass(slots=True)
class UploadStats:
    """Counters since start. `divided` files were too large for the target. `failures` in a row until now;
    `last_error` is empty when the last step worked."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    retries: int = 0
    divided: int = 0
    failures: int = 0
    last_error: str = ""


class Conflict(Exception):
    """The target has another content under our name."""


class Uploader:
    """The upload of one spool's rows to one target, one file per step. Not thread-safe; the spool is."""

    def __init__(
        self,
        spool: Spool,
        target: Target,
        settings: UploadSettings | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.stats = UploadStats()
        self._spool = spool
        self._outgoing = spool.outgoing
        self._target = target
        self._settings = settings or UploadSettings()
        self._bytes_max = self._settings.bytes_max
        """The bound of a file: less than that of the settings once the target has refused a size."""
        self._random = rng or random.Random()
        self._schemas: set[str] = set()
        """The schemas that the target has, as far as this process knows."""
        self._pulse = Pulse(spool, target, self._settings.heartbeat_ms)

    def step(self, now_ms: int, *, force: bool = False) -> int:
        """Upload at most one file; the milliseconds after which to call again (0: there may be more).

        `force` takes the rows that are there without waiting for more. Failures of the target or the disk are
        counted and lead to a longer wait; they are never raised.
        """
        try:
            if self._settings.heartbeat_ms:
                self._pulse.compare()
            formed = self._formed(now_ms, force)
            if formed is not None:
                self._upload(*formed, now_ms)
            self._pulse.beat_if_due(now_ms)
        except (TargetError, SpoolError) as error:
            return self._failed(str(error))
        if self.stats.failures:
            LOG.info("upload.recovered", extra={"retries": self.stats.failures})
        self.stats.failures, self.stats.last_error = 0, ""
        return 0 if formed is not None else self._idle_ms(now_ms)

    def drain(self, now_ms: int) -> None:
        """Upload everything that waits. Raises TargetError or SpoolError at the first failure."""
        while (formed := self._formed(now_ms, force=True)) is not None:
            self._upload(*formed, now_ms)

    def _failed(self, reason: str) -> int:
        if reason != self.stats.last_error:
            LOG.warning("upload.failed", extra={"error": reason})
        self.stats.failures += 1
        self.stats.retries += 1
        self.stats.last_error = reason
        return BACKOFF.wait_ms(self.stats.failures, self._random)

    def _idle_ms(self, now_ms: int) -> int:
        oldest = self._outgoing.oldest()
        waited_ms = 0 if oldest is None else max(0, now_ms - oldest.created_ms)
        wait_ms, beat_ms = self._settings.wait_ms - waited_ms, self._pulse.wait_ms(now_ms)
        return max(1, wait_ms if beat_ms is None else min(wait_ms, beat_ms))

    # --- what to upload -------------------------------------------------------------------------------------

    def _formed(self, now_ms: int, force: bool) -> tuple[PlannedFile, bytes | None] | None:
        """The file to upload now, planned durably, with its content (None if the target has it already)."""
        if (planned := self._outgoing.planned()) is not None:
            return self._formed_again(planned) or self._formed(now_ms, force)
        oldest = self._outgoing.oldest()
        if oldest is None or not (force or self._is_due(oldest.created_ms, now_ms)):
            return None
        bounds = self._settings.rows_max, self._bytes_max
        rows = self._outgoing.take(oldest.rule, oldest.date, *bounds, schema=oldest.schema)
        if not rows:  # all were damaged and are set aside now
            self._outgoing.check_left(oldest)
            return self._formed(now_ms, force)
        planned, content = self._file(rows)
        return (planned, content) if self._outgoing.plan(planned) else self._formed(now_ms, force)

    def _is_due(self, created_ms: int, now_ms: int) -> bool:
        waited = now_ms - created_ms >= self._settings.wait_ms
        return waited or self._spool.waiting_rows >= self._settings.rows_max or self._spool.is_pressed

    def _formed_again(self, planned: PlannedFile) -> tuple[PlannedFile, bytes | None] | None:
        """The content of a file planned before a crash or a failure; None when no row of it is left."""
        rows = self._rows_of(planned)
        if rows:
            again, content = self._file(rows)
            if again.name == planned.name:
                return again, content
        # A row was damaged since, or another compressor is in use now. What was uploaded
        # under the old name counts.
        if _has(self._target, planned):
            return planned, None
        if not rows:
            self._outgoing.cancel(planned)
            return None
        self._outgoing.plan(again, instead_of=planned)
        return again, content

    def _rows_of(self, planned: PlannedFile, bytes_max: int = 2**62) -> list[SpooledRow]:
        """The intact rows of a planned file, or the first of them within a bound."""
        of = planned.rule, planned.date
        return self._outgoing.take(*of, 2**31, bytes_max, planned.last_seq, planned.schema)

    def _file(self, rows: Sequence[SpooledRow]) -> tuple[PlannedFile, bytes]:
        return form_file(rows, self._spool.gateway, self._spool.spool_id, self._spool.layout)

    # --- uploading ------------------------------------------------------------------------------------------

    def _upload(self, planned: PlannedFile, content: bytes | None, now_ms: int) -> None:
        spool = self._spool
        try:
            if planned.schema and planned.schema not in self._schemas:
                self._upload_schema(planned)
            if content is not None:
                self._put(planned.name, content)
            if spool.layout.manifest is not None:
                told = manifest(planned, spool.gateway, spool.spool_id, self._settings.sign_key)
                self._put(spool.layout.manifest(planned.name, now_ms), told)
        except Conflict as conflict:
            LOG.error("upload.conflict", extra={"file": planned.name, "rule": planned.rule})
            self._outgoing.set_aside(planned, str(conflict), conflicts=1)
            return
        except TooLarge as refusal:
            self._divide(planned, refusal)
            return
        self._outgoing.acknowledge(planned)
        self.stats.files += 1
        self.stats.rows += planned.rows
        self.stats.bytes += planned.bytes

    def _divide(self, planned: PlannedFile, refusal: TooLarge) -> None:
        """Plan the first half of a file that is too large for the target, and make no larger ones from now
        on. A row that is too large alone is set aside."""
        rows = self._rows_of(planned)
        if len(rows) < 2:
            LOG.error("upload.refused", extra={"file": planned.name, "rule": planned.rule})
            self._outgoing.set_aside(planned, f"the target refuses this row alone: {refusal}")
            return
        LOG.warning("upload.divided", extra={"file": planned.name, "error": str(refusal)})
        self.stats.divided += 1
        self._bytes_max = sum(len(row.body) for row in rows) // 2
        smaller, _ = self._file(self._rows_of(planned, self._bytes_max))
        self._outgoing.plan(smaller, instead_of=planned)

    def _upload_schema(self, planned: PlannedFile) -> None:
        """Upload the schema of a file, before the file. Raises Conflict if the spool has lost it."""
        content = self._outgoing.schema(planned.schema)
        if content is None:
            raise Conflict(
                f"the schema {planned.schema} of the rows is damaged; the rule's next row brings it back"
            )
        self._put(schema_name(planned.rule, planned.schema), content)
        self._schemas.add(planned.schema)

    def _put(self, name: str, content: bytes) -> None:
        if self._target.put_if_absent(name, content):
            return
        there = self._target.get(name)
        if there is None or not is_same(there, content):
            raise Conflict(f"the target holds another content under {name}")


def _has(target: Target, planned: PlannedFile) -> bool:
    """True if exactly the planned bytes arrived."""
    content = target.get(planned.name)
    return content is not None and hashlib.sha256(content).hexdigest() == planned.sha256


class Clock(Protocol):
    """The time source of the worker; the daemon's clock fits."""

    def now_ms(self) -> int: ...

    def is_sane(self) -> bool:
        """True if the wall clock has been set. Uploads wait for it, because files are made by age."""

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> None: ...


CLOCK_CHECK_MS = 1_000
"""The interval at which a worker checks whether the clock has been set."""

DEFECT_WAIT_MS = 60_000
"""The time that a worker waits after an unforeseen failure."""


class UploadWorker:
    """A thread that runs an uploader until it is closed."""

    def __init__(self, uploader: Uploader, clock: Clock) -> None:
        self._uploader = uploader
        self._clock = clock
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="uploader", daemon=True)

    def start(self) -> None:
        """Begin to upload."""
        self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Stop after the file in hand; False if it did not end in time (the thread dies
        with the process then)."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._closing:
            sane = self._clock.is_sane()
            wait_ms = self._step() if sane else CLOCK_CHECK_MS
            with self._changed:
                if wait_ms and not self._closing:
                    self._clock.wait(self._changed, wait_ms)

    def _step(self) -> int:
        try:
            return self._uploader.step(self._clock.now_ms())
        except Exception:  # a defect must not end all uploads; the rows stay in the spool
            LOG.exception("upload.defect")
            return DEFECT_WAIT_MS
