"""What every sink promises (`edge.plugins.sink_contract`), shown for each of ours with a real destination.

A new sink adds one entry to `DESTINATIONS`; without it the suite fails.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from edge.plugins.sink_contract import Bench, Destination, SinkContract
from rules.model import action_settings
from rules.secrets import Secret
from sinks import sink_kinds
from tests.integration.sinks.support import HttpPeer, Listener
from tests.support.brokers import Amqtt, Mosquitto, mosquitto_path
from tests.support.kafka import Kafka
from tests.support.servers import Redis

HIDDEN = "s3cret-value"


def to_nop(bench: Bench, folder: Path) -> Destination:
    return Destination({}, None)


def to_log(bench: Bench, folder: Path) -> Destination:
    seen: list[int] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(json.loads(vars(record)["payload"])["n"])

    logger, handler = logging.getLogger("penstock.results"), Handler()
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)

    def close() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)

    return Destination({}, lambda: list(seen), close)


def to_file(bench: Bench, folder: Path) -> Destination:
    path = folder / "data" / "out.jsonl"

    def arrived() -> list[int]:
        return [json.loads(line)["n"] for line in path.read_text().splitlines()] if path.exists() else []

    return Destination({"path": "out.jsonl"}, arrived)


def to_memory(bench: Bench, folder: Path) -> Destination:
    seen: list[int] = []

    def take(topic: str, taken: Sequence[Any], at_ms: int) -> bool:
        seen.extend(row["n"] for row in taken)
        return True

    bench.memory.subscribe("out", take)
    return Destination({"topic": "out"}, lambda: list(seen))


def to_rest(bench: Bench, folder: Path) -> Destination:
    peer = HttpPeer()
    serving = peer.serving()
    serving.__enter__()

    def arrived() -> list[int]:
        return [json.loads(request.body)["n"] for request in peer.requests]

    settings = {"url": peer.url + "/", "headers": {"Authorization": Secret(HIDDEN)}}

    def close() -> None:
        serving.__exit__(None, None, None)

    return Destination(settings, arrived, close, HIDDEN)


def to_mqtt(bench: Bench, folder: Path) -> Destination:
    broker = Amqtt().start() if mosquitto_path() is None else Mosquitto(folder / "broker").start()
    listener = Listener(broker.port, "out")

    def close() -> None:
        listener.close()
        broker.stop()

    settings = {"server": broker.url, "topic": "out", "username": "u", "password": Secret(HIDDEN)}
    return Destination(
        settings, lambda: [json.loads(payload)["n"] for payload in listener.payloads()], close, HIDDEN
    )


def to_sql(bench: Bench, folder: Path) -> Destination:
    path = folder / "data" / "out.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("CREATE TABLE t (n INTEGER)")
    connection.commit()

    def arrived() -> list[int]:
        return [row[0] for row in connection.execute("SELECT n FROM t ORDER BY rowid")]

    return Destination({"url": "sqlite:///out.db", "table": "t"}, arrived, connection.close)


def to_redis(bench: Bench, folder: Path) -> Destination:
    return _redis(folder, {"key": "out", "dataType": "list"})


def to_redis_channel(bench: Bench, folder: Path) -> Destination:
    found = _redis(folder, {"channel": "out"})
    found.arrived = None
    return found


def _redis(folder: Path, settings: dict[str, Any]) -> Destination:
    redis = pytest.importorskip("redis")
    server = Redis(folder / "redis", HIDDEN).start()
    client = redis.Redis("127.0.0.1", server.port, 0, HIDDEN)

    def arrived() -> list[int]:
        return [json.loads(item)["n"] for item in reversed(client.lrange("out", 0, -1))]

    def close() -> None:
        client.close()
        server.stop()

    address = {"addr": f"127.0.0.1:{server.port}", "password": Secret(HIDDEN)}
    return Destination(address | settings, arrived, close, HIDDEN)


def to_influx(bench: Bench, folder: Path) -> Destination:
    return _influx({"database": "d", "username": "u", "password": Secret(HIDDEN)})


def to_influx2(bench: Bench, folder: Path) -> Destination:
    return _influx({"org": "o", "bucket": "b", "token": Secret(HIDDEN)})


def _influx(settings: dict[str, Any]) -> Destination:
    peer = HttpPeer()
    serving = peer.serving()
    serving.__enter__()

    def arrived() -> list[int]:
        lines = [line for request in peer.requests for line in request.body.decode().splitlines()]
        return [int(line.split()[1].removeprefix("n=").removesuffix("i")) for line in lines]

    def close() -> None:
        serving.__exit__(None, None, None)

    return Destination({"addr": peer.url, "measurement": "m"} | settings, arrived, close, HIDDEN)


def to_kafka(bench: Bench, folder: Path) -> Destination:
    kafka = Kafka()
    topic = kafka.topic()
    sent: list[int] = []

    def arrived() -> list[int]:
        if len(sent) < 40:  # a topic is read from its beginning each time
            sent[:] = [json.loads(record.value())["n"] for record in kafka.records(topic, 40, wait_s=1)]
        return list(sent)

    return Destination({"brokers": kafka.brokers, "topic": topic, "key": "one"}, arrived)  # one partition


DESTINATIONS: dict[str, Callable[[Bench, Path], Destination]] = {
    "file": to_file,
    "influx": to_influx,
    "influx2": to_influx2,
    "kafka": to_kafka,
    "log": to_log,
    "memory": to_memory,
    "mqtt": to_mqtt,
    "nop": to_nop,
    "redis": to_redis,
    "redisPub": to_redis_channel,
    "rest": to_rest,
    "sql": to_sql,
}

KINDS = [kind for kind in sink_kinds() if kind.settings.__module__.startswith("sinks.builtin.")]


def test_every_builtin_sink_is_in_this_suite_and_known_to_rule_files() -> None:
    assert {kind.name for kind in KINDS} == set(DESTINATIONS)
    assert all(action_settings(kind.name) is kind.settings for kind in KINDS)


def contract_of(name: str) -> type[SinkContract]:
    """The contract for one of our own sinks."""

    class OfOurs(SinkContract):
        sink = name

        def destination(self, bench: Bench, folder: Path) -> Destination:
            return DESTINATIONS[name](bench, folder)

    return OfOurs


(
    TestFile,
    TestInflux,
    TestInflux2,
    TestKafka,
    TestLog,
    TestMemory,
    TestMqtt,
    TestNop,
    TestRedis,
    TestRedisPub,
    TestRest,
    TestSql,
) = (contract_of(name) for name in sorted(DESTINATIONS))
