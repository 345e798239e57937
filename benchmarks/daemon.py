"""The real daemon, as a process of its own with a mosquitto of its own: latency, memory, start-up, deployment.

Latency is measured end to end: from the moment a publisher stamps a message to the moment a subscriber has the result,
so two passages through the broker, decoding, rule, and the MQTT sink are in it. The publisher writes packets straight
into its socket at an even rate; one in a hundred is stamped and passes the rule, the others only make the load.
"""

from __future__ import annotations

import socket
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import STREAM as STREAM_SQL
from benchmarks.measure import Result
from benchmarks.payloads import payloads
from sql import Catalog, Engine, parse, plan_rule
from tests.integration.daemon.support import STREAM, Process, daemon
from tests.support.brokers import Mosquitto, mosquitto, wait_for

RATES = (1_000, 10_000, 50_000)
SECONDS = 4.0
TICK_S = 0.005
STAMPED = 100

CONNECT = bytes.fromhex("100f00044d5154540402003c0003")


def rules_file(count: int) -> str:
    """So many rules of common kinds on one stream."""
    kinds = [
        "SELECT dev, temp FROM m WHERE dev = 'pump-{n:04d}' AND temp > 90",
        "SELECT dev, avg(temp) AS a, count(*) AS c FROM m GROUP BY dev, TUMBLINGWINDOW(ss, {s})",
    ]
    lines = [STREAM, "rules:"]
    for number in range(count):
        sql = kinds[number % 2].format(n=number, s=10 + number)
        lines.append(f'  - {{id: r{number}, sql: "{sql}", actions: [{{memory: {{topic: out/r{number}}}}}]}}')
    return "\n".join(lines) + "\n"


# --- start, memory, deployment ----------------------------------------------------------------------------------------


@contextmanager
def running(rules: dict[str, str]) -> Iterator[tuple[Process, Mosquitto]]:
    """A broker and a daemon with these rule files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with mosquitto(path / "broker") as broker, daemon(path / "gateway", broker.url, rules) as process:
            process.wait_ready()
            yield process, broker


def startup() -> Result:
    """From the start of the process to readiness, with ten rules."""
    found = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder) / "broker") as broker:
            began = time.perf_counter()
            with daemon(Path(folder) / "gateway", broker.url, {"ten.yaml": rules_file(10)}) as process:
                process.wait_ready()
                found.append(time.perf_counter() - began)
    best = min(found)
    return Result(
        "startup", unit="s", lines=[f"startup {best:.2f} s to readiness with 10 rules (bar 0.8)"], numbers={"s": best}
    )


def memory() -> Result:
    """Resident memory with ten rules: when ready, and after a hundred thousand messages."""
    with running({"ten.yaml": rules_file(10)}) as (process, broker):
        ready = process.resident_bytes()
        messages = payloads(20_000, 100)
        sender = Sender(broker.port)
        for number in range(100_000):
            sender.add(messages[number % len(messages)])
        sender.flush()
        wait_for(lambda: process.status()["rules"]["r1"]["counters"]["events_in"] >= 100_000, 60, "the messages")
        loaded = process.resident_bytes()
        sender.close()
    megabytes = {"ready_mb": ready / 1e6, "loaded_mb": loaded / 1e6}
    ready_mb, loaded_mb = megabytes.values()
    line = f"memory {ready_mb:.1f} MB with 10 rules when ready, {loaded_mb:.1f} MB under load (bar 60)"
    return Result("memory", unit="MB", lines=[line], numbers=megabytes)


def deploy() -> Result:
    """Planning and deploying rules one after the other, up to a thousand."""
    catalog = Catalog()
    catalog.define(parse(STREAM_SQL)[0])  # type: ignore[arg-type]
    engine = Engine(catalog)
    began = time.perf_counter()
    for number in range(1000):
        rule = f"SELECT dev, avg(temp) AS a FROM m WHERE temp > {number} GROUP BY dev, TUMBLINGWINDOW(ss, {1 + number})"
        engine.deploy(f"r{number}", plan_rule(rule, catalog), 0, shape="struct")
    whole = time.perf_counter() - began
    line = f"deploy {whole:.2f} s for 1000 rules, {whole:.2f} ms each (bar 4 s)"
    return Result("deploy", unit="s", lines=[line], numbers={"s_per_1000": whole})


# --- latency ----------------------------------------------------------------------------------------------------------


class Sender:
    """Writes PUBLISH packets of QoS 0 into a socket."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.sendall(CONNECT + b"pub")
        assert self._socket.recv(4) == b"\x20\x02\x00\x00"
        self._waiting: list[bytes] = []

    def add(self, payload: bytes) -> None:
        """One more packet of the next write."""
        body = struct.pack(">H", 7) + b"plant/1" + payload
        self._waiting.append(bytes([0x30, len(body) & 127 | 128, len(body) >> 7]) + body)

    def flush(self) -> None:
        """Write what waits."""
        self._socket.sendall(b"".join(self._waiting))
        self._waiting.clear()

    def close(self) -> None:
        """Leave."""
        self._socket.sendall(b"\xe0\x00")
        self._socket.close()


