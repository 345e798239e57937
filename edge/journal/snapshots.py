"""Snapshots: the state of the gateway at a position of the journal, from which recovery replays the rest.

Each is an index and the pages that no older snapshot has (`edge.journal.pages`), so that a state of which
little changed costs little to write. The two newest share no file: a snapshot takes over pages of the one
before the last. If the newest cannot be read, the other one and a longer replay give the same state, so
these two are kept, with the journal since the older one. Older ones are kept for the flight recorder, as
long as the journal since then is within its bound. A large state is written by a forked child, which has it
as it was at the fork, while the loop goes on. The parent gives the finished files their names, so a child
that outlives it changes nothing.
"""

from __future__ import annotations

import gc
import logging
import os
import secrets
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from edge.base.forked import fork
from edge.clock import Clock
from edge.journal import pages
from edge.journal.disk import Disk
from edge.journal.pages import PAGES_SUFFIX
from edge.journal.reader import newer
from rules.problems import in_words

log = logging.getLogger("penstock.journal")

KEPT = 2

RECORDED_MAX = 8
"""Snapshots kept for the flight recorder, the two newest among them; those in the middle go first."""

SUFFIX = ".snapshot"
DRAFT_SUFFIX = ".draft"

GIVE_WAY = 5
"""By how much the niceness of a child is above that of the gateway."""

WAIT_STEP_MS = 5
"""The interval at which a gateway that ends checks the child."""

CHILD_MS_MAX = 600_000
"""A child that has not finished by then is ended and counts as failed."""

STATE_VERSION = 1
"""The form of what a state holds, the states of the rules included. A change that an older version would read
wrong gets the next number, so that the older version refuses it."""

Collect = Callable[[], dict[str, Any]]


class Snapshot(NamedTuple):
    """A state, and the position of the journal at which it was taken."""

    position: int
    state: dict[str, Any]


def snapshot_files(directory: Path) -> list[tuple[int, Path]]:
    """The snapshots of a directory, each with its position in the journal, the oldest first."""
    return sorted((int(path.stem), path) for path in directory.glob(f"*{SUFFIX}") if path.stem.isdigit())


class _Draft(NamedTuple):
    """The files of a snapshot that have no name yet.

    older   the snapshots that there are, the newest first
    run     of the process, in which blocks of one mark are equal
    """

    position: int
    number: int
    head: Path
    pages: Path
    older: list[Path]
    began_ms: int
    run: str

    def write(self, disk: Disk, state: dict[str, Any]) -> None:
        """Write both, durably."""
        index, bodies = pages.encode(state, self.number, pages.reusable(self.older), self.run)
        disk.write_file(self.pages, bodies)
        disk.write_file(self.head, index)


class _Child(NamedTuple):
    pid: int
    draft: _Draft


