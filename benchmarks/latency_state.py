"""Latency under state: how long an alert takes while other rules hold windows, sessions and
groups, all of it durable.

Seven rules read one stream at QoS 1 through a broker as it comes: a tumbling window in event time for the
cloud, a count every second, sessions of keys that come and go, a hopping window, ten seconds of events, lag,
and the alert. Each message is journalled before it is acknowledged, and snapshots are taken meanwhile.
Measured is the time from the stamp of a message to the receipt of its alert. The publisher is a process of
its own.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.latency import CONNECT, paho_client
from benchmarks.measure import Result
from sinks.tcp import acknowledge_at_once, send_at_once
from tests.integration.daemon.support import Process, daemon
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.waiting import wait_for

RATES = (2_000, 5_000)
SECONDS = 20.0
TICK_S = 0.002
STAMPED_PER_S = 200
SESSION_KEYS = 2_000
GROUPS = (10, 100_000)
GROUP_RATE = 2_000

OFTEN = {"PENSTOCK__JOURNAL__SNAPSHOT_BYTES": "30000"}
"""Snapshots at so small a journal that some are taken within the seconds of a run."""

STREAMS = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#", TIMESTAMP="ts")'
"""

SEVEN = (
    STREAMS
    + """rules:
  - id: alert
    sql: SELECT sent FROM m WHERE sent > 0
    actions: [{mqtt: {server: 'BROKER', topic: results, sendSingle: true}}]
  - id: event_time
    sql: SELECT dev, max(temp) AS a, window_start() AS ws, window_end() AS we FROM m
      GROUP BY dev, TUMBLINGWINDOW(ss, 10)
    options: {isEventTime: true, lateTolerance: 1000}
    actions: [{cloud: {keys: [dev], window: 1m}}]
  - id: each_second
    sql: SELECT count(*) AS c FROM m GROUP BY TUMBLINGWINDOW(ss, 1)
    actions: [{nop: {}}]
  - id: sessions
    sql: SELECT key, count(*) AS c FROM m GROUP BY key, SESSIONWINDOW(ss, 60, 2)
    actions: [{nop: {}}]
  - id: hopping
    sql: SELECT dev, max(temp) AS hottest FROM m GROUP BY dev, HOPPINGWINDOW(ss, 60, 10)
    actions: [{nop: {}}]
  - id: ten_seconds
    sql: SELECT dev, avg(temp) AS a FROM m#time(10 sec) GROUP BY dev OUTPUT LAST EVERY 1 SECONDS
    actions: [{nop: {}}]
  - id: lag
    sql: SELECT dev, temp - lag(temp) OVER (PARTITION BY dev) AS step FROM m WHERE temp > 94
    actions: [{nop: {}}]
"""
)

GROUPED = (
    STREAMS
    + """rules:
  - id: alert
    sql: SELECT sent FROM m WHERE sent > 0
    actions: [{mqtt: {server: 'BROKER', topic: results, sendSingle: true}}]
  - id: groups
    sql: SELECT key, count(*) AS c, avg(temp) AS a FROM m GROUP BY key, TUMBLINGWINDOW(hh, 1)
    actions: [{nop: {}}]
"""
)


def latency_state() -> Result:
    """Milliseconds from stamp to alert with seven rules, and with few and many groups."""
    result = Result("latency_state", unit="ms")
    for rate in RATES:
        found, status = measured(SEVEN, rate, SESSION_KEYS)
        note(result, f"{rate}", f"{rate:,} messages/s, seven rules", found, status)
    p99s = []
    for groups in GROUPS:
        found, status = measured(GROUPED, GROUP_RATE, groups)
        note(result, f"groups_{groups}", f"{GROUP_RATE:,} messages/s, {groups:,} groups", found, status)
        p99s.append(result.numbers[f"p99_groups_{groups}"])
    result.lines.append(
        f"p99 with {GROUPS[1]:,} groups to that with {GROUPS[0]}: {p99s[1] / p99s[0]:.2f} (bar 2)"
    )
    return result


