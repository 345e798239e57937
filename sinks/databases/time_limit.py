"""The time limit of a call to a database whose driver has none."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Any


class TimeLimit:
    """A context in which a call may take `timeout_ms`. After that the connection's socket is shut down, which
    ends the call with an error of the driver.

    libpq waits without limit for the answer of a server that accepts a query and hangs.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.connection: Any = None
        """The driver's connection. Where it has no method `fileno`, nothing ends its calls here."""
        self.has_ended_call = False
        """The limit ended the last call."""
        self._timeout_ms = timeout_ms
        self._running: threading.Timer | None = None
        self._changed = threading.Lock()

    def __enter__(self) -> None:
        self.has_ended_call = False
        self._running = threading.Timer(self._timeout_ms / 1000, self._end)
        self._running.daemon = True
        self._running.start()

    def __exit__(self, *_: object) -> None:
        # Under the lock: while `_end` uses the descriptor, nobody closes it, and no other file gets it.
        with self._changed:
            assert self._running is not None
            self._running.cancel()
            self._running = None

    def _end(self) -> None:
        """On a thread of its own."""
        with self._changed, contextlib.suppress(Exception):  # a closed connection has no descriptor
            if self._running is threading.current_thread():
                with socket.socket(fileno=os.dup(self.connection.fileno())) as connection:
                    connection.shutdown(socket.SHUT_RDWR)
                self.has_ended_call = True
