"""Waking a thread that waits in `poll`, from any other thread."""

from __future__ import annotations

import socket
from contextlib import suppress


class Bell:
    """Something to register in `poll` that others can ring. Ringing twice before the thread wakes costs nothing."""

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        self._rung = False

    def fileno(self) -> int:
        return self._reading.fileno()

    def ring(self) -> None:
        """Wake the thread; it reads its orders after `hush`."""
        if not self._rung:
            self._rung = True
            with suppress(OSError):
                self._writing.send(b"!")

    def hush(self) -> None:
        """Make ready for the next ring; to be called before the orders are read."""
        if self._rung:
            with suppress(BlockingIOError):
                self._reading.recv(4096)
            self._rung = False

    def close(self) -> None:
        self._reading.close()
        self._writing.close()
