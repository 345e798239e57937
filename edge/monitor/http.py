"""The daemon's own HTTP server, standard library only.

    /healthz   200 while the gateway loop answers within a bound, else 503
    /readyz    200 when every source is connected and every rule file is in use as it stands,
               else 503 with the reasons
    /metrics   Prometheus text
    /status    JSON: rules with their states and counters, files with their problems, sources, sinks, spool
    /relations, /relations/NAME, /query?sql=SELECT …   tables and named windows (`edge.monitor.relations`)
    /partitions/NAME    the live partitions of a context, all or some (`edge.monitor.relations`)
    /why/RULE, /tap/NAME, /ui   the flight recorder (`monitor.flight`) and the page (`monitor.console`)
    and, where it is switched on, management (`edge.deploy.manage.routes`), always with the token

All but the first two demand a token, see `edge.monitor.access`; the tables are shown to this machine only.
The server threads never touch the engine: they ask the gateway loop, which has `http.answerTimeoutMs` for its
answer. While the journal is replayed there is no loop: `/healthz` is 200, and the others report its progress.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import parse_qsl

import msgspec

from edge.base.errors import UsageError
from edge.base.http_server import HttpServer
from edge.base.page import Page, text_page
from edge.monitor.access import TOKEN_FILE, PageAccess
from edge.monitor.pages import Pages
from rules.problems import in_words

CONNECTIONS_MAX = 16
"""Connections at the same time (see `HttpServer`)."""

BODY_BYTES_MAX = 4_000_000
"""The longest body of a request of management; a longer one is refused."""

_REQUEST_TIMEOUT_S = 10


class Reporter(Protocol):
    """The gateway as the server needs it; each call may raise TimeoutError."""

    def metrics_text(self) -> str: ...
    def status(self) -> dict[str, Any]: ...
    def not_ready(self) -> list[str]:
        """Why the gateway is not ready; empty when it is."""

    def ping(self) -> None:
        """Return as soon as the loop has turned."""

    def recovering(self) -> str | None:
        """The progress of the recovery; None when it is over."""


class Management(Protocol):
    """Management as the server needs it."""

    def knows(self, path: str) -> bool: ...
    def handle(self, method: str, path: str, body: bytes, who: str) -> Page: ...


class StatusServer:
    """Serves until `close`. `port` is the one really bound. Raises `UsageError` where that
    address cannot be had."""

    def __init__(
        self,
        host: str,
        port: int,
        reporter: Reporter,
        access: PageAccess | None = None,
        manage: Management | None = None,
        pages: Sequence[Pages] = (),
    ) -> None:
        handler = type(
            "Handler",
            (_Handler,),
            {
                "reporter": reporter,
                "access": access or PageAccess(),
                "manage": manage,
                "pages": pages,
            },
        )
        try:
            self._server = HttpServer((host, port), handler, "http", CONNECTIONS_MAX)
        except OSError as error:
            why = f"http.bind {host}:{port}: {in_words(error)}"
            raise UsageError(
                f"{why}; is another gateway running here? Choose another port, or off"
            ) from error
        self.host, self.port = host, self._server.address[1]
        self._server.begin()

    def close(self) -> None:
        """Stop listening; requests under way are finished by their own threads."""
        self._server.end()


class _Handler(BaseHTTPRequestHandler):
    reporter: Reporter
    access: PageAccess
    manage: Management | None
    pages: Sequence[Pages]
    server: HttpServer
    server_version = "penstock"
    sys_version = ""
    timeout = _REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        if not self.server.has_asked(self.connection):
            return
        if not self.access.is_known_host(self.headers.get("Host")):
            self._send(421, "this gateway is reached as localhost or 127.0.0.1 only\n")
            return
        answers: dict[str, Callable[[], None]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/status": self._status,
        }
        path = self.path.split("?", 1)[0]
        for pages in self.pages:
            if pages.knows(path):
                answers[path] = partial(self._open, pages)
        if path not in answers and self.manage is not None and self.manage.knows(path):
            answers[path] = self._managed
        if path not in answers:
            listed = [*answers, *(path for pages in self.pages for path in pages.listed)]
            self._send(404, "not found; there is " + " ".join(listed) + "\n")
            return
        try:
            recovering = self.reporter.recovering()
            if recovering is None:
                answers[path]()
            else:
                self._send(200 if path == "/healthz" else 503, f"{recovering}\n")
        except TimeoutError as error:
            self._send(503, f"{error}\n")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if not self.server.has_asked(self.connection):
            return
        if not self.access.is_known_host(self.headers.get("Host")):
            self._send(421, "this gateway is reached as localhost or 127.0.0.1 only\n")
        elif any(pages.knows(self.path) for pages in self.pages):
            self._act()
        elif self.manage is None or not self.manage.knows(self.path.split("?", 1)[0]):
            self._send(405, "only GET; http.manage switches management on\n")
        elif (recovering := self.reporter.recovering()) is not None:
            self._send(503, f"{recovering}\n")
        else:
            self._managed()

    do_PUT = do_DELETE = do_POST

    def _act(self) -> None:
        """Carry out a POST from a page; a page of another origin has no token for it."""
        if self._may_ask():
            done = [page for pages in self.pages if (page := pages.act(self.path)) is not None]
            self._send_page(done[0] if done else text_page(405, "only GET"))

    def _managed(self) -> None:
        assert self.manage is not None
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self._send(413, f"the body has a length, of at most {BODY_BYTES_MAX} bytes\n")
            return
        body = self.rfile.read(int(length))
        if self._is_allowed("manage"):
            method = "GET" if self.command == "HEAD" else self.command
            who = f"{self.client_address[0]} {self.headers.get('User-Agent', '')}".strip()
            try:
                page = self.manage.handle(method, self.path.split("?", 1)[0], body, who)
            except TimeoutError as error:
                page = text_page(503, str(error))
            self._send_page(page)

    def _healthz(self) -> None:
        self.reporter.ping()
        self._send(200, "ok\n")

    def _readyz(self) -> None:
        reasons = self.reporter.not_ready()
        self._send(503 if reasons else 200, "\n".join(reasons or ["ready"]) + "\n")

    def _metrics(self) -> None:
        if self._is_allowed("metrics"):
            self._send(200, self.reporter.metrics_text(), "text/plain; version=0.0.4; charset=utf-8")

    def _status(self) -> None:
        if self._is_allowed("status"):
            told = msgspec.json.encode(self.reporter.status())
            self._send_bytes(200, msgspec.json.format(told, indent=1) + b"\n", "application/json")

    def _open(self, pages: Pages) -> None:
        path, _, query = self.path.partition("?")
        if not (self._may_ask() if pages.needs_token(path) else self._is_here()):
            return
        given = parse_qsl(query, keep_blank_values=True)
        if len(dict(given)) < len(given):
            self._send(400, "give each parameter once\n")
            return
        self._send_page(pages.open(path, dict(given)))

    def _send_page(self, page: Page) -> None:
        if isinstance(page.body, bytes):
            self._send_bytes(page.status, page.body, page.kind)
        else:
            self._stream(page, page.body)

    def _stream(self, page: Page, pieces: Generator[bytes]) -> None:
        """Send the pieces of a page until it ends, or the client hangs up."""
        self.close_connection = True
        with contextlib.closing(pieces), contextlib.suppress(OSError):
            self.send_response(page.status)
            self.send_header("Content-Type", page.kind)
            self.send_header("Cache-Control", "no-store")
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
                if self.command == "HEAD" or self.server.is_closing:
                    return

    def _may_ask(self) -> bool:
        """True if rows may be shown: to this machine, with the token."""
        return self._is_here() and self._is_allowed("tables")

    def _is_here(self) -> bool:
        """True if the request comes from this machine; else it is refused."""
        if ip_address(str(self.client_address[0]).partition("%")[0]).is_loopback:
            return True
        self._send(403, "rows are shown on this machine only; ask it by 127.0.0.1\n")
        return False

    def _is_allowed(self, page: str) -> bool:
        if self.access.may_see(page, self.headers.get("Authorization", "")):
            return True
        where = f"http.token of the configuration, or the file {TOKEN_FILE} in the data directory"
        self._send(401, f"this needs the header 'Authorization: Bearer TOKEN' with {where}\n")
        return False

    def _send(self, status: int, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        self._send_bytes(status, text.encode(), kind)

    def _send_bytes(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Do nothing: a collector of metrics sends a request every few seconds."""
