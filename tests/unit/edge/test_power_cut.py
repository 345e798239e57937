"""A power cut after any write: what had been synced is found again, whatever became of the rest.

Journal and snapshots work on a real directory while each of their file operations is written down. Every
prefix of the operations is then carried out again elsewhere, but of what was not synced by then each page may
be missing, and the last one torn. Recovery must find every acknowledged message once, in order, without any
damage to tell of.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from edge.clock import SimulatedClock
from edge.journal.disk import Disk
from edge.journal.reader import JournalPass, read
from edge.journal.snapshots import Snapshots
from edge.journal.writer import Journal

PAGE = 4096
STEPS = 50
CUTS_PER_STEP = 1


@dataclass
class Operation:
    """One file operation, and how many messages were acknowledged before it."""

    kind: str
    path: Path
    acknowledged: int
    data: bytes = b""
    offset: int = 0
    target: Path | None = None


@dataclass
class NotedDisk(Disk):
    """The real disk, with a list of what was done to it."""

    noted: list[Operation] = field(default_factory=list)
    acknowledged: int = 0
    paths: dict[int, Path] = field(default_factory=dict)

    def _note(
        self, kind: str, path: Path, data: bytes = b"", offset: int = 0, target: Path | None = None
    ) -> None:
        self.noted.append(Operation(kind, path, self.acknowledged, data, offset, target))

    def create(self, path: Path, size: int) -> int:
        descriptor = super().create(path, size)
        self.paths[descriptor] = path
        self._note("create", path, offset=size)
        return descriptor

    def reopen(self, path: Path, used: int, size: int) -> int:
        descriptor = super().reopen(path, used, size)
        self.paths[descriptor] = path
        self._note("reopen", path, offset=used)
        return descriptor

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        super().write(descriptor, data, offset)
        self._note("write", self.paths[descriptor], data, offset)

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self._note("sync", self.paths[descriptor])

    def close(self, descriptor: int, used: int) -> None:
        super().close(descriptor, used)
        self._note("truncate", self.paths[descriptor], offset=used)

    def write_file(self, path: Path, data: bytes) -> None:
        super().write_file(path, data)
        self._note("file", path, data)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._note("rename", source, target=target)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._note("remove", path)


class AfterTheCut:
    """The files as a power cut may leave them: durable content, and writes that may have
    reached the disk or not."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._files: dict[Path, bytearray] = {}
        self._unsynced: dict[Path, list[tuple[bytes, int]]] = {}

    def apply(self, operation: Operation) -> None:
        """Carry out an operation that returned."""
        path = operation.path
        if operation.kind == "create":
            self._files[path] = bytearray(operation.offset)
        elif operation.kind == "reopen":
            self._settle(path)
        elif operation.kind == "write":
            self._unsynced.setdefault(path, []).append((operation.data, operation.offset))
        elif operation.kind == "sync":
            self._settle(path)
        elif operation.kind == "truncate":
            if self._dice.random() < 0.5:  # never synced: it may be undone
                self._settle(path)
                del self._files[path][operation.offset :]
        elif operation.kind == "file":
            self._files[path] = bytearray(operation.data)
        elif operation.kind == "rename":
            assert operation.target is not None
            self._files[operation.target] = self._files.pop(path)
            self._unsynced[operation.target] = self._unsynced.pop(path, [])
        elif operation.kind == "remove" and self._dice.random() < 0.5:
            self._files.pop(path, None)

    def _settle(self, path: Path) -> None:
        for data, offset in self._unsynced.pop(path, []):
            self._put(path, data, offset)

    def _put(self, path: Path, data: bytes, offset: int) -> None:
        content = self._files[path]
        content.extend(bytes(max(0, offset + len(data) - len(content))))
        content[offset : offset + len(data)] = data

    def cut(self) -> None:
        """The power fails: of each write that was not synced some pages are there, and one may be torn."""
        for path, writes in self._unsynced.items():
            for data, offset in writes if path in self._files else ():
                for start in range(0, len(data), PAGE):
                    page = data[start : start + PAGE]
                    if self._dice.random() < 0.5:
                        kept = len(page) if self._dice.random() < 0.7 else self._dice.randrange(len(page) + 1)
                        self._put(path, page[:kept], offset + start)
        self._unsynced.clear()

    def write_to(self, folder: Path, original: Path) -> None:
        """Put the files into a folder."""
        for path, content in self._files.items():
            copy = folder / path.relative_to(original)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)


