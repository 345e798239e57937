"""Fair shares: how long an alert of one topic takes while another topic gets what is too much.

The alert's topic gets 200 messages a second, all stamped. The other topic gets nothing, payloads of a
megabyte, payloads that are too long, keys that never come again, or more than its rule can take. All at QoS
0: the broker drops what the gateway does not read, so the load stays the same however slow the gateway is.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.gateway_cpu import results
from benchmarks.latency import CONNECT
from benchmarks.latency_state import quantiles
from benchmarks.measure import Result
from edge.intake.sources.mqtt.publishing import encoded_length
from sinks.tcp import send_at_once
from tests.integration.daemon.support import daemon
from tests.support.brokers import mosquitto

SECONDS = 6.0
TICK_S = 0.005

RULES = """streams:
  - 'CREATE STREAM calm () WITH (DATASOURCE="calm/#")'
  - 'CREATE STREAM flood () WITH (DATASOURCE="flood/#")'
rules:
  - id: alert
    sql: SELECT sent FROM calm WHERE sent > 0
    actions: [{mqtt: {topic: results, qos: 0, sendSingle: true}}]
  - id: heavy
    sql: SELECT key, count(*) AS c, avg(length(text)) AS a FROM flood GROUP BY key, TUMBLINGWINDOW(hh, 1)
    actions: [{nop: {}}]
"""


def nothing(number: int) -> bytes | None:
    """No load."""
    return None


def megabytes(number: int) -> bytes | None:
    """Twenty payloads of almost a megabyte a second: as long as they may be."""
    return b'{"key":"k","text":"%s"}' % (b"x" * 999_900) if number % 10 == 0 else None


def too_long(number: int) -> bytes | None:
    """As many that are longer, and become dead letters."""
    return b'{"key":"k","text":"%s"}' % (b"x" * 1_000_000) if number % 10 == 0 else None


def new_keys(number: int) -> bytes | None:
    """Keys that never come again, 10,000 a second: fifty at each step."""
    return b'{"key":"k-%d","text":""}' % number


def overload(number: int) -> bytes | None:
    """Twenty thousand a second: on a small or busy machine more than the rule can take."""
    return b'{"key":"k-%d","text":"%s"}' % (number % 1_000, b"x" * 100)


LOADS: dict[str, tuple[Callable[[int], bytes | None], int]] = {
    "alone": (nothing, 1),
    "megabytes": (megabytes, 1),
    "too_long": (too_long, 1),
    "new_keys": (new_keys, 50),
    "overload": (overload, 100),
}
"""What the other topic gets, and how often at each step."""


def fairness() -> Result:
    """Milliseconds from stamp to alert, alone and beside each load."""
    result = Result("fairness", unit="ms")
    alone = 0.0
    for name in LOADS:
        p50, p99, most = quantiles(measured(name))
        alone = alone or p99
        result.numbers |= {f"p50_{name}": p50, f"p99_{name}": p99}
        result.lines.append(
            f"alert beside {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.0f} ms; "
            f"p99 is {p99 / alone:.1f} of that alone (bar 5)"
        )
    return result


def measured(name: str) -> list[float]:
    """The latencies of the alert beside a load."""
    with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder) / "broker") as broker:
        settings = {"PENSTOCK__MQTT__QOS": "0"}
        with daemon(Path(folder) / "gateway", broker.url, {"rules.yaml": RULES}, **settings) as process:
            process.wait_ready()
            found: list[float] = []
            with results(broker, found):
                send_both(broker.port, name)
            return found[len(found) // 5 :]


def send_both(port: int, name: str) -> None:
    """Send the load and the stamped messages, until both have ended."""
    context = multiprocessing.get_context("spawn")
    senders = [context.Process(target=send, args=(port, part), daemon=True) for part in (name, "")]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60)


def send(port: int, name: str) -> None:
    """Send the load, or (no name) the stamped messages. Runs in a process of its own."""
    connection = socket.create_connection(("127.0.0.1", port))
    send_at_once(connection)
    connection.sendall(CONNECT + (b"two" if name else b"one"))
    connection.recv(4)
    began = time.monotonic()
    step = 0
    while time.monotonic() - began < SECONDS:
        connection.sendall(b"".join(packets(name, step)))
        step += 1
        time.sleep(max(0.0, began + step * TICK_S - time.monotonic()))
    connection.sendall(b"\xe0\x00")


def packets(name: str, step: int) -> Iterator[bytes]:
    """What is sent at a step."""
    if not name:
        yield publish(b"calm/a", json.dumps({"sent": time.monotonic_ns()}).encode())
        return
    make, count = LOADS[name]
    for number in range(step * count, (step + 1) * count):
        payload = make(number)
        if payload is not None:
            yield publish(b"flood/a", payload)


def publish(topic: bytes, payload: bytes) -> bytes:
    """A PUBLISH of QoS 0."""
    body = struct.pack(">H", len(topic)) + topic + payload
    return b"\x30" + encoded_length(len(body)) + body


CASES: dict[str, Callable[[], Any]] = {"fairness": fairness}
