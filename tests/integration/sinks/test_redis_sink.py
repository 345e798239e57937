"""The redis and redisPub sinks against a real server."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge.plugins.sink_contract import Bench
from rules.secrets import Secret
from sinks import Retry, SinkContext, sink_kind
from tests.integration.sinks.support import Gateway
from tests.support.servers import Redis
from tests.support.waiting import wait_for
from tests.unit.sinks.support import rows

PASSWORD = "s3cret"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    pytest.importorskip("redis")
    running = Redis(tmp_path / "redis", PASSWORD).start()
    yield running
    running.stop()


def client(server: Redis, db: int = 0) -> Any:
    import redis

    return redis.Redis("127.0.0.1", server.port, db, PASSWORD)


def settings(server: Redis, **more: Any) -> dict[str, Any]:
    return {"addr": f"127.0.0.1:{server.port}", "password": Secret(PASSWORD), "sendSingle": True} | more


def test_messages_are_stored_under_keys(gateway: Gateway, server: Redis) -> None:
    gateway.action("redis", settings(server, key="last")).submit(rows({"n": 1}, {"n": 2}), 1)
    gateway.action("redis", settings(server, key="dev-{{.d}}", expiration=100)).submit(
        rows({"d": "a", "n": 3}), 2
    )
    gateway.action("redis", settings(server, field="d", db=1)).submit(rows({"d": "k", "n": 4}), 3)
    multiple = settings(server, keyType="multiple", fields=["x", "y", "gap"])
    gateway.action("redis", multiple).submit(rows({"x": 5, "y": "z"}), 4)
    gateway.action("redis", settings(server, key="list", dataType="list")).submit(rows({"n": 6}, {"n": 7}), 5)
    assert set(dict(gateway.await_receipts(5)).values()) == {"delivered"}
    found = client(server)
    assert json.loads(found.get("last")) == {"n": 2}
    assert json.loads(found.get("dev-a")) == {"d": "a", "n": 3}
    assert 0 < found.ttl("dev-a") <= 100
    assert json.loads(client(server, 1).get("k"))["n"] == 4
    assert (found.get("x"), found.get("y"), found.get("gap")) == (b"5", b"z", None)
    assert [json.loads(item)["n"] for item in found.lrange("list", 0, -1)] == [7, 6]
    found.close()


def test_a_row_that_says_delete_removes_its_key(gateway: Gateway, server: Redis) -> None:
    # As in eKuiper the rows come one by one without sendSingle.
    written = settings(server, field="d", fields=["d", "n"], rowkindField="act")
    del written["sendSingle"]
    stored = gateway.action("redis", written)
    stored.submit(rows({"d": "a", "n": 1}, {"d": "b", "n": 2, "act": "upsert"}), 1)
    stored.submit(rows({"d": "a", "n": 3, "act": "delete"}, {"d": "b", "act": "drop"}), 2)
    assert gateway.await_receipts(2) == [(1, "delivered"), (2, "rejected")]
    found = client(server)
    assert (found.exists("a"), json.loads(found.get("b"))["n"]) == (0, 2)
    assert "'drop' in column act is none of insert, update, upsert, delete" in gateway.dead_letters()


def test_a_key_of_another_kind_is_refused_and_the_others_go_on(gateway: Gateway, server: Redis) -> None:
    client(server).lpush("a", "x")
    delivery = gateway.action("redis", settings(server, key="{{.k}}", dataType="list") | {"key": "p{{.k}}"})
    client(server).set("pbad", "text")
    delivery.submit(rows({"k": "1"}, {"k": "bad"}, {"k": "2"}), 1)
    assert gateway.await_receipts(1) == [(1, "rejected")]
    assert client(server).llen("p2") >= 1
    assert "the server refused it" in gateway.dead_letters()


def test_a_row_without_its_key_is_a_dead_letter(gateway: Gateway, server: Redis) -> None:
    gateway.action("redis", settings(server, field="d")).submit(rows({"d": "a"}, {"n": 1}), 1)
    assert gateway.await_receipts(1) == [(1, "rejected")]
    assert client(server).exists("a")


def test_messages_are_published(gateway: Gateway, server: Redis) -> None:
    listener = client(server).pubsub()
    listener.subscribe("out")
    wait_for(lambda: listener.get_message(timeout=0.1) is not None)
    address = settings(server, channel="out")
    address["address"] = address.pop("addr")
    gateway.action("redisPub", address).submit(rows({"n": 1}), 1)
    gateway.await_receipts(1)
    found: list[Any] = []
    wait_for(lambda: _received(listener, found))
    assert json.loads(found[-1]["data"]) == {"n": 1}
    listener.close()


def test_without_the_server_all_wait_and_a_wrong_password_is_told(gateway: Gateway, server: Redis) -> None:
    delivery = gateway.action("redis", settings(server, key="k", dataType="list", retryInterval=10))
    delivery.submit(rows({"n": 1}), 1)
    gateway.await_receipts(1)
    server.stop()
    delivery.submit(rows({"n": 2}), 2)
    server.start()
    assert dict(gateway.await_receipts(2))[2] == "delivered"
    wrong = gateway.action("redis", settings(server, key="k", password=Secret("wrong")))
    wrong.submit(rows({"n": 3}), 3)
    wait_for(lambda: "refused the connection" in str(wrong.stats()))


def test_an_attempt_at_a_server_that_is_away_is_one(tmp_path: Path) -> None:
    """The delivery counts the attempts and pauses between them, not the client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    kind = sink_kind("redis")
    sink = kind.factory(
        kind.settings.model_validate({"addr": address, "key": "k"}),
        SinkContext("hot", "redis", Bench(tmp_path).environment),
    )
    began = time.perf_counter()
    with pytest.raises(Retry, match="connection refused"):
        sink.open()
    assert time.perf_counter() - began < 0.4


def _received(listener: Any, found: list[Any]) -> bool:
    message = listener.get_message(timeout=0.1)
    found += [] if message is None else [message]
    return message is not None
