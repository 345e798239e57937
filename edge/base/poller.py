"""The wait of a loop: for its sockets, the clock, and other threads.

A member serves one socket. The loop gets the events that each member waits for, sleeps until one of them has
come, and calls those members. Nothing polls: without traffic the loop sleeps until the next deadline.
"""

from __future__ import annotations

import select
import threading
from typing import Protocol

from edge.base.wakeup import Wakeup


class Member(Protocol):
    """Something served by the loop; all of it runs on the loop's thread. It turns when its descriptor is
    ready or its time has come."""

    def interest(self) -> tuple[int, int]:
        """Descriptor and `poll` mask; a mask of 0: it waits for nothing but time."""

    def due_in_ms(self) -> int | None:
        """The time until `turn` should be called in any case; None: never."""

    def prompt(self) -> None:
        """Called shortly before the loop turns: let the other side send held-back data."""

    def turn(self, is_ready: bool) -> None:
        """Do what can be done; `is_ready`: the descriptor is."""


PROMPT_MS = 1
"""The time before the end of a pause at which peers are prompted to send held-back data."""


class Poller:
    """The members of one loop, all of it for the loop's thread, but `wake` for any.

    The thread that called `wait` last is the loop's: it sees its own requests before it sleeps.
    """

    def __init__(self) -> None:
        self._wakeup = Wakeup()
        self._owner: int | None = None
        self._members: dict[Member, tuple[int, int]] = {}
        self._poll = select.poll()
        self._poll.register(self._wakeup, select.POLLIN)
        self._orders = select.poll()
        self._orders.register(self._wakeup, select.POLLIN)

    def wake(self) -> None:
        """End the sleep of the loop, now or the next one."""
        if threading.get_ident() != self._owner:
            self._wakeup.set()

    def add(self, member: Member) -> None:
        """Serve a member from now on."""
        self._members[member] = (-1, 0)

    def remove(self, member: Member) -> None:
        """Serve it no longer."""
        self._register(member, (-1, 0))
        del self._members[member]

    def flush(self) -> None:
        """Let members that have something to do do it, without looking at the sockets."""
        for member in list(self._members):
            if member.due_in_ms() == 0:
                member.turn(False)

    def pause(self, timeout_ms: int) -> None:
        """Sleep without looking at the sockets, so that what comes meanwhile is read
        together; `wake` ends it."""
        if timeout_ms > PROMPT_MS and self._orders.poll(timeout_ms - PROMPT_MS):
            return
        for member in self._members:
            member.prompt()
        self._orders.poll(min(timeout_ms, PROMPT_MS))

    def wait(self, timeout_ms: int | None) -> None:
        """Sleep until a member has something to do, `wake` was called, or the time has
        passed; then let those turn that have."""
        self._owner = threading.get_ident()
        due: list[Member] = []
        for member in self._members:
            self._register(member, member.interest())
            due_ms = member.due_in_ms()
            if due_ms is None or (timeout_ms is not None and due_ms > timeout_ms):
                continue
            if due_ms != timeout_ms:
                timeout_ms = due_ms
                due.clear()
            due.append(member)
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout_ms)}
        self._wakeup.clear()
        # Where something else has ended the sleep, no deadline has come, unless it had before.
        is_time = not ready or timeout_ms == 0
        for member in list(self._members):
            is_ready = self._members[member][0] in ready
            if is_ready or (is_time and member in due):
                member.turn(is_ready)

    def close(self) -> None:
        """Release the descriptors of the loop."""
        self._wakeup.close()

    def _register(self, member: Member, interest: tuple[int, int]) -> None:
        before = self._members[member]
        if interest == before:
            return
        # A socket without a mask is taken out: it would wake us for ever once the other side has hung up.
        if before[1]:
            self._poll.unregister(before[0])
        if interest[1]:
            self._poll.register(*interest)
        self._members[member] = interest
