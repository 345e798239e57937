"""Commits on a slow disk: a thread writes, the loop goes on, and nothing is acknowledged
before it is durable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from edge.base.message import Message
from edge.clock import SimulatedClock
from edge.config import JournalConfig
from edge.journal.acknowledgements import PendingAcknowledgement
from edge.journal.background import WARY_MS
from edge.journal.commits import Commits
from edge.journal.disk import Disk
from edge.journal.reader import JournalPass, read
from edge.journal.record import Tick
from edge.journal.snapshots import Snapshots
from edge.journal.writer import Journal
from tests.support.waiting import PATIENCE_S

SNAPSHOT_BYTES = 100_000


@dataclass
class SlowDisk(Disk):
    """A real disk whose syncs take as long as a test wants."""

    clock: SimulatedClock
    takes_ms: int = 0
    may_sync: threading.Event = field(default_factory=threading.Event)
    fails: bool = False
    threads: set[str] = field(default_factory=set)

    def sync(self, descriptor: int) -> None:
        self.threads.add(threading.current_thread().name)
        assert self.may_sync.wait(PATIENCE_S)
        if self.fails:
            raise OSError(28, "No space left on device")
        super().sync(descriptor)
        if self.takes_ms:
            self.clock.move(self.takes_ms)


@dataclass
class Spooled:
    """Rows that wait for the spool, and how many were committed each time."""

    waiting: int = 0
    committed: list[int] = field(default_factory=list)

    is_synced = True

    def before(self) -> None:
        """There are no dead letters."""

    def due_in_ms(self) -> int | None:
        return 0 if self.waiting else None

    def rows(self, *, force: bool) -> Sequence[int]:
        return [self.waiting] if self.waiting else []

    def after(self, rows: Sequence[int]) -> None:
        self.committed += rows
        self.waiting -= sum(rows)

    def state(self) -> dict[str, Any]:
        return {"rules": {}}


@dataclass
class Loop:
    """What a gateway's loop does with commits."""

    folder: Path
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    acknowledged: list[int] = field(default_factory=list)
    spooled: Spooled = field(default_factory=Spooled)
    woken: threading.Event = field(default_factory=threading.Event)
    sent: int = 0
    has_receipts: bool = False
    sync_interval_ms: int = 0

    def __post_init__(self) -> None:
        self.disk = SlowDisk(self.clock)
        self.disk.may_sync.set()
        journal = Journal(self.folder / "j", 0, segment_bytes=100_000, compression="none", disk=self.disk)
        snapshots = Snapshots(self.folder / "s", self.clock)
        config = JournalConfig(sync_interval_ms=self.sync_interval_ms, snapshot_bytes=SNAPSHOT_BYTES)
        self.commits = Commits(journal, snapshots, self.clock, config, self.spooled, self.woken.set)

    def take(self, count: int = 1, is_done: Callable[[], bool] | None = None) -> None:
        """Take in so many messages. `is_done`: nothing is left of them that a crash could lose."""
        numbers = range(self.sent, self.sent + count)
        batch: list[Message] = [("t", b"%d" % number, number + 1, 2) for number in numbers]
        self.commits.append_batch(0, batch)
        entry = PendingAcknowledgement(self._acknowledged, list(numbers), self.clock.monotonic_ms(), is_done)
        self.commits.acknowledgements.add(entry)
        self.sent += count

    def _acknowledged(self, tokens: Iterable[int]) -> None:
        self.acknowledged += tokens

    def be_slow(self) -> None:
        """Commits that take long, which shows that the disk is slow."""
        self.disk.takes_ms = 20
        self.commit_at_once(1)
        self.disk.takes_ms = 0
        self.disk.threads.clear()

    def commit_at_once(self, times: int) -> None:
        """Commits without messages; the loop waits for each."""
        for _ in range(times):
            self.commits.append(Tick(0))
            assert self.commits.make(force=True)

    def stored(self) -> list[int]:
        """The messages on the disk."""
        entries = read(self.folder / "j", 0, JournalPass())
        return [int(message[1]) for entry in entries for message in entry.messages]


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    loop = Loop(tmp_path)
    yield loop
    loop.disk.may_sync.set()
    loop.commits.close()


def test_a_quick_disk_is_synced_by_the_loop(loop: Loop) -> None:
    loop.take(3)
    assert loop.commits.make()
    assert loop.acknowledged == [0, 1, 2]
    assert loop.disk.threads == {threading.current_thread().name}


def test_a_slow_disk_does_not_hold_the_loop(loop: Loop) -> None:
    loop.be_slow()
    loop.disk.may_sync.clear()
    loop.take(2)
    assert loop.commits.make(), "the loop would stand still here"
    loop.take(2)  # messages go on to be taken in
    assert loop.commits.due_in_ms(loop.clock.monotonic_ms()) is None, "the end of the commit wakes the loop"
    assert loop.acknowledged == []
    assert loop.commits.acknowledgements.messages == 4
    loop.disk.may_sync.set()
    assert loop.woken.wait(PATIENCE_S)
    assert loop.commits.due_in_ms(loop.clock.monotonic_ms()) == 0
    assert loop.commits.make()
    assert set(loop.acknowledged) >= {0, 1}
    assert loop.commits.make(force=True)
    assert loop.acknowledged == [0, 1, 2, 3]
    assert loop.stored() == [0, 1, 2, 3]
    assert loop.disk.threads - {threading.current_thread().name}, "a thread has synced"


