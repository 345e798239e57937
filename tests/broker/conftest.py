"""What the tests against brokers share: a consumer that remembers, a publisher, sources
that end with their test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge.base.message import BadMessage, Message
from edge.clock import SystemClock
from edge.intake.sources.mqtt.source import MqttOptions, MqttSource
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.waiting import PATIENCE_MS, PATIENCE_S, wait_for


class Consumer:
    """Takes batches; acknowledges at once while `acknowledging` is set."""

    def __init__(self, acknowledging: bool = True) -> None:
        self.acknowledging = acknowledging
        self.messages: list[Message] = []
        self.bad: list[BadMessage] = []
        self.batches = 0
        self.source: MqttSource | None = None

    def on_batch(self, batch: list[Message]) -> None:
        self.batches += 1
        self.messages += batch
        if self.acknowledging:
            self.acknowledge(batch)

    def on_bad(self, bad: list[BadMessage]) -> None:
        self.bad += bad
        assert self.source is not None
        self.source.acknowledge(token for _, _, token, _ in bad if token is not None)

    def acknowledge(self, messages: list[Message]) -> None:
        assert self.source is not None
        self.source.acknowledge(token for _, _, token, _ in messages if token is not None)

    @property
    def payloads(self) -> list[bytes]:
        return [payload for _, payload, _, _ in self.messages]

    def wait(self, count: int) -> None:
        """Until `count` messages have come."""
        wait_for(lambda: len(self.messages) >= count, f"{count} messages")


class Publisher:
    """A plain paho client that publishes and waits until the broker has it."""

    def __init__(self, port: int) -> None:
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self._connected = threading.Event()
        self._client.on_connect = lambda *_: self._connected.set()
        self._client.max_inflight_messages_set(1_000)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert self._connected.wait(PATIENCE_S)

    def socket(self) -> Any:
        """The connection itself."""
        return self._client.socket()

    def publish(self, topic: str, payload: bytes, qos: int = 1, **settings: Any) -> None:
        sent = self._client.publish(topic, payload, qos, **settings)
        wait_for(sent.is_published, "publishing")

    def publish_many(self, topic: str, payloads: list[bytes], qos: int = 1) -> None:
        sent = [self._client.publish(topic, payload, qos) for payload in payloads]
        wait_for(lambda: all(info.is_published() for info in sent), "publishing")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "mosquitto") as running:
        yield running


@pytest.fixture
def publish(broker: Mosquitto) -> Iterator[Publisher]:
    publisher = Publisher(broker.port)
    yield publisher
    publisher.close()


StartSource = Callable[..., tuple[MqttSource, Consumer]]


@pytest.fixture
def start_source(request: pytest.FixtureRequest) -> Iterator[StartSource]:
    """Make and start a source, and wait until it is subscribed (unless `ready=False`)."""
    started: list[MqttSource] = []

    def start(
        url: str,
        filters: dict[str, int],
        consumer: Consumer | None = None,
        reader: Literal["auto", "buffered", "stock"] = "auto",
        ready: bool = True,
        **options: Any,
    ) -> tuple[MqttSource, Consumer]:
        settings = {"client_id": "gateway", "reconnect_ms_min": 20, "reconnect_ms_max": 200} | options
        mqtt = MqttOptions(url, **settings)  # type: ignore[arg-type]
        source = MqttSource(mqtt, SystemClock(), reader=reader)
        taker = consumer or Consumer()
        taker.source = source
        source.set_subscriptions(filters)
        source.start(taker.on_batch, taker.on_bad)
        started.append(source)
        if ready:
            wait_for(lambda: source.ready, f"subscription ({source.problem})")
        return source, taker

    yield start
    for source in started:
        assert source.stop(PATIENCE_MS), "the source's thread did not end"


def cut_connection(source: MqttSource) -> None:
    """End the TCP connection without a word, as a killed process does."""
    connection: Any = source.attempts.connection
    connection.link.socket.shutdown(socket.SHUT_RDWR)
