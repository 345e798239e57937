"""Messages per second from mosquitto into this process: our intake against a bare paho
subscriber, at QoS 0 and 1.

    python -m benchmarks.mqtt_intake [COUNT]

The broker holds nothing back (no persistence, no limits); the publisher is a process of its own that writes
packets made beforehand straight into a socket, so that it is never what is measured. Each subscriber gets the
same messages; rounds alternate between the two, and the best round of each counts, because the machine has
other things to do. Prints `mqtt_qos0 ratio X` and `mqtt_qos1 ratio X`: our rate in times that of stock paho,
which acknowledges by itself. Our rate is mosquitto's own, which one core of it limits; the processor time per
message is therefore compared as well.
"""

from __future__ import annotations

import multiprocessing
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from edge.base.message import Message
from edge.clock import SystemClock
from edge.intake.sources.mqtt.source import MqttOptions, MqttSource
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.waiting import wait_for

TOPIC = b"plant/17/temp"
PAYLOAD = (
    b'{"dev":"pump-17","ts":1767225600123,"temp":21.5,"hum":40,'
    b'"site":"north","status":"ok","seq":123456,"x":1}'
)
ROUNDS = 4
PACKETS_PER_SEND = 500

DEADLINE_S = 60.0


class Cost(NamedTuple):
    """What all messages of a round took."""

    elapsed_s: float
    processor_s: float


def publish(port: int, count: int, qos: int) -> None:
    """Send `count` messages as fast as the broker takes them. Runs in a process of its own."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        # CONNECT, client "pub", 3.1.1, clean
        connection.sendall(bytes.fromhex("100f00044d5154540402003c0003707562"))
        assert connection.recv(4) == b"\x20\x02\x00\x00"
        packets = [packet(qos, number + 1) for number in range(60_000)]
        reader = threading.Thread(target=drain, args=(connection, 4 * count * qos))
        reader.start()
        for start in range(0, count, PACKETS_PER_SEND):
            first, size = start % len(packets), min(PACKETS_PER_SEND, count - start)
            connection.sendall(b"".join(packets[first : first + size]))
        reader.join()
        connection.sendall(b"\xe0\x00")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass


def drain(connection: socket.socket, size: int) -> None:
    """Read the broker's acknowledgements away, so that it is never kept from writing them."""
    while size:
        size -= len(connection.recv(min(size, 65_536)))


def packet(qos: int, packet_id: int) -> bytes:
    """A PUBLISH packet."""
    body = struct.pack(">H", len(TOPIC)) + TOPIC + (struct.pack(">H", packet_id) if qos else b"") + PAYLOAD
    return bytes([0x30 | qos << 1, len(body) & 127 | 128, len(body) >> 7]) + body


def stock(broker: Mosquitto, count: int, qos: int) -> Cost:
    """The cost of `count` messages into a subscriber as paho's manual shows it."""
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion

    timer = Timer(count)
    subscribed = threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="stock")
    client.on_subscribe = lambda *_: subscribed.set()

    def on_message(client: Any, userdata: Any, message: Any) -> None:
        timer.add(1)

    client.on_message = on_message
    client.connect("127.0.0.1", broker.port)
    client.subscribe("plant/+/temp", qos)
    client.loop_start()
    assert subscribed.wait(5)
    try:
        return timer.measure(broker.port, count, qos)
    finally:
        client.disconnect()
        client.loop_stop()


def intake(broker: Mosquitto, count: int, qos: int, version: str = "3.1.1") -> Cost:
    """The cost of `count` messages into our source, acknowledged batch by batch."""
    timer = Timer(count)
    options = MqttOptions(broker.url, "intake", version=version, status_prefix=None)  # type: ignore[arg-type]
    source = MqttSource(options, SystemClock())

    def on_batch(batch: list[Message]) -> None:
        if qos:
            source.acknowledge([token for _, _, token, _ in batch if token is not None])
        timer.add(len(batch))

    source.set_subscriptions({"plant/+/temp": qos})
    source.start(on_batch)
    try:
        wait_for(lambda: source.ready, "subscription")
        assert source.reader == "buffered"
        return timer.measure(broker.port, count, qos)
    finally:
        source.stop(2_000)


class Timer:
    """Measures from the first message to the last, so that the start of the publisher does not count."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._seen = 0
        self._began_ns = 0
        self._ended_ns = 0
        self._processor_ns = 0
        self._done = threading.Event()

    def add(self, messages: int) -> None:
        """So many messages have arrived."""
        if not self._seen:
            self._began_ns = time.perf_counter_ns()
            self._processor_ns = time.process_time_ns()
        self._seen += messages
        if self._seen >= self._count:
            self._ended_ns = time.perf_counter_ns()
            self._processor_ns = time.process_time_ns() - self._processor_ns
            self._done.set()

    def measure(self, port: int, count: int, qos: int) -> Cost:
        """Run the publisher and wait for the last message."""
        publisher = multiprocessing.get_context("spawn").Process(target=publish, args=(port, count, qos))
        publisher.start()
        if not self._done.wait(DEADLINE_S):
            raise TimeoutError(f"{self._seen} of {count} messages at QoS {qos} within {DEADLINE_S} s")
        publisher.join()
        return Cost((self._ended_ns - self._began_ns) / 1e9, self._processor_ns / 1e9)


def run(count: int = 100_000, rounds: int = ROUNDS) -> dict[str, float]:
    """By name: rates per second, processor microseconds per message, and the ratios `mqtt_qos0` and
    `mqtt_qos1`."""
    results: dict[str, float] = {}
    contenders: dict[str, Callable[[Mosquitto, int, int], Cost]] = {"stock": stock, "intake": intake}
    with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder)) as broker:
        for qos in (0, 1):
            name = f"mqtt_qos{qos}"
            costs: dict[str, list[Cost]] = {contender: [] for contender in contenders}
            for _ in range(rounds):
                for contender, subscriber in contenders.items():
                    costs[contender].append(subscriber(broker, count, qos))
            for contender, found in costs.items():
                results[f"{name}_{contender}_per_s"] = count / min(cost.elapsed_s for cost in found)
                results[f"{name}_{contender}_cpu_us"] = min(cost.processor_s for cost in found) / count * 1e6
            results[name] = results[f"{name}_intake_per_s"] / results[f"{name}_stock_per_s"]
            results[f"{name}_cpu"] = results[f"{name}_stock_cpu_us"] / results[f"{name}_intake_cpu_us"]
    return results


def main(arguments: list[str]) -> None:
    """Run and print."""
    results = run(int(arguments[0]) if arguments else 100_000)
    for name in ("mqtt_qos0", "mqtt_qos1"):
        for contender in ("stock", "intake"):
            rate, cpu_us = results[f"{name}_{contender}_per_s"], results[f"{name}_{contender}_cpu_us"]
            busy = f"busy for {rate * cpu_us / 1e4:.0f} % of the time"
            print(f"{name} {contender} {rate:,.0f} messages/s, {cpu_us:.1f} us of processor each, {busy}")
        print(f"{name} ratio {results[name]:.2f} (processor time: {results[f'{name}_cpu']:.2f})")


if __name__ == "__main__":
    main(sys.argv[1:])
