"""The server that takes messages by HTTP."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator

import pytest

from edge.intake.sources.http_push_server import PushServers
from tests.support.waiting import PATIENCE_S


def test_a_token_is_demanded_where_there_is_one() -> None:
    servers = PushServers(("127.0.0.1", 0), "secret", 100, 10)
    assert servers.answer("POST", "/x", "", 2, None)[0] == 401
    assert servers.answer("POST", "/x", "Bearer secret", 2, None)[0] == 404


class Sink:
    """A stream that keeps each message."""

    path, method = "/x", "POST"

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def take(self, payload: bytes) -> bool:
        self.taken.append(payload)
        return True


@pytest.fixture
def pushed(request: pytest.FixtureRequest) -> Iterator[tuple[Sink, tuple[str, int]]]:
    """A stream, and the address of the server that feeds it."""
    servers, sink = PushServers((getattr(request, "param", "127.0.0.1"), 0), None, 100, 10), Sink()
    servers.add(sink)
    assert servers.address is not None
    yield sink, servers.address
    servers.remove(sink)


@pytest.mark.parametrize("pushed", ["127.0.0.1", "::1"], indirect=True)
def test_messages_come_by_either_version_of_ip(pushed: tuple[Sink, tuple[str, int]]) -> None:
    sink, address = pushed
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_S)
    connection.request("POST", "/x", "whole")
    assert connection.getresponse().status == 200
    connection.close()
    assert sink.taken == [b"whole"]


def test_a_message_that_was_cut_off_is_refused(pushed: tuple[Sink, tuple[str, int]]) -> None:
    sink, address = pushed
    with socket.create_connection(address, PATIENCE_S) as sender:
        sender.sendall(b"POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\n21.")
        sender.shutdown(socket.SHUT_WR)
        assert sender.recv(100).startswith(b"HTTP/1.1 400 ")
    assert sink.taken == []


def test_the_end_of_the_server_does_not_hold_up_the_loop() -> None:
    servers, sink = PushServers(("127.0.0.1", 0), None, 100, 10), Sink()
    spans = []
    for _ in range(5):
        servers.add(sink)
        began = time.perf_counter()
        servers.remove(sink)
        spans.append(time.perf_counter() - began)
    assert min(spans) < 0.1


def test_an_idle_sender_makes_room_for_another() -> None:
    """At the bound the sender that has waited longest is closed; one that is connected sends again."""
    servers, sink = PushServers(("127.0.0.1", 0), None, 100, connections_max=2), Sink()
    servers.add(sink)
    assert servers.address is not None
    idle = [socket.create_connection(servers.address, PATIENCE_S) for _ in range(2)]
    sender = http.client.HTTPConnection(*servers.address, timeout=PATIENCE_S)
    for body in ("first", "second"):
        sender.request("POST", "/x", body)
        assert sender.getresponse().read() == b"ok\n"
    assert sink.taken == [b"first", b"second"]
    assert idle[0].recv(1) == b""
    for connection in idle:
        connection.close()
    sender.close()
    servers.remove(sink)
