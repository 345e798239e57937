"""Waking a thread that waits in `poll`, from any other thread."""

from __future__ import annotations

import socket
import weakref
from contextlib import suppress


class Wakeup:
    """A descriptor for `poll` that other threads set. Setting it twice wakes once."""

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        self._is_set = False
        self._release = weakref.finalize(self, _close, self._reading, self._writing)

    def fileno(self) -> int:
        return self._reading.fileno()

    def set(self) -> None:
        """Wake the thread; it reads its orders after `clear`."""
        if not self._is_set:
            self._is_set = True
            self._send()

    def _send(self) -> None:
        with suppress(OSError):
            self._writing.send(b"!")

    def clear(self) -> None:
        """Prepare for the next `set`. Call it when `poll` reports the descriptor, before reading the orders.

        The mark alone does not suffice: a thread that has set it may send its byte later, and that byte would
        end every following sleep.
        """
        with suppress(BlockingIOError):
            self._reading.recv(4096)
        self._is_set = False

    def close(self) -> None:
        """Release both ends; it happens with the end of the object as well."""
        self._release()


def _close(*ends: socket.socket) -> None:
    for end in ends:
        end.close()