def work(folder: Path, dice: random.Random, steps: int) -> list[Operation]:
    """A gateway's life: messages, syncs with acknowledgements, snapshots, restarts. Returns what it did to
    the disk."""
    disk, clock, number = NotedDisk(), SimulatedClock(), 0
    open_journal: Callable[[int], Journal] = lambda end: Journal(  # noqa: E731
        folder / "journal", end, segment_bytes=100_000, compression="none", disk=disk
    )
    journal, snapshots = open_journal(0), Snapshots(folder / "snapshots", clock, disk)
    for _ in range(steps):
        action = dice.random()
        if action < 0.55:
            number = append(journal, number, dice)
        elif action < 0.85:
            handed, durable = journal.begin(), number
            if dice.random() < 0.5:  # as the loop does while another thread writes
                number = append(journal, number, dice)
            journal.write(handed)
            disk.acknowledged = durable
        elif action < 0.95:
            journal.sync()
            disk.acknowledged = number
            state = {"n": number, "rules": {}}
            snapshots.make(journal.position, partial(dict, state))
            journal.forget(snapshots.oldest)
        else:
            journal.sync()
            disk.acknowledged = number
            journal.close()
            journal = open_journal(journal.position)
    journal.close()
    return disk.noted


def append(journal: Journal, number: int, dice: random.Random) -> int:
    """Add a batch of messages that are numbered from `number`; returns the next number."""
    count = dice.randrange(1, 60)
    batch = [("t", b"%d" % (number + i) + b"x" * dice.randrange(400), 1 + i, 0) for i in range(count)]
    journal.append_batch(number, batch)
    return number + count


def check_recovery(folder: Path, acknowledged: int, told: str) -> None:
    """Every acknowledged message is there once, in order; further ones may be."""
    snapshot = Snapshots(folder / "snapshots", SimulatedClock()).load()
    reading = JournalPass()
    start, first = (0, 0) if snapshot is None else (snapshot.position, snapshot.state["n"])
    found = [
        int(message[1].rstrip(b"x"))
        for entry in read(folder / "journal", start, reading)
        for message in entry.messages
    ]
    assert reading.damage == [], told
    assert found == list(range(first, first + len(found))), told
    assert first + len(found) >= acknowledged, f"{told}: {acknowledged - first - len(found)} lost"
    again = Journal(folder / "journal", reading.end, segment_bytes=100_000, compression="none")
    again.append_batch(0, [("t", b"%d" % (first + len(found)), 1, 0)])
    again.sync()
    again.close()
    last = list(read(folder / "journal", start, reading := JournalPass()))[-1]
    assert reading.damage == [] and last.messages[0][1] == b"%d" % (first + len(found)), told


def cuts(folder: Path, seed: int, steps: int, per_step: int) -> int:
    """Cut the power after every operation; returns how often."""
    dice = random.Random(seed)
    original = folder / "original"
    noted = work(original, dice, steps)
    done = 0
    for length in range(1, len(noted) + 1):
        for _ in range(per_step):
            files = AfterTheCut(dice)
            for operation in noted[:length]:
                files.apply(operation)
            files.cut()
            copy = folder / f"{seed}-{length}-{done}"
            copy.mkdir()
            files.write_to(copy, original)
            check_recovery(copy, noted[length - 1].acknowledged, f"seed {seed}, cut after operation {length}")
            for path in sorted(copy.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            copy.rmdir()
            done += 1
    return done


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.long
def test_no_power_cut_loses_what_was_acknowledged(tmp_path: Path, seed: int) -> None:
    assert cuts(tmp_path, seed, STEPS, CUTS_PER_STEP) > 40