def test_what_comes_while_a_commit_is_under_way_is_not_acknowledged_with_it(loop: Loop) -> None:
    loop.be_slow()
    loop.disk.may_sync.clear()
    loop.take(2)
    loop.commits.make()
    loop.take(1)
    loop.disk.may_sync.set()
    assert loop.woken.wait(PATIENCE_S)
    assert loop.stored() == [0, 1], "only what the commit had"
    loop.disk.may_sync.clear()
    loop.commits.make()  # ends the first commit, begins the next
    assert loop.acknowledged == [0, 1]
    assert loop.commits.acknowledgements.messages == 1


def test_rows_are_committed_after_the_journal_has_their_inputs(loop: Loop) -> None:
    loop.be_slow()
    loop.disk.may_sync.clear()
    loop.take(1)
    loop.spooled.waiting = 5
    loop.commits.make()
    loop.take(1)
    loop.spooled.waiting += 7  # rows of the second message, which is not durable
    assert loop.spooled.committed == []
    loop.disk.may_sync.set()
    assert loop.commits.make(force=True)
    assert loop.spooled.committed == [5, 7]


def test_a_commit_that_fails_on_the_thread_acknowledges_nothing_and_is_made_again(loop: Loop) -> None:
    loop.be_slow()
    loop.disk.fails = True
    loop.disk.may_sync.clear()
    loop.take(2)
    assert loop.commits.make()
    loop.disk.may_sync.set()
    assert loop.woken.wait(PATIENCE_S)
    loop.take(1)
    assert not loop.commits.make()
    assert loop.commits.problem is not None
    assert "no space left" in loop.commits.problem
    assert loop.acknowledged == []
    assert loop.commits.acknowledgements.messages == 3
    assert loop.commits.due_in_ms(loop.clock.monotonic_ms()) == 1_000
    loop.disk.fails = False
    loop.clock.move(1_000)
    loop.commits.make()
    assert loop.commits.make(force=True)
    assert loop.acknowledged == [0, 1, 2]
    assert loop.stored() == [0, 1, 2]
    assert loop.commits.problem is None


def test_a_snapshot_waits_for_the_commit_under_way(loop: Loop) -> None:
    loop.be_slow()
    loop.take(2)
    loop.commits.make()
    loop.take(1)
    assert loop.commits.snapshot()
    newest = loop.commits.snapshots.load()
    assert newest is not None
    assert newest.position == loop.commits.journal.durable == loop.commits.journal.position
    assert loop.stored() == [0, 1, 2]


def test_a_disk_that_was_slow_is_tried_again_after_a_while(loop: Loop) -> None:
    loop.be_slow()
    loop.clock.move(WARY_MS)
    loop.take(1)
    assert loop.commits.make()
    assert loop.acknowledged == [0]
    assert loop.disk.threads == {threading.current_thread().name}


def test_a_sync_is_slow_if_results_may_not_wait_as_long(loop: Loop) -> None:
    loop.commits.latency_ms = 20
    loop.be_slow()
    loop.take(1)
    assert loop.commits.make()
    assert loop.disk.threads == {threading.current_thread().name}
    loop.commits.latency_ms = 19
    loop.be_slow()
    loop.take(1)
    assert loop.commits.make(force=False)
    assert loop.woken.wait(10)
    assert loop.disk.threads == {"journal"}


def test_a_line_is_quiet_after_the_latency_that_holds_now(tmp_path: Path) -> None:
    loop = Loop(tmp_path, sync_interval_ms=50)
    loop.take(1)
    assert loop.commits.due_in_ms(loop.clock.monotonic_ms()) == 2
    loop.commits.latency_ms = 20
    assert loop.commits.due_in_ms(loop.clock.monotonic_ms()) == 22
    loop.commits.close()


def test_what_needs_no_commit_is_acknowledged_while_one_is_under_way(loop: Loop) -> None:
    loop.be_slow()
    loop.disk.may_sync.clear()
    loop.take(2, is_done=lambda: loop.has_receipts)
    assert loop.commits.make()
    loop.take(1, is_done=lambda: True)
    loop.commits.settle()
    assert loop.acknowledged == [], "the order of the messages is kept"
    loop.has_receipts = True
    loop.commits.settle()
    assert loop.acknowledged == [0, 1, 2]
    loop.take(1)
    loop.commits.settle()
    assert loop.acknowledged == [0, 1, 2]
    loop.disk.may_sync.set()
    assert loop.woken.wait(10)
    assert loop.commits.make(force=True)
    assert loop.acknowledged == loop.stored() == [0, 1, 2, 3]


def test_a_snapshot_has_no_name_before_its_inputs_and_rows_are_durable(loop: Loop) -> None:
    loop.be_slow()
    loop.disk.may_sync.clear()
    loop.take(SNAPSHOT_BYTES // 10)
    loop.commits.make()
    loop.take()  # part of the state at the fork, and of no commit before it
    loop.spooled.waiting = 5
    loop.disk.may_sync.set()
    assert loop.woken.wait(10)
    loop.disk.may_sync.clear()
    loop.commits.make()
    snapshots = loop.commits.snapshots
    assert snapshots.is_busy and loop.commits.background.is_busy, "the fork waits for no sync"
    while not any(snapshots.directory.glob("*.draft")):
        time.sleep(0.001)
    assert snapshots.load() is None
    loop.disk.may_sync.set()
    while snapshots.is_busy:
        loop.commits.make()
        time.sleep(0.001)
    newest = snapshots.load()
    assert newest is not None and newest.position <= loop.commits.journal.durable
    assert loop.stored()[-1] == SNAPSHOT_BYTES // 10 and loop.spooled.committed == [5]
