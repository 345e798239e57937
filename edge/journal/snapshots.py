"""Snapshots: the whole state of the gateway at a position of the journal, from which
recovery replays the rest.

The two newest are kept, with the journal since the older one: if the newest cannot be read, the other one and
a longer replay give the same state. Older ones are kept for the flight recorder, as long as the journal since
then is within its bound. A large state is written by a forked child, which has it as it was at the fork,
while the loop goes on. The parent gives the finished file its name, so a child that outlives it changes
nothing.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import struct
import threading
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from edge.clock import Clock
from edge.journal.disk import Disk
from sinks import lossless_json

log = logging.getLogger("penstock.journal")

KEPT = 2

RECORDED_MAX = 8
"""Snapshots kept for the flight recorder, the two newest among them; those in the middle go first."""

RULES = "rules"
"""The part of a state that is stored rule by rule."""

SUFFIX = ".snapshot"
DRAFT_SUFFIX = ".draft"
_HEADER = struct.Struct("<8sII")
_MAGIC = b"penstkS1"

GIVE_WAY = 5
"""By how much the niceness of a child is above that of the gateway."""

WAIT_STEP_MS = 5
"""How often a gateway that ends looks after the child."""

CHILD_MS_MAX = 600_000
"""A child that has not finished by then is ended and counts as failed."""

Collect = Callable[[], dict[str, Any]]


class Snapshot(NamedTuple):
    """A state, and the position of the journal at which it was taken."""

    position: int
    state: dict[str, Any]


class _Child(NamedTuple):
    pid: int
    position: int
    draft: Path
    began_ms: int


def encode(state: dict[str, Any]) -> bytes:
    """A state as the bytes of its file: an index, then one part for each rule and one for everything else."""
    parts = {"": {key: value for key, value in state.items() if key != RULES}, **state[RULES]}
    index, bodies = [], []
    for name, value in parts.items():
        plain = lossless_json.encode(value)
        body = zlib.compress(plain, 1)
        index.append([name, len(body), zlib.crc32(body), len(plain)])
        bodies.append(body)
    head = lossless_json.encode(index)
    return b"".join([_HEADER.pack(_MAGIC, len(head), zlib.crc32(head)), head, *bodies])


def decode(data: bytes) -> dict[str, Any]:
    """What `encode` was given. Raises ValueError for anything else."""
    index, at = _index(data)
    rules: dict[str, Any] = {}
    for name, length, check, _ in index:
        body = data[at : at + length]
        if zlib.crc32(body) != check:
            raise ValueError(f"the checksum of {name or 'the head'} does not fit")
        rules[name] = lossless_json.decode(zlib.decompress(body))
        at += length
    state: dict[str, Any] = rules.pop("")
    return state | {RULES: rules}


def sizes(path: Path) -> dict[str, int]:
    """The size of each rule's state, from the beginning of a snapshot's file. Raises OSError and
    ValueError."""
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) == _HEADER.size:
            head += file.read(_HEADER.unpack(head)[1])
    return {name: plain for name, _, _, plain in _index(head)[0] if name}


def _index(data: bytes) -> tuple[list[Any], int]:
    """The index of a snapshot's file, and where its parts begin."""
    if len(data) < _HEADER.size:
        raise ValueError("the file is too short")
    magic, length, check = _HEADER.unpack_from(data)
    head = data[_HEADER.size : _HEADER.size + length]
    if magic != _MAGIC or zlib.crc32(head) != check:
        raise ValueError("its checksum does not fit")
    return lossless_json.decode(head), _HEADER.size + length


