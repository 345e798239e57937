"""An HTTP server of the gateway: a thread takes connections, each of which has a thread of its own."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from edge.base.wakeup import Wakeup

log = logging.getLogger("penstock.http")

END_S = 10
"""The longest time that `end` waits for a connection that is being taken."""


def log_defect() -> None:
    """Log the exception under way, unless it is that of a client that has hung up."""
    error = sys.exception()
    if not isinstance(error, OSError):
        log.error("http.defect", extra={"error": repr(error)}, exc_info=error)


class HttpServer(ThreadingHTTPServer):
    """Serves an address from `begin` to `end`. Raises OSError where it cannot be had.

    name             the name of its thread
    connections_max  connections at the same time; one more takes the place of the one that has waited
                     longest without a request, and is closed where all of them are being answered
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(
        self,
        address: tuple[str, int],
        handler: Callable[..., BaseHTTPRequestHandler],
        name: str,
        connections_max: int,
    ) -> None:
        self.is_closing = False
        self._connections_max = connections_max
        self._waiting: list[socket.socket] = []  # connections without a request, the oldest first
        self._answering: list[socket.socket] = []
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)
        self.timeout = 0
        self._wakeup = Wakeup()
        self._thread = threading.Thread(target=self._take, name=name, daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """The address that was really bound."""
        return str(self.server_address[0]), int(self.server_address[1])

    def server_bind(self) -> None:
        """Bind without looking up the host's name, which may block for seconds without a name server."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.address

    def begin(self) -> None:
        """Take connections from now on."""
        self._thread.start()

    def end(self) -> None:
        """Stop listening; requests under way are finished by their own threads."""
        self.is_closing = True
        self._wakeup.set()
        self._thread.join(END_S)
        self.server_close()
        self._wakeup.close()

    def _take(self) -> None:
        """Take connections; sleep without looking at a clock until there is one."""
        waiting = select.poll()
        waiting.register(self.fileno(), select.POLLIN)
        waiting.register(self._wakeup, select.POLLIN)
        while not self.is_closing:
            waiting.poll()
            if not self.is_closing:
                self.handle_request()

    # --- the bound on connections ---------------------------------------------------------------------------

    def process_request(self, request: Any, client_address: object) -> None:
        with self._lock:
            if len(self._waiting) + len(self._answering) >= self._connections_max:
                if not self._waiting:
                    self.shutdown_request(request)
                    return
                idle = self._waiting.pop(0)
                with contextlib.suppress(OSError):
                    idle.shutdown(socket.SHUT_RDWR)  # its own thread closes it
            self._waiting.append(request)
        super().process_request(request, client_address)

    def has_asked(self, connection: socket.socket) -> bool:
        """A request has come on this connection; False if it was hung up on meanwhile."""
        with self._lock:
            if connection not in self._waiting:
                return False
            self._waiting.remove(connection)
            self._answering.append(connection)
            return True

    def has_answer(self, connection: socket.socket) -> None:
        """The answer is sent: the connection waits for another request."""
        with self._lock:
            self._answering.remove(connection)
            self._waiting.append(connection)

    def process_request_thread(self, request: Any, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                for connections in (self._waiting, self._answering):
                    if request in connections:
                        connections.remove(request)

    def handle_error(self, request: object, client_address: object) -> None:
        log_defect()
