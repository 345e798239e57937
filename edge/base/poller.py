"""The wait of a loop: for its sockets, the clock, and other threads.

A member serves one socket. The loop sleeps until a socket is ready or a member's time has come, and lets
those members turn. Nothing polls: without traffic the loop sleeps until the next deadline. Only members that
turned or said `changed` are asked what they wait for; a member without work costs nothing.
"""

from __future__ import annotations

import select
import threading
from typing import Protocol

from edge.base.wakeup import Wakeup
from edge.clock import monotonic_ms


class Member(Protocol):
    """Something served by the loop; all of it runs on the loop's thread. It turns when its descriptor is
    ready or its time has come."""

    def interest(self) -> tuple[int, int]:
        """Descriptor and `poll` mask; a mask of 0: it waits for nothing but time."""

    def due_in_ms(self) -> int | None:
        """The time until `turn` should be called in any case; None: never."""

    def prompt(self) -> bool:
        """Take what is there, so that the other side sends what it holds back; whether there was anything."""

    def turn(self, is_ready: bool) -> None:
        """Do what can be done; `is_ready`: there is something to read."""


ANSWER_MS = 1
"""The time that peers get to send held-back data."""


class Poller:
    """The members of one loop, all of it for the loop's thread, but `wake` and `changed` for any.

    The thread that called `wait` last is the loop's: it sees its own requests before it sleeps.
    """

    def __init__(self) -> None:
        self._wakeup = Wakeup()
        self._wakeup_descriptor = self._wakeup.fileno()
        self._owner: int | None = None
        self._members: dict[Member, tuple[int, int]] = {}
        self._by_descriptor: dict[int, Member] = {}
        self._deadlines: dict[Member, int] = {}
        """When members are to turn, in ms of the monotonic clock; left out where time does not matter."""
        self._changed: set[Member] = set()
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._orders = select.poll()
        self._orders.register(self._wakeup, select.POLLIN)

    def wake(self) -> None:
        """End the sleep of the loop, now or the next one."""
        if threading.get_ident() != self._owner:
            self._wakeup.set()

    def changed(self, member: Member) -> None:
        """Read anew which socket and which deadline a member has, before the next sleep."""
        self._changed.add(member)
        self.wake()

    def add(self, member: Member) -> None:
        """Serve a member from now on."""
        self._members[member] = (-1, 0)
        self._changed.add(member)

    def remove(self, member: Member) -> None:
        """Serve it no longer."""
        self._register(member, (-1, 0))
        self._deadlines.pop(member, None)
        del self._members[member]

    def wait(self, timeout_ms: int | None, gather_ms: int = 0) -> None:
        """Let members turn that have something to do, or sleep until one has, `wake` was called, or the time
        has passed.

        gather_ms   for so long the sockets are not looked at, so that what comes meanwhile is read together;
                    `wake` ends it
        """
        self._owner = threading.get_ident()
        self._ask()
        due_ms = self._due_in_ms()
        if due_ms == 0:
            self._turn_due()
            self._ask()
            due_ms = self._due_in_ms()
        prompted: list[Member] = []
        if gather_ms > 0 and due_ms != 0:
            if self._orders.poll(gather_ms):
                self._wakeup.clear()
                return
            prompted = [member for member in self._members if member.prompt()]
            due_ms = later(due_ms, gather_ms)
            timeout_ms = ANSWER_MS if prompted else later(timeout_ms, gather_ms)
        ready = self._poll.poll(due_ms if timeout_ms is None else earlier(timeout_ms, due_ms))
        if (self._wakeup_descriptor, select.POLLIN) in ready:
            self._wakeup.clear()
        for descriptor, _ in ready:
            member = self._by_descriptor.get(descriptor)
            if member is not None and member not in prompted:
                self._turn(member, True)
        for member in prompted:
            self._turn(member, True)
        if not ready:
            self._turn_due()

    def close(self) -> None:
        """Release the descriptors of the loop."""
        self._wakeup.close()

    def _ask(self) -> None:
        """Read the sockets and deadlines of the members that have changed."""
        if not self._changed:
            return
        now_ms = monotonic_ms()
        while self._changed:
            member = self._changed.pop()
            if member in self._members:
                self._register(member, member.interest())
                due_ms = member.due_in_ms()
                if due_ms is None:
                    self._deadlines.pop(member, None)
                else:
                    self._deadlines[member] = now_ms + due_ms

    def _due_in_ms(self) -> int | None:
        """The time until the first deadline of a member; None if there is none."""
        return max(0, min(self._deadlines.values()) - monotonic_ms()) if self._deadlines else None

    def _turn_due(self) -> None:
        """Let members turn whose time has come."""
        now_ms = monotonic_ms()
        for member in [member for member, due_ms in self._deadlines.items() if due_ms <= now_ms]:
            self._turn(member, False)

    def _turn(self, member: Member, is_ready: bool) -> None:
        self._deadlines.pop(member, None)
        self._changed.add(member)
        member.turn(is_ready)

    def _register(self, member: Member, interest: tuple[int, int]) -> None:
        before = self._members[member]
        if interest == before:
            return
        # A socket without a mask is taken out: it would wake us for ever once the other side has hung up.
        if before[1]:
            self._poll.unregister(before[0])
            del self._by_descriptor[before[0]]
        if interest[1]:
            self._poll.register(*interest)
            self._by_descriptor[interest[0]] = member
        self._members[member] = interest


def earlier(one_ms: int, other_ms: int | None) -> int:
    """The shorter of two waits; None: no wait."""
    return one_ms if other_ms is None or one_ms < other_ms else other_ms


def later(wait_ms: int | None, passed_ms: int) -> int | None:
    """The rest of a wait; None: it has no end."""
    return None if wait_ms is None else max(0, wait_ms - passed_ms)
