"""The wait of a loop: for its sockets, the clock, and other threads.

A member serves one socket. The loop sleeps until a socket is ready or a member's time has come, and lets
those members turn. Nothing polls: without traffic the loop sleeps until the next deadline. Only members that
may have changed settle before a sleep; a member without work costs nothing.
"""

from __future__ import annotations

import select
import threading
from typing import Protocol

from edge.base.wakeup import Wakeup
from edge.clock import monotonic_ms

Interest = tuple[int, int, int | None]
"""The events that a member waits for: the descriptor of its socket; the mask of `poll`, 0 for time
alone; and when it should turn in any case, in ms of the monotonic clock (None: never)."""

AT_ONCE = 0
"""A time before any of the monotonic clock."""


class Member(Protocol):
    """Something served by the loop; all of it runs on the loop's thread. It turns when its descriptor is
    ready or its time has come."""

    def settle(self) -> Interest:
        """Send what waits, as far as that is possible at once; what to wait for then."""

    def prompt(self) -> bool:
        """Take what is there, so that the other side sends what it holds back; whether there was anything."""

    def turn(self, is_ready: bool) -> bool:
        """Do what can be done; whether it is to settle again. `is_ready`: there is something to read, or room
        to write; else its time has come, and it settles in any case."""


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
        self._due_ms: int | None = None
        """The earliest of them."""
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
        """Have a member settle before the loop sleeps next."""
        self._changed.add(member)
        self.wake()

    def add(self, member: Member) -> None:
        """Serve a member from now on."""
        self._members[member] = (-1, 0)
        self._changed.add(member)

    def remove(self, member: Member) -> None:
        """Stop serving a member."""
        self._register(member, -1, 0)
        self._set_deadline(member, None)
        del self._members[member]

    def wait(self, timeout_ms: int | None, gather_until_ms: int = 0) -> None:
        """Give a turn to the members that have something to do, or sleep until one has, `wake` was called, or
        the time has passed.

        gather_until_ms   until then, on the monotonic clock, the sockets are not looked at, so that what
                          comes meanwhile is read together; `wake` ends it
        """
        self._owner = threading.get_ident()
        now_ms = monotonic_ms()
        if self._changed:
            self._settle()
        if self._due_ms is not None and self._due_ms <= now_ms:
            self._turn_due(now_ms)
            self._settle()
            timeout_ms, gather_until_ms = 0, 0  # the loop has to see to what they took in
        due_ms = self._due_ms
        until_ms = None if timeout_ms is None else now_ms + timeout_ms
        turning: list[Member] = []
        if gather_until_ms > now_ms and (due_ms is None or due_ms > now_ms):
            if self._orders.poll(gather_until_ms - now_ms):
                self._wakeup.clear()
                return
            now_ms = gather_until_ms
            for member in self._by_descriptor.values():
                if member.prompt():
                    turning.append(member)
                    until_ms = now_ms + ANSWER_MS
        if due_ms is not None and (until_ms is None or due_ms < until_ms):
            until_ms = due_ms
        ready = self._poll.poll(None if until_ms is None else max(0, until_ms - now_ms))
        self._serve(ready, turning)
        if not ready:
            self._turn_due(monotonic_ms())

    def _serve(self, ready: list[tuple[int, int]], turning: list[Member]) -> None:
        """Let members turn: these, and those whose sockets are ready."""
        for descriptor, _ in ready:
            found = self._by_descriptor.get(descriptor)
            if found is None:  # it is the wake-up's
                self._wakeup.clear()
            elif found not in turning:
                turning.append(found)
        for member in turning:
            if member in self._members and member.turn(True):  # one before it may have removed it
                self._changed.add(member)

    def close(self) -> None:
        """Release the descriptors of the loop."""
        self._wakeup.close()

    def _settle(self) -> None:
        """Have the changed members settle."""
        while self._changed:
            member = self._changed.pop()
            if member not in self._members:
                continue
            descriptor, mask, due_ms = member.settle()
            known = self._members.get(member)
            if known is None:  # it was removed meanwhile
                continue
            self._set_deadline(member, due_ms)
            if known != (descriptor, mask):
                self._register(member, descriptor, mask)

    def _set_deadline(self, member: Member, due_ms: int | None) -> None:
        if self._deadlines.get(member) == due_ms:
            return
        if due_ms is None:
            del self._deadlines[member]
        else:
            self._deadlines[member] = due_ms
        self._due_ms = min(self._deadlines.values(), default=None)

    def _turn_due(self, now_ms: int) -> None:
        """Give a turn to the members whose time has come."""
        if self._due_ms is None or self._due_ms > now_ms:
            return
        for member in [member for member, due_ms in self._deadlines.items() if due_ms <= now_ms]:
            self._set_deadline(member, None)
            self._changed.add(member)
            member.turn(False)

    def _register(self, member: Member, descriptor: int, mask: int) -> None:
        before, mask_before = self._members[member]
        # A socket without a mask is taken out: poll reports a closed one each time.
        if mask_before:
            self._poll.unregister(before)
            del self._by_descriptor[before]
        if mask:
            self._poll.register(descriptor, mask)
            self._by_descriptor[descriptor] = member
        self._members[member] = (descriptor, mask)
