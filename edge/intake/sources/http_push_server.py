"""The HTTP server of the `httppush` source."""

from __future__ import annotations

import hmac
import logging
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from edge.base.http_server import HttpServer

log = logging.getLogger("penstock.sources")

READ_WITHIN_S = 10.0
"""The time limit for a sender's request."""


class Receiver(Protocol):
    """The stream behind one path."""

    path: str
    method: str

    def take(self, payload: bytes) -> bool:
        """Hand a message on and wait until it is safe; FALSE when it is not."""


class PushServers:
    """The one server of all paths; it runs while some stream has one."""

    def __init__(
        self, bind: tuple[str, int] | None, token: str | None, bytes_max: int, connections_max: int
    ) -> None:
        """`bind` None: the gateway takes nothing by HTTP."""
        self._connections_max = connections_max
        self._bind = bind
        self._token = token
        self._bytes_max = bytes_max
        self._sources: dict[str, Receiver] = {}
        self._server: HttpServer | None = None

    @property
    def is_on(self) -> bool:
        """True if the gateway takes messages by HTTP at all."""
        return self._bind is not None

    @property
    def address(self) -> tuple[str, int] | None:
        """The address that the server listens on; None while it does not."""
        return None if self._server is None else self._server.address

    def add(self, source: Receiver) -> None:
        """Serve a path; the first one starts the server. Raises OSError when the port is taken."""
        self._sources[source.path] = source
        if self._server is None and self._bind is not None:
            self._server = HttpServer(self._bind, _handler(self), "http push", self._connections_max)
            self._server.begin()
            address = f"{self._bind[0]}:{self._server.address[1]}"
            log.info("http_push.listening", extra={"address": address})

    def remove(self, source: Receiver) -> None:
        """Stop serving a path; the last one ends the server."""
        if self._sources.get(source.path) is source:
            del self._sources[source.path]
        if not self._sources and self._server is not None:
            self._server.end()
            self._server = None

    def answer(
        self, method: str, path: str, authorization: str, length: int | None, body: Any
    ) -> tuple[int, str]:
        """Status and text for a request; `body` reads so many bytes."""
        source = self._sources.get(path.partition("?")[0])
        if self._token is not None and not hmac.compare_digest(authorization, f"Bearer {self._token}"):
            return 401, "the token is missing or wrong"
        if source is None:
            return 404, "no stream reads this path"
        if method != source.method:
            return 405, f"this path takes {source.method}"
        if length is None:
            return 411, "Content-Length is missing"
        if length > self._bytes_max:
            return 413, f"at most {self._bytes_max} bytes"
        payload = body(length)
        if len(payload) < length:
            return 400, f"the body ends after {len(payload)} of {length} bytes"
        return (200, "ok") if source.take(payload) else (503, "not stored yet; send it again later")


def _handler(servers: PushServers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = READ_WITHIN_S
        server: HttpServer

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def do_GET(self) -> None:
            self._serve()

        def _serve(self) -> None:
            if not self.server.has_asked(self.connection):
                self.close_connection = True
                return
            self._answer()
            self.server.has_answer(self.connection)

        def _answer(self) -> None:
            header = self.headers.get("Content-Length", "")
            length = int(header) if header.isascii() and header.isdecimal() else None
            status, text = servers.answer(
                self.command, self.path, self.headers.get("Authorization", ""), length, self.rfile.read
            )
            answer = f"{text}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(answer)))
            if status in (400, 401, 404, 405, 411, 413):  # the body was not read, or not to its end
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's signature
            log.debug("http_push.request", extra={"request": format % args})

    return Handler