def latency() -> Result:
    """Milliseconds from stamp to result at several rates."""
    rule = (
        STREAM + "rules:\n  - id: pass\n    sql: SELECT sent FROM m WHERE sent > 0\n"
        "    actions: [{mqtt: {server: 'BROKER', topic: results, sendSingle: true}}]\n"
    )
    result = Result("latency", unit="ms")
    for rate in RATES:
        with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder) / "broker") as broker:
            text = rule.replace("BROKER", f"tcp://127.0.0.1:{broker.port}")
            with daemon(Path(folder) / "gateway", broker.url, {"pass.yaml": text}) as process:
                process.wait_ready()
                found = sorted(_latencies(broker, rate))
        p50, p99 = statistics.median(found), found[int(len(found) * 0.99)]
        result.numbers |= {f"p50_{rate}": p50, f"p99_{rate}": p99}
        result.lines.append(
            f"latency at {rate:,} messages/s: p50 {p50:.1f} ms, p99 {p99:.1f} ms ({len(found)} results)"
        )
    return result


def _latencies(broker: Mosquitto, rate: int) -> list[float]:
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion

    found: list[float] = []
    subscribed = threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="results")
    client.on_subscribe = lambda *_: subscribed.set()

    def on_message(client: object, userdata: object, message: paho.MQTTMessage) -> None:
        sent = int(message.payload.split(b":")[1].rstrip(b"}"))
        found.append((time.monotonic_ns() - sent) / 1e6)

    client.on_message = on_message
    client.connect("127.0.0.1", broker.port)
    client.subscribe("results", 0)
    client.loop_start()
    assert subscribed.wait(5)
    wanted = _send_evenly(broker.port, rate)
    wait_for(lambda: len(found) >= wanted, 30, "the results")
    client.disconnect()
    client.loop_stop()
    return found[len(found) // 10 :]  # the first tenth warms up


def _send_evenly(port: int, rate: int) -> int:
    """Send at a rate for a while; how many messages were stamped."""
    sender = Sender(port)
    plain = b'{"sent":0,' + payloads(1, 1)[0][1:]
    stamped = 0
    number = 0
    began = time.monotonic()
    while (passed := time.monotonic() - began) < SECONDS:
        while number < passed * rate:
            if number % STAMPED == 0:
                sender.add(b'{"sent":%d,' % time.monotonic_ns() + plain[10:])
                stamped += 1
            else:
                sender.add(plain)
            number += 1
        sender.flush()
        time.sleep(TICK_S)
    sender.close()
    return stamped


CASES: dict[str, Callable[[], Result]] = {"latency": latency, "memory": memory, "startup": startup, "deploy": deploy}