class Snapshots:
    """The snapshot files of a directory. Used by the gateway loop only."""

    def __init__(self, directory: Path, clock: Clock, disk: Disk | None = None) -> None:
        self.directory = directory
        self.made = self.failures = 0
        self.last_bytes = self.last_ms = 0
        self.last_at_ms: int | None = None
        """Monotonic time of the newest snapshot of this run."""
        self.written_bytes = 0
        self.recorder_bytes = 0
        """How far back from the newest snapshot the journal is kept for the flight recorder."""
        self.sizes: dict[str, int] = {}
        """Size of each rule's state in the newest snapshot of this run."""
        self._clock = clock
        self._disk = disk or Disk()
        self._disk.make_folder(directory)
        self._child: _Child | None = None
        for draft in directory.glob(f"*{DRAFT_SUFFIX}"):
            self._disk.remove(draft)

    def load(self) -> Snapshot | None:
        """The newest snapshot that can be read; the others are told of."""
        for position, path in sorted(self._files(), reverse=True):
            try:
                state = decode(path.read_bytes())
            except (OSError, ValueError) as error:
                log.error("snapshot.unreadable", extra={"file": str(path), "error": str(error)})
                continue
            self.last_bytes = path.stat().st_size
            return Snapshot(position, state)
        return None

    @property
    def oldest(self) -> int:
        """The position from which the journal must be kept; 0 before the first snapshots."""
        positions = sorted(position for position, _ in self._files())
        return positions[0] if len(positions) >= KEPT else 0

    @property
    def newest(self) -> int:
        """The position of the newest snapshot; 0 before the first."""
        return max((position for position, _ in self._files()), default=0)

    @property
    def is_busy(self) -> bool:
        """Whether a child is writing a snapshot."""
        return self._child is not None

    def make(self, position: int, collect: Collect) -> None:
        """Write a snapshot now. Raises OSError."""
        began_ms = self._clock.monotonic_ms()
        draft = self._draft(position)
        self._disk.write_file(draft, encode(collect()))
        self._finish(position, draft, began_ms)

    def begin(self, position: int, collect: Collect, *, in_haste: bool = False) -> None:
        """Let a forked child write a snapshot of the present state; `poll` finishes it. Raises OSError.

        The child gives way to the rules, unless `in_haste`.
        """
        draft = self._draft(position)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child uses none of their locks
            pid = os.fork()
        if pid == 0:
            _write_and_exit(draft, collect, 0 if in_haste else GIVE_WAY)
        self._child = _Child(pid, position, draft, self._clock.monotonic_ms())

    def poll(self) -> bool:
        """Finish the child's snapshot if it is done; whether there is a new one."""
        child = self._child
        if child is None:
            return False
        ended, status = os.waitpid(child.pid, os.WNOHANG)
        if not ended:
            if self._clock.monotonic_ms() - child.began_ms > CHILD_MS_MAX:
                os.kill(child.pid, signal.SIGKILL)
            return False
        self._child = None
        if os.waitstatus_to_exitcode(status) != 0:
            self._failed(child.draft, f"the writing process ended with {os.waitstatus_to_exitcode(status)}")
            return False
        try:
            self._finish(child.position, child.draft, child.began_ms)
        except OSError as error:
            self._failed(child.draft, str(error))
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
            self._disk.remove(self._child.draft)
            self._child = None

    def _failed(self, draft: Path, why: str) -> None:
        self.failures += 1
        self._disk.remove(draft)
        log.error("snapshot.failed", extra={"error": why})

    def _finish(self, position: int, draft: Path, began_ms: int) -> None:
        self.last_bytes = draft.stat().st_size
        self.sizes = sizes(draft)
        self._disk.rename(draft, self._path(position))
        self.made += 1
        self.written_bytes += self.last_bytes
        self.last_at_ms = self._clock.monotonic_ms()
        self.last_ms = self.last_at_ms - began_ms
        for path in self._superfluous():
            self._disk.remove(path)

    def _superfluous(self) -> list[Path]:
        """Snapshots that neither a restart needs nor the flight recorder."""
        newest, *rest = sorted(self._files(), reverse=True)
        beside, older = rest[: KEPT - 1], rest[KEPT - 1 :]
        recorded = [item for item in older if newest[0] - item[0] <= self.recorder_bytes]
        kept = recorded[-1:] + recorded[:-1][: RECORDED_MAX - KEPT - 1]
        return [path for position, path in rest if (position, path) not in (*beside, *kept)]

    def _files(self) -> list[tuple[int, Path]]:
        return [(int(path.stem), path) for path in self.directory.glob(f"*{SUFFIX}") if path.stem.isdigit()]

    def _path(self, position: int) -> Path:
        return self.directory / f"{position:020}{SUFFIX}"

    def _draft(self, position: int) -> Path:
        return self.directory / f"{position:020}.{os.getpid()}{DRAFT_SUFFIX}"


def _write_and_exit(draft: Path, collect: Collect, nice: int) -> None:
    """The child: no lock, thread or descriptor of the parent is used; the descriptors are closed first, for
    one of them holds the lock of the spool."""
    code = 1
    try:
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        gc.disable()
        os.nice(nice)
        Disk().write_file(draft, encode(collect()))
        code = 0
    finally:
        os._exit(code)
