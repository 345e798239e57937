"""A consumer that is killed: the broker gives what it had not acknowledged to the next one."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from edge.base.message import DUPLICATE
from tests.broker.conftest import Publisher, StartSource
from tests.support.brokers import Mosquitto
from tests.support.waiting import PATIENCE_MS

pytestmark = pytest.mark.broker

VICTIM = """
import sys, time
from edge.clock import SystemClock
from edge.intake.sources.mqtt.source import MqttOptions, MqttSource

seen = []

def on_batch(batch):
    for _, _, token, _ in batch:
        if len(seen) < 50:
            source.acknowledge([token])
        seen.append(token)

source = MqttSource(MqttOptions(sys.argv[1], "gateway"), SystemClock())
source.set_subscriptions({"t": 1})
source.start(on_batch)
while len(seen) < 1_000 or source.stats["acknowledged"] < 50:
    time.sleep(0.01)
print("ready to die", flush=True)
time.sleep(60)
"""


def test_kill_9(broker: Mosquitto, publish: Publisher, start_source: StartSource) -> None:
    """Fifty of a thousand acknowledged, then SIGKILL: the other 950 come again, all marked, in order.

    The kill resets the connection, and the last acknowledgements may go down with it: those
    messages come again too.
    """
    source, _ = start_source(broker.url, {"t": 1})
    assert source.stop(PATIENCE_MS)
    publish.publish_many("t", [b"%d" % number for number in range(1_000)])
    with subprocess.Popen([sys.executable, "-c", VICTIM, broker.url], stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        try:
            assert victim.stdout.readline() == b"ready to die\n"
        finally:
            victim.send_signal(signal.SIGKILL)
    _, consumer = start_source(broker.url, {"t": 1})
    consumer.wait(950)
    first = int(consumer.payloads[0])
    assert first <= 50
    consumer.wait(1_000 - first)
    assert consumer.payloads == [b"%d" % number for number in range(first, 1_000)]
    assert all(flags & DUPLICATE for *_, flags in consumer.messages)
