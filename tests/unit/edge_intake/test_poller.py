"""The wait of the loop: who settles, what ends the sleep, and what gathers meanwhile."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from edge.base.poller import AT_ONCE, Interest, Poller
from edge.base.wakeup import Wakeup
from edge.clock import monotonic_ms
from tests.support.waiting import PATIENCE_MS


class Listener:
    """A member that reads a socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.settled = 0
        self.due_ms: int | None = None
        self.turns: list[bool] = []
        self.heard = b""
        self.ahead = b""
        self.is_fickle = False

    def settle(self) -> Interest:
        self.settled += 1
        return self.connection.fileno(), select.POLLIN, self.due_ms

    def prompt(self) -> bool:
        try:
            self.ahead += self.connection.recv(100)
        except BlockingIOError:
            return False
        return True

    def turn(self, is_ready: bool) -> bool:
        self.turns.append(is_ready)
        self.due_ms = None
        self.prompt()
        self.heard, self.ahead = self.heard + self.ahead, b""
        return self.is_fickle


@pytest.fixture
def line() -> Iterator[tuple[Poller, Listener, socket.socket]]:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs), closing(Poller()) as poller:
        member = Listener(ours)
        poller.add(member)
        yield poller, member, theirs


Line = tuple[Poller, Listener, socket.socket]


def test_a_member_settles_again_only_when_it_may_have_changed(line: Line) -> None:
    poller, member, other = line
    for _ in range(3):
        poller.wait(0)
    assert (member.settled, member.turns) == (1, [])
    other.send(b"a")
    poller.wait(1_000)
    poller.wait(0)
    assert (member.settled, member.turns, member.heard) == (1, [True], b"a")
    member.is_fickle = True
    other.send(b"b")
    poller.wait(1_000)
    poller.wait(0)
    assert (member.settled, member.turns, member.heard) == (2, [True, True], b"ab")
    poller.changed(member)
    poller.wait(0)
    assert member.settled == 3


def test_a_member_turns_when_its_time_has_come_and_not_before(line: Line) -> None:
    poller, member, _ = line
    member.due_ms = monotonic_ms() + 300
    poller.wait(0)
    assert member.turns == []
    due_ms = member.due_ms
    poller.wait(None)
    assert member.turns == [False]
    assert monotonic_ms() >= due_ms
    member.due_ms = AT_ONCE
    poller.changed(member)
    poller.wait(0)
    assert member.turns == [False, False]


def test_the_loop_does_not_sleep_where_a_member_has_just_turned(line: Line) -> None:
    """What it has taken in is to be processed first."""
    poller, member, _ = line
    poller.wait(0)
    member.due_ms = AT_ONCE
    poller.changed(member)
    began_ms = monotonic_ms()
    poller.wait(PATIENCE_MS)
    assert member.turns == [False] and monotonic_ms() - began_ms < PATIENCE_MS / 2


def test_a_change_in_another_thread_ends_the_sleep(line: Line) -> None:
    poller, member, _ = line
    poller.wait(0)
    member.due_ms = AT_ONCE
    changing = threading.Timer(0.02, poller.changed, (member,))
    changing.start()
    poller.wait(None)
    poller.wait(0)
    changing.join()
    assert member.turns == [False]


class Interrupted(Wakeup):
    """The loop turns for another reason just before the wake-up is sent."""

    def _send(self) -> None:
        self.clear()
        super()._send()


def test_a_thread_that_is_interrupted_while_it_wakes_the_loop_wakes_it_once() -> None:
    wakeup = Interrupted()
    waiting = select.poll()
    waiting.register(wakeup, select.POLLIN)
    wakeup.set()
    assert waiting.poll(0)
    wakeup.clear()
    assert not waiting.poll(0)
    wakeup.set()
    assert waiting.poll(0), "and the next one wakes it again"
    wakeup.close()


def test_what_has_gathered_is_read_together(line: Line) -> None:
    poller, member, other = line
    for _ in range(3):
        other.send(b"x")
    poller.wait(None, gather_until_ms=monotonic_ms() + 20)
    assert (member.turns, member.heard) == ([True], b"xxx")


def test_an_order_ends_the_gathering_and_what_came_meanwhile_is_read_next(line: Line) -> None:
    poller, member, other = line
    poller.wait(0)

    def order() -> None:
        for _ in range(3):
            other.send(b"x")
        poller.wake()

    ordering = threading.Timer(0.02, order)
    ordering.start()
    poller.wait(None, gather_until_ms=monotonic_ms() + PATIENCE_MS)
    assert member.turns == []
    ordering.join()
    poller.wait(None)
    assert (member.turns, member.heard) == ([True], b"xxx")


def test_a_member_that_was_removed_is_not_served(line: Line) -> None:
    poller, member, other = line
    member.due_ms = AT_ONCE
    poller.wait(0)
    poller.remove(member)
    other.send(b"x")
    poller.wait(0)
    assert member.turns == [False]
