"""The wait of a loop: for its sockets, the clock, and other threads.

A member serves one socket. The loop sleeps until a socket is ready or a member's time has come, and lets
those members turn. Nothing polls: without traffic the loop sleeps until the next deadline. Only members that
may have changed are asked what they wait for; a member without work costs nothing.
"""

from __future__ import annotations

import select
import threading
from typing import Protocol

from edge.base.wakeup import Wakeup
from edge.clock import monotonic_ms

Interest = tuple[int, int, int | None]
"""What a member waits for: the descriptor of its socket; the mask of `poll`, 0 where it waits for nothing
but time; and when it should turn in any case, in ms of the monotonic clock (None: never)."""

AT_ONCE = 0
"""A time before any of the monotonic clock."""


class Member(Protocol):
    """Something served by the loop; all of it runs on the loop's thread. It turns when its descriptor is
    ready or its time has come."""

    def interest(self) -> Interest:
        """The descriptor and the time to wait for."""

    def prompt(self) -> bool:
        """Take what is there, so that the other side sends what it holds back; whether there was anything."""

    def turn(self, is_ready: bool) -> bool:
        """Do what can be done; whether it may wait for something else from now on. `is_ready`: there is
        something to read, or room to write; else its time has come, and it is asked in any case."""


ANSWER_MS = 1
"""The time that peers get to send held-back data."""


class Poller:
    """The members of one loop, all of it for the loop's thread, but `wake` and `changed` for any.

    The thread that called `wait` last is the loop's: it sees its own requests before it sleeps.
    """

    def __init__(self) -> None:
        self._wakeup = Wakeup()
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
        self._register(member, -1, 0)
        self._deadlines.pop(member, None)
        del self._members[member]

    def wait(self, timeout_ms: int | None, gather_until_ms: int = 0) -> None:
        """Let members turn that have something to do, or sleep until one has, `wake` was called, or the time
        has passed.

        gather_until_ms   until then, on the monotonic clock, the sockets are not looked at, so that what
                          comes meanwhile is read together; `wake` ends it
        """
        self._owner = threading.get_ident()
        now_ms = monotonic_ms()
        due_ms = self._next_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._turn_due(now_ms)
            due_ms = self._next_ms()
        until_ms = None if timeout_ms is None else now_ms + timeout_ms
        prompted: list[Member] = []
        if gather_until_ms > now_ms and (due_ms is None or due_ms > now_ms):
            if self._orders.poll(gather_until_ms - now_ms):
                self._wakeup.clear()
                return
            now_ms = gather_until_ms
            prompted = [member for member in self._by_descriptor.values() if member.prompt()]
            if prompted:
                until_ms = now_ms + ANSWER_MS
        if due_ms is not None and (until_ms is None or due_ms < until_ms):
            until_ms = due_ms
        ready = self._poll.poll(None if until_ms is None else max(0, until_ms - now_ms))
        for descriptor, _ in ready:
            member = self._by_descriptor.get(descriptor)
            if member is None:  # it is the wake-up's, or of a member that was removed in this turn
                self._wakeup.clear()
            elif member not in prompted and member.turn(True):
                self._changed.add(member)
        for member in prompted:
            if member.turn(True):
                self._changed.add(member)
        if not ready:
            self._turn_due(monotonic_ms())

    def close(self) -> None:
        """Release the descriptors of the loop."""
        self._wakeup.close()

    def _next_ms(self) -> int | None:
        """The earliest deadline, once changed members were asked; None if there is none."""
        while self._changed:
            member = self._changed.pop()
            if member in self._members:
                self._expect(member, member.interest())
        return min(self._deadlines.values(), default=None)

    def _expect(self, member: Member, interest: Interest) -> None:
        descriptor, mask, due_ms = interest
        if due_ms is None:
            self._deadlines.pop(member, None)
        else:
            self._deadlines[member] = due_ms
        if self._members[member] != (descriptor, mask):
            self._register(member, descriptor, mask)

    def _turn_due(self, now_ms: int) -> None:
        """Let members turn whose time has come."""
        for member in [member for member, due_ms in self._deadlines.items() if due_ms <= now_ms]:
            self._deadlines.pop(member, None)
            self._changed.add(member)
            member.turn(False)

    def _register(self, member: Member, descriptor: int, mask: int) -> None:
        before, mask_before = self._members[member]
        # A socket without a mask is taken out: it would wake us for ever once the other side has hung up.
        if mask_before:
            self._poll.unregister(before)
            del self._by_descriptor[before]
        if mask:
            self._poll.register(descriptor, mask)
            self._by_descriptor[descriptor] = member
        self._members[member] = (descriptor, mask)
