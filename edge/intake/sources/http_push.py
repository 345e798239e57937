"""The `httppush` source: clients send the stream's messages by HTTP.

The gateway answers 200 when the effect of a message is durable, so that a sender without such an answer may
send it again; 503 means that this took too long, or that the gateway takes in nothing now.
"""

from __future__ import annotations

import hmac
import itertools
import logging
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from pydantic import Field

from edge.intake.sources.base import OnBad, OnBatch
from edge.intake.sources.registry import BadSource, SourceEnvironment, SourceKind, register_source, topic_of
from rules.base import Model
from sql.catalog.streams import Stream

log = logging.getLogger("penstock.sources")

ACKNOWLEDGED_WITHIN_S = 10.0
"""The longest time that a sender waits for its answer."""

READ_WITHIN_S = 10.0
"""The time limit for a sender's request."""


class HttpPushSettings(Model):
    """Take the stream's messages from HTTP requests to `httpPush.bind`, at the path of DATASOURCE."""

    method: Literal["post", "put", "POST", "PUT"] = Field("post", description="the method that senders use")


class PushSource:
    """One path. Requests wait in threads of the server until their message is acknowledged."""

    def __init__(self, stream: str, path: str, method: str, servers: PushServers) -> None:
        self.stream = stream
        self.path = path
        self.method = method.upper()
        self._servers = servers
        self._tokens = itertools.count(1)
        self._waiting: dict[int, threading.Event] = {}
        self._on_batch: OnBatch | None = None
        self._is_paused = False
        self._counts = {"messages": 0, "refused": 0}

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        self._on_batch = on_batch
        self._servers.add(self)

    def acknowledge(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            if (event := self._waiting.pop(token, None)) is not None:
                event.set()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    def stop(self, timeout_ms: int) -> bool:
        self._servers.remove(self)
        return True

    @property
    def stats(self) -> dict[str, int]:
        is_on = int(self._servers.address is not None)
        return {"connected": is_on, "epoch": 1, **self._counts, "waiting": len(self._waiting)}

    def take(self, payload: bytes) -> bool:
        """Hand a message on and wait until it is safe; FALSE when it is not, or nothing is taken in."""
        if self._is_paused or self._on_batch is None:
            self._counts["refused"] += 1
            return False
        token, safe = next(self._tokens), threading.Event()
        self._waiting[token] = safe
        self._counts["messages"] += 1
        self._on_batch([(topic_of(self.stream), payload, token, 0)])
        if safe.wait(ACKNOWLEDGED_WITHIN_S):
            return True
        self._waiting.pop(token, None)
        return False


class PushServers:
    """The one server of all paths; it runs while some stream has one."""

    def __init__(self, bind: tuple[str, int] | None, token: str | None, bytes_max: int) -> None:
        """`bind` None: the gateway takes nothing by HTTP."""
        self._bind = bind
        self._token = token
        self._bytes_max = bytes_max
        self._sources: dict[str, PushSource] = {}
        self._server: ThreadingHTTPServer | None = None

    @property
    def is_on(self) -> bool:
        """True if the gateway takes messages by HTTP at all."""
        return self._bind is not None

    @property
    def address(self) -> tuple[str, int] | None:
        """The address that the server listens on; None while it does not."""
        if self._server is None:
            return None
        host, port = self._server.server_address[:2]
        return str(host), port

    def add(self, source: PushSource) -> None:
        """Serve a path; the first one starts the server. Raises OSError when the port is taken."""
        self._sources[source.path] = source
        if self._server is None and self._bind is not None:
            self._server = ThreadingHTTPServer(self._bind, _handler(self))
            self._server.daemon_threads = True
            threading.Thread(target=self._server.serve_forever, name="http push", daemon=True).start()
            log.info(
                "http_push.listening", extra={"address": f"{self._bind[0]}:{self._server.server_address[1]}"}
            )

    def remove(self, source: PushSource) -> None:
        """Serve a path no longer; the last one ends the server."""
        if self._sources.get(source.path) is source:
            del self._sources[source.path]
        if not self._sources and self._server is not None:
            self._server.shutdown()
            self._server.server_close()
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
        return (200, "ok") if source.take(body(length)) else (503, "not stored yet; send it again later")


def _handler(servers: PushServers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = READ_WITHIN_S

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def do_GET(self) -> None:
            self._serve()

        def _serve(self) -> None:
            header = self.headers.get("Content-Length", "")
            length = int(header) if header.isascii() and header.isdecimal() else None
            status, text = servers.answer(
                self.command, self.path, self.headers.get("Authorization", ""), length, self.rfile.read
            )
            answer = f"{text}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(answer)))
            if status in (401, 404, 405, 411, 413):  # the body was not read
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's signature
            log.debug("http_push.request", extra={"request": format % args})

    return Handler


def _make(stream: Stream, settings: HttpPushSettings, environment: SourceEnvironment) -> PushSource:
    path = str(stream.options.get("DATASOURCE", ""))
    if not environment.push.is_on:
        raise BadSource("TYPE", "the gateway takes nothing by HTTP: set httpPush.bind")
    return PushSource(
        stream.name, path if path.startswith("/") else f"/{path}", settings.method, environment.push
    )


register_source(SourceKind("httppush", HttpPushSettings, _make))
