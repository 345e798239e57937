"""An HTTP server of the gateway: a thread takes connections, each of which has a thread of its own."""

from __future__ import annotations

import logging
import select
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
    """Serves an address from `begin` to `end`. Raises OSError where it cannot be had. `name`: of the
    thread."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(
        self, address: tuple[str, int], handler: Callable[..., BaseHTTPRequestHandler], name: str
    ) -> None:
        self.is_closing = False
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

    def handle_error(self, request: object, client_address: object) -> None:
        log_defect()
