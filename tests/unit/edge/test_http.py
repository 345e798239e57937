"""The HTTP server: what it answers, and that it never waits for ever."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from edge.base.errors import UsageError
from edge.monitor import http as edge_http
from edge.monitor.http import StatusServer


class Reporter:
    """A gateway that answers what the test wants."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.stuck = False

    def _answer(self) -> None:
        if self.stuck:
            raise TimeoutError

    def metrics_text(self) -> str:
        self._answer()
        return "penstock_rules 1\n"

    def status(self) -> dict[str, Any]:
        self._answer()
        return {"rules": {}}

    def not_ready(self) -> list[str]:
        self._answer()
        return self.reasons

    def ping(self) -> None:
        self._answer()


@pytest.fixture
def reporter() -> Reporter:
    return Reporter()


@pytest.fixture
def server(reporter: Reporter) -> Iterator[StatusServer]:
    server = StatusServer("127.0.0.1", 0, reporter)
    yield server
    server.close()


def ask(server: StatusServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=5)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers["Content-Type"]
    finally:
        connection.close()


def test_pages(server: StatusServer, reporter: Reporter) -> None:
    assert ask(server, "/healthz")[:2] == (200, "ok\n")
    assert ask(server, "/readyz")[:2] == (200, "ready\n")
    reporter.reasons = ["broker: connection refused", "rules/a.yaml: 2 problems"]
    assert ask(server, "/readyz?x=1")[:2] == (503, "broker: connection refused\nrules/a.yaml: 2 problems\n")
    assert ask(server, "/metrics") == (200, "penstock_rules 1\n", "text/plain; version=0.0.4; charset=utf-8")
    assert ask(server, "/status") == (200, '{\n "rules": {}\n}\n', "application/json")
    status, text, _ = ask(server, "/elsewhere")
    assert status == 404
    assert "/metrics" in text


def test_head_has_no_body_and_post_is_refused(server: StatusServer) -> None:
    assert ask(server, "/healthz", "HEAD")[:2] == (200, "")
    assert ask(server, "/healthz", "POST")[0] == 501


def test_a_stuck_loop_is_unhealthy(server: StatusServer, reporter: Reporter) -> None:
    reporter.stuck = True
    for path in ("/healthz", "/readyz", "/metrics", "/status"):
        status, text, _ = ask(server, path)
        assert status == 503, path
        assert "did not answer" in text


def test_a_token_guards_what_tells_something(reporter: Reporter) -> None:
    server = StatusServer("127.0.0.1", 0, reporter, token="sesame")
    try:
        assert ask(server, "/healthz")[0] == 200
        for path in ("/metrics", "/status"):
            assert ask(server, path)[0] == 401
            assert ask(server, path, Authorization="Bearer wrong")[0] == 401
            assert ask(server, path, Authorization="Bearer sesame")[0] == 200
    finally:
        server.close()


def test_a_port_in_use_is_told_with_its_key_and_a_remedy(server: StatusServer, reporter: Reporter) -> None:
    with pytest.raises(UsageError, match=rf"http.bind 127.0.0.1:{server.port}: Address already in use; .* off"):
        StatusServer("127.0.0.1", server.port, reporter)


def test_connections_beyond_the_bound_are_closed(server: StatusServer) -> None:
    """Idle connections take slots; the next one is hung up on instead of growing a thread each."""
    idle = [http.client.HTTPConnection(server.host, server.port, timeout=5) for _ in range(edge_http.CONNECTIONS_MAX)]
    for connection in idle:
        connection.connect()
    try:
        deadline = threading.Event()
        for _ in range(100):
            try:
                ask(server, "/healthz")
            except (ConnectionError, http.client.RemoteDisconnected):
                break
            deadline.wait(0.02)
        else:
            pytest.fail("a connection beyond the bound was served")
    finally:
        for connection in idle:
            connection.close()
    for _ in range(100):
        try:
            if ask(server, "/healthz")[0] == 200:
                return
        except (ConnectionError, http.client.RemoteDisconnected):
            deadline.wait(0.02)
    pytest.fail("slots were not given back")
