"""What every sink promises, shown for every sink that is registered here, each with a real destination.

A new sink adds one entry to `DESTINATIONS`; without it the suite fails.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rules.model import action_settings
from rules.secrets import Secret
from sinks import Delivery, Message, Reject, Retry, Sink, SinkContext, SinkKind, sink_kinds
from tests.integration.sinks.support import Gateway, HttpPeer, Listener
from tests.support.brokers import Amqtt, Mosquitto, mosquitto_path
from tests.support.servers import Redis
from tests.unit.sinks.support import poll, rows

HIDDEN = "s3cret-value"


@dataclass
class Destination:
    """Settings that lead to a real destination, and what has arrived there; None: it cannot be seen from outside."""

    settings: dict[str, Any]
    arrived: Callable[[], list[int]] | None
    close: Callable[[], None] = lambda: None


def to_nop(gateway: Gateway, folder: Path) -> Destination:
    return Destination({}, None)


def to_log(gateway: Gateway, folder: Path) -> Destination:
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


def to_file(gateway: Gateway, folder: Path) -> Destination:
    path = folder / "data" / "out.jsonl"

    def arrived() -> list[int]:
        return [json.loads(line)["n"] for line in path.read_text().splitlines()] if path.exists() else []

    return Destination({"path": "out.jsonl"}, arrived)


def to_memory(gateway: Gateway, folder: Path) -> Destination:
    seen: list[int] = []

    def take(topic: str, taken: Sequence[Any], at_ms: int) -> bool:
        seen.extend(row["n"] for row in taken)
        return True

    gateway.memory.subscribe("out", take)
    return Destination({"topic": "out"}, lambda: list(seen))


def to_rest(gateway: Gateway, folder: Path) -> Destination:
    peer = HttpPeer()
    serving = peer.serving()
    serving.__enter__()

    def arrived() -> list[int]:
        return [json.loads(request.body)["n"] for request in peer.requests]

    settings = {"url": peer.url + "/", "headers": {"Authorization": Secret(HIDDEN)}}

    def close() -> None:
        serving.__exit__(None, None, None)

    return Destination(settings, arrived, close)


def to_mqtt(gateway: Gateway, folder: Path) -> Destination:
    broker = Amqtt().start() if mosquitto_path() is None else Mosquitto(folder / "broker").start()
    listener = Listener(broker.port, "out")

    def close() -> None:
        listener.close()
        broker.stop()

    settings = {"server": broker.url, "topic": "out", "username": "u", "password": Secret(HIDDEN)}
    return Destination(settings, lambda: [json.loads(payload)["n"] for payload in listener.payloads()], close)


def to_sql(gateway: Gateway, folder: Path) -> Destination:
    path = folder / "data" / "out.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("CREATE TABLE t (n INTEGER)")
    connection.commit()

    def arrived() -> list[int]:
        return [row[0] for row in connection.execute("SELECT n FROM t ORDER BY rowid")]

    return Destination({"url": "sqlite:///out.db", "table": "t"}, arrived, connection.close)


def to_redis(gateway: Gateway, folder: Path) -> Destination:
    return _redis(folder, {"key": "out", "dataType": "list"})


def to_redis_channel(gateway: Gateway, folder: Path) -> Destination:
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
    return Destination(address | settings, arrived, close)


def to_influx(gateway: Gateway, folder: Path) -> Destination:
    return _influx({"database": "d", "username": "u", "password": Secret(HIDDEN)})


def to_influx2(gateway: Gateway, folder: Path) -> Destination:
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

    return Destination({"addr": peer.url, "measurement": "m"} | settings, arrived, close)


DESTINATIONS: dict[str, Callable[[Gateway, Path], Destination]] = {
    "file": to_file,
    "influx": to_influx,
    "influx2": to_influx2,
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


class Faulty:
    """A real sink behind a fault that the plan says: take `done` messages, then fail."""

    def __init__(self, sink: Sink, faults: list[Retry | Reject]) -> None:
        self.sink = sink
        self.faults = faults

    def open(self) -> None:
        self.sink.open()

    def close(self) -> None:
        self.sink.close()

    def send(self, messages: Sequence[Message]) -> None:
        if self.faults and self.faults[0].done < len(messages):
            fault = self.faults.pop(0)
            if fault.done:
                self.sink.send(messages[: fault.done])
            raise fault
        self.sink.send(messages)


@dataclass
class Case:
    """One sink with its destination and a gateway around it."""

    kind: SinkKind
    gateway: Gateway
    destination: Destination
    sink: Sink

    def delivery(self, *faults: Retry | Reject) -> Delivery:
        """A delivery to the destination, one message per row, through these faults."""
        settings = self.settings()
        context = SinkContext("hot", self.kind.name, self.gateway.environment)
        delivery = Delivery(Faulty(self.sink, list(faults)), settings, context)
        self.gateway.deliveries.append(delivery)
        return delivery

    def settings(self) -> Any:
        fast = {"sendSingle": True, "retryInterval": 5, "retryMaxInterval": 5}
        return self.kind.settings.model_validate(fast | self.destination.settings)

    def assert_arrived(self, expected: list[int]) -> None:
        """The destination has exactly these numbers, in this order."""
        arrived = self.destination.arrived
        if arrived is not None:
            poll(lambda: len(arrived()) >= len(expected))
            assert arrived() == expected


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def case(request: pytest.FixtureRequest, gateway: Gateway, tmp_path: Path) -> Iterator[Case]:
    kind: SinkKind = request.param
    destination = DESTINATIONS[kind.name](gateway, tmp_path)
    case = Case(kind, gateway, destination, None)  # type: ignore[arg-type]
    case.sink = kind.factory(case.settings(), SinkContext("hot", kind.name, gateway.environment))
    yield case
    gateway.close()
    destination.close()


def submit(delivery: Delivery, numbers: Sequence[int]) -> None:
    """One emission per number."""
    for number in numbers:
        assert delivery.submit(rows({"n": number}), number)


def test_every_builtin_sink_is_in_this_suite_and_known_to_rule_files() -> None:
    assert {kind.name for kind in KINDS} == set(DESTINATIONS)
    assert all(action_settings(kind.name) is kind.settings for kind in KINDS)


def test_opens_and_closes_again_and_again(case: Case) -> None:
    case.sink.close()
    for number in range(3):
        case.sink.open()
        case.sink.send([Message(b'{"n":%d}' % number, ({"n": number},), target=_target(case))])
        case.sink.close()
        case.sink.close()
    case.assert_arrived([0, 1, 2])


def _target(case: Case) -> str:
    return str(case.settings().target_text)


def test_retries_keep_the_order_and_repeat_nothing(case: Case) -> None:
    delivery = case.delivery(Retry("busy", done=3), Retry("busy"), Retry("busy", done=1))
    emission = rows(*[{"n": number} for number in range(8)])
    assert delivery.submit(emission, "token")
    assert case.gateway.await_receipts(1) == [("token", "delivered")]
    case.assert_arrived(list(range(8)))
    assert delivery.stats().retried == 3


def test_rejected_messages_are_dead_letters_and_nothing_else_is_lost(case: Case) -> None:
    delivery = case.delivery(Reject("no", done=2), Reject("no"))
    assert delivery.submit(rows(*[{"n": number} for number in range(6)]), "token")
    assert case.gateway.await_receipts(1) == [("token", "rejected")]
    case.assert_arrived([0, 1, 4, 5])
    letters = [json.loads(line) for line in case.gateway.dead_letters().splitlines()]
    assert [(letter["rule"], letter["sink"], letter["reason"]) for letter in letters] == [
        ("hot", case.kind.name, "no")
    ] * 2


def test_close_flushes_what_waits(case: Case) -> None:
    delivery = case.delivery()
    submit(delivery, range(40))
    assert delivery.close(case.gateway.within()) == 0
    case.assert_arrived(list(range(40)))
    assert [token for token, outcome in case.gateway.await_receipts(40)] == list(range(40))
    assert not delivery.submit(rows({"n": 99}), 99)


def test_secrets_are_never_shown(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    if not list(case.settings().secrets()):
        pytest.skip("nothing to hide in these settings")
    caplog.set_level(logging.DEBUG)
    failures: list[Retry | Reject] = [Retry(f"with {HIDDEN}"), Reject(f"because of {HIDDEN}")]
    delivery = case.delivery(*failures)
    submit(delivery, [1])
    case.gateway.await_receipts(1)
    shown = [repr(delivery.stats()), case.gateway.dead_letters(), repr(case.settings()), repr(case.sink)]
    shown += [repr(vars(record)) for record in caplog.records]
    assert "***" in "".join(shown)
    assert HIDDEN not in "".join(shown)
