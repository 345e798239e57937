"""The influx sinks: against an HTTP server that keeps what it is sent,
with the line protocol checked by hand, and against an InfluxDB 1."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from sinks.formats.line_protocol import line
from tests.integration.sinks.support import Gateway, HttpPeer
from tests.support.servers import Influx
from tests.support.waiting import wait_for
from tests.unit.sinks.support import rows


def test_points_of_version_2(gateway: Gateway, http_peer: HttpPeer) -> None:
    settings = {
        "addr": http_peer.url,
        "org": "o",
        "bucket": "b",
        "token": "t",
        "measurement": "{{.m}}",
        "tags": {"dev": "{{.d}}", "site": "north"},
        "tsFieldName": "ts",
        "excludeFields": ["m"],
    }
    settings["measurement"] = "room"
    delivery = gateway.action("influx2", settings)
    delivery.submit(rows({"d": "a 1", "t": 21.5, "ts": 1000, "gap": None}, {"d": "b", "t": 3, "ts": 2000}), 1)
    assert gateway.await_receipts(1) == [(1, "delivered")]
    (request,) = http_peer.requests
    assert request.path == "/api/v2/write?org=o&bucket=b&precision=ms"
    assert request.headers["authorization"] == "Token t"
    assert request.body.decode().split("\n") == [
        'room,dev=a\\ 1,site=north d="a 1",t=21.5 1000',
        'room,dev=b,site=north d="b",t=3i 2000',
    ]


def test_points_of_version_1(gateway: Gateway, http_peer: HttpPeer) -> None:
    settings = {
        "addr": http_peer.url,
        "database": "d",
        "username": "u",
        "password": "p",
        "measurement": "m{{.k}}",
        "precision": "us",
        "compression": "gzip",
    }
    gateway.action("influx", settings).submit(rows({"k": 1, "ok": True}), 1)
    gateway.await_receipts(1)
    (request,) = http_peer.requests
    assert request.path == "/write?db=d&precision=u"
    assert request.headers["authorization"] == "Basic dTpw"
    assert gzip.decompress(request.body).decode().startswith("m1 k=1i,ok=true ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx]:
    server = Influx(tmp_path_factory.mktemp("influx"))
    yield server.start()
    server.stop()


def test_an_influxdb_has_the_points_and_refuses_a_conflict(gateway: Gateway, server: Influx) -> None:
    server.ask("CREATE DATABASE plant")
    settings = {"addr": server.url, "database": "plant", "measurement": "room", "tsFieldName": "ts"}
    delivery = gateway.action("influx", settings | {"tags": '{"dev": "{{.d}}"}', "fields": ["t", "s"]})
    delivery.submit(
        rows({"d": "a, 1", "t": 21.5, "s": 'x "y" \\', "ts": 1000}, {"d": "b", "t": 3.5, "ts": 2000}), 1
    )
    assert gateway.await_receipts(1) == [(1, "delivered")]
    delivery.submit(rows({"d": "b", "t": "warm", "ts": 3000}), 2)
    delivery.submit(rows({"d": "b", "t": 4.5, "ts": 4000}), 3)
    assert dict(gateway.await_receipts(3)) == {1: "delivered", 2: "rejected", 3: "delivered"}
    assert "conflict" in gateway.dead_letters()
    found = server.ask("SELECT dev, s, t FROM room", "plant")
    assert found == [[1000, "a, 1", 'x "y" \\', 21.5], [2000, "b", None, 3.5], [4000, "b", None, 4.5]]


def test_an_influxdb_that_was_away_gets_what_waited(gateway: Gateway, server: Influx) -> None:
    settings = {"addr": server.url, "database": "away", "measurement": "m", "tsFieldName": "ts"}
    server.ask("CREATE DATABASE away")
    server.stop()
    delivery = gateway.action("influx", settings)
    for number in range(20):
        delivery.submit(rows({"n": number, "ts": number}), number)
    wait_for(lambda: delivery.stats().state == "retrying")
    server.start()
    assert [outcome for _, outcome in gateway.await_receipts(20)] == ["delivered"] * 20
    assert server.ask("SELECT count(n), sum(n) FROM m", "away") == [[0, 20, 190]]


def test_a_refused_point_is_a_dead_letter_and_the_others_are_written(
    gateway: Gateway, http_peer: HttpPeer
) -> None:
    http_peer.answer(400, body=b"field type conflict")
    http_peer.answer(204)
    http_peer.answer(400, body=b"field type conflict")
    settings = {"addr": http_peer.url, "database": "d", "measurement": "m", "sendSingle": True}
    delivery = gateway.action("influx", settings)
    delivery.submit(rows({"n": 1}, {"n": "x"}, {"n": 3}), 1)
    assert gateway.await_receipts(1) == [(1, "rejected")]
    assert "field type conflict" in gateway.dead_letters()
    written = [request.body.decode().split()[1] for request in http_peer.requests]
    assert written[-1] == "n=3i"


@pytest.mark.parametrize("status", [500, 429])
def test_a_server_in_trouble_is_asked_again(gateway: Gateway, http_peer: HttpPeer, status: int) -> None:
    http_peer.answer(status)
    settings = {"addr": http_peer.url, "database": "d", "measurement": "m", "retryInterval": 5}
    gateway.action("influx", settings).submit(rows({"n": 1}), 1)
    assert gateway.await_receipts(1) == [(1, "delivered")]
    assert len(http_peer.requests) == 2


def test_lines() -> None:
    assert line("m", {"a=b": "c,d", "e": ""}, {"f g": 'x"y\\', "n": 2**70, "nan": float("nan")}, None) == (
        'm,a\\=b=c\\,d f\\ g="x\\"y\\\\",n=1.1805916207174113e+21'
    )
    with pytest.raises(ValueError, match="no column"):
        line("m", {}, {"x": None}, 1)