def note(result: Result, key: str, told: str, found: list[float], status: dict[str, Any]) -> None:
    """Add a measurement."""
    p50, p99, most = quantiles(found)
    journal = status["journal"]
    result.numbers |= {f"p50_{key}": p50, f"p99_{key}": p99, f"max_{key}": most}
    result.numbers[f"bytes_{key}"] = journal["bytes_per_message"]
    snapshots = journal["snapshot"]
    result.lines.append(
        f"{told}: p50 {p50:.1f} ms (bar 5), p99 {p99:.1f} ms (bar 50), max {most:.0f} ms (bar 250); "
        f"{journal['bytes_per_message']} bytes written a message, {snapshots['made']} snapshots of up to "
        f"{snapshots['bytes'] / 1e6:.1f} MB"
    )


def quantiles(found: list[float]) -> tuple[float, float, float]:
    """Median, 99th percentile and maximum."""
    found = sorted(found)
    return statistics.median(found), found[int(len(found) * 0.99)], found[-1]


def measured(rules: str, rate: int, keys: int) -> tuple[list[float], dict[str, Any]]:
    """Milliseconds of each stamped message, and the gateway's status at the end."""
    with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder) / "broker") as broker:
        text = rules.replace("BROKER", f"tcp://127.0.0.1:{broker.port}")
        rules_of = {"rules.yaml": text}
        with daemon(Path(folder) / "gateway", broker.url, rules_of, **OFTEN) as process:
            process.wait_ready()
            found = listened(broker, process, rate, keys)
            return found[len(found) // 10 :], process.status()  # the first tenth warms up


def listened(broker: Mosquitto, process: Process, rate: int, keys: int) -> list[float]:
    """Publish for a while and take the times of the alerts."""
    found: list[float] = []
    subscribed = threading.Event()
    client = paho_client("results")
    client.on_subscribe = lambda *_: subscribed.set()

    def on_message(_: Any, userdata: Any, message: Any) -> None:
        received_ns = time.monotonic_ns()
        acknowledge_at_once(client.socket())
        found.append((received_ns - int(message.payload.split(b":")[1].rstrip(b"}"))) / 1e6)

    client.on_message = on_message
    client.connect("127.0.0.1", broker.port)
    client.subscribe("results", 0)
    client.loop_start()
    assert subscribed.wait(5)
    sender = multiprocessing.get_context("spawn").Process(
        target=publish, args=(broker.port, rate, keys), daemon=True
    )
    sender.start()
    sender.join(SECONDS + 60)
    wait_for(lambda: len(found) >= SECONDS * STAMPED_PER_S * 0.99, "the alerts")
    client.disconnect()
    client.loop_stop()
    return found


def publish(port: int, rate: int, keys: int, seconds: float = SECONDS) -> None:
    """Send at an even rate with QoS 1. Runs in a process of its own."""
    connection = socket.create_connection(("127.0.0.1", port))
    send_at_once(connection)
    connection.sendall(CONNECT + b"pub")
    connection.recv(4)
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
    number = 0
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        packets = []
        while number < passed * rate:
            packets.append(packet(number, stamp_of(number, rate), keys))
            number += 1
        connection.sendall(b"".join(packets))
        time.sleep(TICK_S)
    connection.sendall(b"\xe0\x00")


def stamp_of(number: int, rate: int) -> int:
    """The present instant for a message whose alert is measured, 0 for the others."""
    return time.monotonic_ns() if number % (rate // STAMPED_PER_S) == 0 else 0


def drain(connection: socket.socket) -> None:
    """Read the broker's confirmations, so that it is not held up."""
    while connection.recv(65_536):
        pass


def packet(number: int, stamp: int, keys: int, qos: int = 1) -> bytes:
    """A PUBLISH with a payload of about 130 bytes."""
    packet_id = struct.pack(">H", number % 65_535 + 1) if qos else b""
    body = struct.pack(">H", 7) + b"plant/1" + packet_id + payload_of(number, stamp, keys)
    return bytes([0x30 | qos << 1, len(body) & 127 | 128, len(body) >> 7]) + body


def payload_of(number: int, stamp: int, keys: int, at_ms: int | None = None) -> bytes:
    """What a machine tells, at this instant or now."""
    return (
        b'{"sent":%d,"ts":%d,"dev":"pump-%02d","key":"k-%d","temp":%d.5,'
        b'"pressure":%d,"state":"running","line":"north"}'
        % (
            stamp,
            time.time_ns() // 1_000_000 if at_ms is None else at_ms,
            number % 50,
            number % keys,
            20 + number % 77,
            1_000 + number % 13,
        )
    )


CASES: dict[str, Callable[[], Result]] = {"latency_state": latency_state}
