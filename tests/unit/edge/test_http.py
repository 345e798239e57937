"""The HTTP server: what it answers, and that it never waits for ever."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge.base.errors import UsageError
from edge.monitor import http as edge_http
from edge.monitor.access import PageAccess, own_token, read_token
from edge.monitor.client import GatewayClient
from edge.monitor.http import StatusServer
from tests.support.waiting import PATIENCE_S, wait_for


class Reporter:
    """A gateway that answers what the test wants."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.stuck = False
        self.defect: Exception | None = None
        self.recovery: str | None = None

    def _answer(self) -> None:
        if self.stuck:
            raise TimeoutError("the gateway loop did not answer")
        if self.defect is not None:
            raise self.defect

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

    def recovering(self) -> str | None:
        return self.recovery


@pytest.fixture
def reporter() -> Reporter:
    return Reporter()


@pytest.fixture
def server(reporter: Reporter) -> Iterator[StatusServer]:
    server = StatusServer("127.0.0.1", 0, reporter)
    yield server
    server.close()


def ask(server: StatusServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
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


def test_a_command_repeats_what_a_page_says_of_a_question_without_an_answer(server: StatusServer) -> None:
    client = GatewayClient(f"{server.host}:{server.port}")
    with pytest.raises(UsageError, match=rf"^{client.address}: not found; there is /"):
        client.page("/nosuch")


def test_head_has_no_body_and_post_is_refused(server: StatusServer) -> None:
    assert ask(server, "/healthz", "HEAD")[:2] == (200, "")
    assert ask(server, "/healthz", "POST")[0] == 405


def test_a_defect_is_logged_and_a_client_that_hangs_up_is_not(
    server: StatusServer, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    reporter.defect = RuntimeError("no such field")
    with pytest.raises(UsageError, match=r"hung up without an answer; see http\.defect in its log"):
        GatewayClient(f"{server.host}:{server.port}").page("/status")
    wait_for(lambda: "no such field" in caplog.text, what="the defect in the log")
    assert [record.message for record in caplog.records] == ["http.defect"]
    reporter.defect = BrokenPipeError("gone")
    with pytest.raises(UsageError, match="hung up"):
        GatewayClient(f"{server.host}:{server.port}").page("/status")
    server.close()
    assert len(caplog.records) == 1


def test_a_stuck_loop_is_unhealthy(server: StatusServer, reporter: Reporter) -> None:
    reporter.stuck = True
    for path in ("/healthz", "/readyz", "/metrics", "/status"):
        status, text, _ = ask(server, path)
        assert status == 503, path
        assert "did not answer" in text


def test_a_token_guards_what_tells_something(reporter: Reporter) -> None:
    server = StatusServer("127.0.0.1", 0, reporter, PageAccess("sesame"))
    try:
        assert ask(server, "/healthz")[0] == 200
        for path in ("/metrics", "/status"):
            assert ask(server, path)[0] == 401
            assert ask(server, path, Authorization="Bearer wrong")[0] == 401
            assert ask(server, path, Authorization="Bearer sesame")[0] == 200
    finally:
        server.close()


def test_a_port_in_use_is_told_with_its_key_and_a_remedy(server: StatusServer, reporter: Reporter) -> None:
    with pytest.raises(
        UsageError, match=rf"http.bind 127.0.0.1:{server.port}: address already in use; .* off"
    ):
        StatusServer("127.0.0.1", server.port, reporter)


def test_pages_can_be_opened_one_by_one(reporter: Reporter) -> None:
    server = StatusServer("127.0.0.1", 0, reporter, PageAccess("sesame", frozenset({"metrics"})))
    try:
        assert ask(server, "/metrics")[0] == 200
        assert ask(server, "/status")[0] == 401
    finally:
        server.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9620", "[::1]:9620", "LOCALHOST:1"])
def test_a_request_under_a_name_of_loopback_is_answered(server: StatusServer, host: str) -> None:
    assert ask(server, "/status", Host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["attacker.example", "attacker.example:9620", "127.0.0.1.attacker.example", ""]
)
def test_a_request_under_another_name_is_refused(server: StatusServer, host: str) -> None:
    """A page whose name resolves to loopback could else read what a browser here may read."""
    status, text, _ = ask(server, "/status", Host=host)
    assert status == 421
    assert "rules" not in text


def test_a_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    token = own_token(tmp_path)
    assert len(token) == 32
    assert own_token(tmp_path) == read_token(tmp_path) == token
    assert (tmp_path / "http.token").stat().st_mode & 0o777 == 0o600


def test_recovery_is_healthy_but_not_ready(server: StatusServer, reporter: Reporter) -> None:
    reporter.stuck, reporter.recovery = True, "recovering: 12 messages of the journal replayed"
    assert ask(server, "/healthz")[:2] == (200, f"{reporter.recovery}\n")
    for path in ("/readyz", "/status", "/metrics"):
        assert ask(server, path)[:2] == (503, f"{reporter.recovery}\n")


@pytest.mark.long
def test_idle_connections_do_not_keep_others_out(server: StatusServer) -> None:
    """The one that has waited longest without a request makes room; one that sends its
    request slowly is such."""
    idle = [
        socket.create_connection((server.host, server.port)) for _ in range(3 * edge_http.CONNECTIONS_MAX)
    ]
    for connection in idle:
        connection.sendall(b"GET /healthz HT")
    try:
        for _ in range(5):
            assert ask(server, "/healthz")[:2] == (200, "ok\n")
    finally:
        for connection in idle:
            connection.close()