class Snapshots:
    """The snapshot files of a directory. Used by the gateway loop only."""

    def __init__(self, directory: Path, clock: Clock, disk: Disk | None = None) -> None:
        self.directory = directory
        self.made = self.failures = 0
        self.last_bytes = self.last_ms = 0
        """What the newest snapshot has on the disk, pages of older ones included, and how long it took."""
        self.last_at_ms: int | None = None
        """Monotonic time of the newest snapshot of this run."""
        self.written_bytes = 0
        self.recorder_bytes = 0
        """The bytes of journal before the newest snapshot that are kept for the flight recorder."""
        self.sizes: dict[str, int] = {}
        """Size of each rule's state in the newest snapshot of this run."""
        self._clock = clock
        self._run = secrets.token_hex(8)
        self._disk = disk or Disk()
        self._disk.make_folder(directory)
        self._child: _Child | None = None
        for draft in directory.glob(f"*{DRAFT_SUFFIX}"):
            self._disk.remove(draft)

    def load(self) -> Snapshot | None:
        """The newest snapshot that can be read; each unreadable one is logged. Raises UsageError for a state
        of a newer version."""
        for position, path in reversed(self._files()):
            try:
                state = pages.read(path)
                self.last_bytes = _stored_bytes(path)
            except (OSError, ValueError) as error:
                note = (
                    "the one before it and a longer part of the journal give the same state; check the disk"
                )
                log.error(
                    "snapshot.unreadable", extra={"file": str(path), "error": in_words(error), "note": note}
                )
                continue
            if (version := state.get("version", STATE_VERSION)) != STATE_VERSION:
                raise newer(path, f"state {version}")
            return Snapshot(position, state)
        return None

    @property
    def oldest(self) -> int:
        """The position from which the journal must be kept; 0 before the first snapshots."""
        files = self._files()
        return files[0][0] if len(files) >= KEPT else 0

    @property
    def newest(self) -> int:
        """The position of the newest snapshot; 0 before the first."""
        return max((position for position, _ in self._files()), default=0)

    @property
    def is_busy(self) -> bool:
        """True while a child writes a snapshot."""
        return self._child is not None

    def make(self, position: int, collect: Collect) -> None:
        """Write a snapshot now. Raises OSError."""
        draft = self._draft(position)
        draft.write(self._disk, collect())
        self._finish(draft)

    def begin(self, position: int, collect: Collect, *, in_haste: bool = False) -> None:
        """Let a forked child write a snapshot of the present state; `poll` finishes it. Raises OSError.

        The child gives way to the rules, unless `in_haste`.
        """
        draft = self._draft(position)
        nice = 0 if in_haste else GIVE_WAY
        self._child = _Child(fork(lambda: _write(draft, collect, nice)), draft)

    def poll(self) -> bool:
        """Finish the child's snapshot if it is done; whether there is a new one."""
        child = self._child
        if child is None:
            return False
        ended, status = os.waitpid(child.pid, os.WNOHANG)
        if not ended:
            if self._clock.monotonic_ms() - child.draft.began_ms > CHILD_MS_MAX:
                os.kill(child.pid, signal.SIGKILL)
            return False
        self._child = None
        if os.waitstatus_to_exitcode(status) != 0:
            self._failed(child.draft, f"the writing process ended with {os.waitstatus_to_exitcode(status)}")
            return False
        try:
            self._finish(child.draft)
        except OSError as error:
            self._failed(child.draft, in_words(error))
            return False
        return True

    def wait(self, until_ms: int) -> bool:
        """Wait for the child until a monotonic time; whether there is a new snapshot."""
        nobody = threading.Condition()
        while self._child is not None and self._clock.monotonic_ms() < until_ms:
            if self.poll():
                return True
            with nobody:
                self._clock.wait(nobody, WAIT_STEP_MS)
        return False

    def abandon(self) -> None:
        """End a child that is writing: the gateway stops."""
        if self._child is not None:
            os.kill(self._child.pid, signal.SIGKILL)
            os.waitpid(self._child.pid, 0)
            self._discard(self._child.draft)
            self._child = None

    def _failed(self, draft: _Draft, why: str) -> None:
        self.failures += 1
        self._discard(draft)
        log.error("snapshot.failed", extra={"error": why})

    def _discard(self, draft: _Draft) -> None:
        self._disk.remove(draft.head)
        self._disk.remove(draft.pages)

    def _finish(self, draft: _Draft) -> None:
        """Give the files their names, the pages first: an index has its pages from the start."""
        summary = pages.read_summary(draft.head)
        self.written_bytes += draft.head.stat().st_size + draft.pages.stat().st_size
        self._disk.rename(draft.pages, pages.pages_path(self.directory, draft.number))
        self._disk.rename(draft.head, self._path(draft.position))
        self.sizes = summary.sizes
        self.last_bytes = summary.stored_bytes
        self.made += 1
        self.last_at_ms = self._clock.monotonic_ms()
        self.last_ms = self.last_at_ms - draft.began_ms
        for path in self._superfluous():
            self._disk.remove(path)
        for path in pages.unused((path for _, path in self._files()), self.directory):
            self._disk.remove(path)

    def _superfluous(self) -> list[Path]:
        """Snapshots that neither a restart needs nor the flight recorder."""
        newest, *rest = reversed(self._files())
        beside, older = rest[: KEPT - 1], rest[KEPT - 1 :]
        recorded = [item for item in older if newest[0] - item[0] <= self.recorder_bytes]
        kept = recorded[-1:] + recorded[:-1][: RECORDED_MAX - KEPT - 1]
        return [path for position, path in rest if (position, path) not in (*beside, *kept)]

    def _files(self) -> list[tuple[int, Path]]:
        return snapshot_files(self.directory)

    def _path(self, position: int) -> Path:
        return self.directory / f"{position:020}{SUFFIX}"

    def _draft(self, position: int) -> _Draft:
        name = self.directory / f"{position:020}.{os.getpid()}"
        return _Draft(
            position,
            1 + max((number for number, _ in pages.numbered(self.directory)), default=0),
            name.with_suffix(f"{name.suffix}{DRAFT_SUFFIX}"),
            name.with_suffix(f"{name.suffix}{PAGES_SUFFIX}{DRAFT_SUFFIX}"),
            [path for _, path in reversed(self._files())],
            self._clock.monotonic_ms(),
            self._run,
        )


def _stored_bytes(path: Path) -> int:
    """The bytes of a snapshot on the disk; one of the version without pages is one file."""
    try:
        return pages.read_summary(path).stored_bytes
    except ValueError:
        return path.stat().st_size


def _write(draft: _Draft, collect: Collect, nice: int) -> None:
    """The work of the child."""
    gc.disable()
    os.nice(nice)
    draft.write(Disk(), collect())
