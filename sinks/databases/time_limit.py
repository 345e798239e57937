"""The time limit of a call to a database whose driver has none."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Any

LOOKS = 4
"""The number of checks per time limit; a call may last longer by the time between two checks."""


class TimeLimit:
    """A context in which a call may take `timeout_ms`. After that the connection's socket is shut down, which
    ends the call with an error of the driver.

    libpq waits without limit for the answer of a server that accepts a query and hangs. A thread looks at the
    calls; it ends where it finds none under way, so that a busy connection does not start one for each call.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.connection: Any = None
        """The driver's connection. Where it has no method `fileno`, nothing ends its calls here."""
        self.has_ended_call = False
        """The limit ended the last call."""
        self._pause_s = timeout_ms / 1000 / LOOKS
        self._looks: int | None = None
        """How often the thread has seen the call that is under way."""
        self._is_watched = False
        self._changed = threading.Lock()

    def __enter__(self) -> None:
        with self._changed:
            self.has_ended_call = False
            self._looks = 0
            if not self._is_watched:
                self._is_watched = True
                threading.Thread(target=self._watch, name="database-limit", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        # Under the lock: while `_end` uses the descriptor, nobody closes it, and no other file gets it.
        with self._changed:
            self._looks = None

    def _watch(self) -> None:
        never = threading.Event()
        goes_on = True
        while goes_on:
            never.wait(self._pause_s)
            with self._changed:  # the next call starts a thread of its own once this one has decided to end
                goes_on = self._is_watched = self._look()

    def _look(self) -> bool:
        """Count a check of the call under way, or end it; whether to go on."""
        if self._looks is not None and self._looks < LOOKS:
            self._looks += 1
            return True
        if self._looks is not None:
            self._end()
        return False

    def _end(self) -> None:
        with contextlib.suppress(Exception):  # a closed connection has no descriptor
            with socket.socket(fileno=os.dup(self.connection.fileno())) as connection:
                connection.shutdown(socket.SHUT_RDWR)
            self.has_ended_call = True
