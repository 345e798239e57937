"""A broker as it comes holds back small packets until the last one is acknowledged; that
must not cost us 40 ms."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edge.base.message import Message
from sinks.tcp import send_at_once
from tests.broker.conftest import Consumer, Publisher, StartSource
from tests.integration.sinks.support import Gateway
from tests.support.brokers import Mosquitto
from tests.unit.sinks.support import rows

pytestmark = pytest.mark.broker

PROMPT_MS = 20.0
"""Half of what Linux's delayed acknowledgement takes, in each round."""

PROMPT_ROUNDS = 3
ROUNDS_MAX = 300
"""A round may take long because the machine is busy, but not each of so many."""


def assert_prompt(round_ms: Callable[[int], float]) -> None:
    """Some rounds are quicker than they could be if acknowledgements were held back."""
    waits_ms: list[float] = []
    while sum(wait_ms < PROMPT_MS for wait_ms in waits_ms) < PROMPT_ROUNDS:
        assert len(waits_ms) < ROUNDS_MAX, waits_ms
        waits_ms.append(round_ms(len(waits_ms) + 1))


class TimedConsumer(Consumer):
    """Remembers when messages came."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived_s: list[float] = []

    def on_batch(self, batch: list[Message]) -> None:
        self.arrived_s += [time.monotonic()] * len(batch)
        super().on_batch(batch)


@pytest.mark.parametrize("reader", ["buffered", "stock"])
def test_messages_in_quick_succession_arrive_at_once(
    broker: Mosquitto, publish: Publisher, start_source: StartSource, reader: str
) -> None:
    consumer = TimedConsumer()
    start_source(broker.url, {"t": 1}, consumer, reader)
    send_at_once(publish.socket())

    def round_ms(number: int) -> float:
        publish.publish("t", b"0")  # a connection that also sends is one whose kernel acknowledges late
        consumer.wait(4 * number - 3)
        sent_s = time.monotonic()
        publish.publish_many("t", [b"1", b"2", b"3"], qos=0)
        consumer.wait(4 * number)
        return (consumer.arrived_s[-1] - sent_s) * 1000

    assert_prompt(round_ms)


def test_results_are_confirmed_at_once(tmp_path: Path, broker: Mosquitto) -> None:
    gateway = Gateway(tmp_path / "gateway")
    delivery = gateway.action("mqtt", {"server": broker.url, "topic": "t", "sendSingle": True})

    def round_ms(number: int) -> float:
        began_s = time.monotonic()
        delivery.submit(rows({"n": 1}, {"n": 2}, {"n": 3}), number)
        gateway.await_receipts(number)
        return (time.monotonic() - began_s) * 1000

    assert_prompt(round_ms)
    gateway.close()
