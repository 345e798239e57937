"""Latency end to end: from the stamp a publisher puts into a message to the receipt of
what a rule makes of it.

Two passages through a broker as it comes, decoding, rule, and the MQTT sink (QoS 1) are in it. The publisher
writes packets straight into its socket at an even rate; 500 a second are stamped and pass the rule, the
others make the load. The yardstick is a bare paho program in place of the daemon, which publishes again what
is stamped. The two ends of the measurement hold nothing back: what the publisher's or the subscriber's TCP
adds would be found in every figure.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import Result
from benchmarks.payloads import payloads
from sinks.tcp import acknowledge_at_once, send_at_once
from tests.integration.daemon.support import STREAM, daemon
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.waiting import wait_for

RATES = (1_000, 10_000, 50_000)
SECONDS = 4.0
TICK_S = 0.001
STAMPED_PER_S = 500

PLAIN = b'{"sent":0,'
CONNECT = bytes.fromhex("100f00044d5154540402003c0003")
RULE = (
    STREAM + "rules:\n  - id: pass\n    sql: SELECT sent FROM m WHERE sent > 0\n"
    "    actions: [{mqtt: {server: 'BROKER', topic: results, sendSingle: true}}]\n"
)


class Sender:
    """Writes PUBLISH packets of QoS 0 into a socket."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        send_at_once(self._socket)
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
    """Milliseconds from stamp to result at several rates, and those of a bare paho program."""
    result = Result("latency", unit="ms")
    for rate in RATES:
        texts = []
        for name, between in (("", gateway), ("echo_", echo)):
            found = sorted(_through(between, rate))
            p50, p99 = statistics.median(found), found[int(len(found) * 0.99)]
            result.numbers |= {f"{name}p50_{rate}": p50, f"{name}p99_{rate}": p99}
            texts.append(f"p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        result.lines.append(f"latency at {rate:,} messages/s: {texts[0]} (bare paho echo: {texts[1]})")
    return result


def _through(between: Callable[[Path, Mosquitto], AbstractContextManager[None]], rate: int) -> list[float]:
    with (
        tempfile.TemporaryDirectory() as folder,
        mosquitto(Path(folder) / "broker") as broker,
        between(Path(folder), broker),
    ):
        return measure(broker, rate)


@contextmanager
def gateway(folder: Path, broker: Mosquitto) -> Iterator[None]:
    """The daemon with a rule that lets stamped messages pass."""
    text = RULE.replace("BROKER", f"tcp://127.0.0.1:{broker.port}")
    with daemon(folder / "gateway", broker.url, {"pass.yaml": text}) as process:
        process.wait_ready()
        yield


@contextmanager
def echo(folder: Path, broker: Mosquitto) -> Iterator[None]:
    """A process that publishes stamped messages again."""
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=republish, args=(broker.port, ready), daemon=True)
    process.start()
    try:
        assert ready.wait(10)
        yield
    finally:
        process.kill()
        process.join()


def republish(port: int, ready: Any) -> None:
    """Subscribe and publish as paho's manual shows it. Runs in a process of its own, for ever."""
    client = paho_client("echo")
    client.on_subscribe = lambda *_: ready.set()

    def on_message(_: Any, userdata: Any, message: Any) -> None:
        if not message.payload.startswith(PLAIN):
            client.publish("results", message.payload.partition(b",")[0] + b"}", 1)

    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.subscribe("plant/+", 1)
    client.loop_forever()


def paho_client(name: str) -> Any:
    """A stock client."""
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion

    return paho.Client(CallbackAPIVersion.VERSION2, client_id=name)


def measure(broker: Mosquitto, rate: int) -> list[float]:
    """Milliseconds of each stamped message, from the stamp to the receipt of its result."""
    found: list[float] = []
    subscribed = threading.Event()
    client = paho_client("results")
    client.on_subscribe = lambda *_: subscribed.set()

    def on_message(_: Any, userdata: Any, message: Any) -> None:
        received_ns = time.monotonic_ns()
        acknowledge_at_once(client.socket())
        sent_ns = int(message.payload.split(b":")[1].rstrip(b"}"))
        found.append((received_ns - sent_ns) / 1e6)

    client.on_message = on_message
    client.connect("127.0.0.1", broker.port)
    client.subscribe("results", 0)
    client.loop_start()
    assert subscribed.wait(5)
    wanted = _send_evenly(broker.port, rate)
    wait_for(lambda: len(found) >= wanted, "the results")
    client.disconnect()
    client.loop_stop()
    return found[len(found) // 10 :]  # the first tenth warms up


def _send_evenly(port: int, rate: int) -> int:
    """Send at a rate for a while; how many messages were stamped."""
    sender = Sender(port)
    rest = payloads(1, 1)[0][1:]
    stamped = 0
    number = 0
    began = time.monotonic()
    while (passed := time.monotonic() - began) < SECONDS:
        while number < passed * rate:
            if number % (rate // STAMPED_PER_S) == 0:
                sender.add(b'{"sent":%d,' % time.monotonic_ns() + rest)
                stamped += 1
            else:
                sender.add(PLAIN + rest)
            number += 1
        sender.flush()
        time.sleep(TICK_S)
    sender.close()
    return stamped


CASES: dict[str, Callable[[], Result]] = {"latency": latency}
