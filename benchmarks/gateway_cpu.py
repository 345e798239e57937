"""Processor time of the whole gateway per message, from the socket to the acknowledgement,
beside a bare subscriber.

A filter rule that 50 messages a second pass (200 with `latencyMs: 0`), published to the broker again;
nothing else runs. The yardstick is a stock paho client that decodes each message and acknowledges it on
receipt. Both run in turn, each as a process of its own, `ROUNDS` times at each rate and quality of service,
and the least time of each counts: a wake-up costs up to twice as much while another machine of the same host
is busy, which lasts for seconds. The processor time is divided by the messages that the process has received
meanwhile: the bare client takes a whole core at some 20,000 messages a second and falls behind.
The latency is that of a passing message, from its stamp to the receipt of what the rule makes of it.

The way out (`cpu_out_…`): what a published row costs, as the difference between a rule that publishes each
message and one that gives each to `nop`, in the cost of a message for the bare subscriber.

The same message with more to do (`cpu_ten_rules`, `cpu_cloud`, `cpu_sessions`), and with no time to wait
(`latencyMs: 0`: `cpu_at_once_…`), is told without a bar, but for the latency of the latter, beside
that of a bare client that publishes passing messages again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.latency import CONNECT, paho_client
from benchmarks.latency_state import STREAMS, drain, packet, quantiles
from benchmarks.measure import Result
from sinks.tcp import acknowledge_at_once, send_at_once
from tests.integration.daemon.support import daemon
from tests.support.brokers import Mosquitto, mosquitto

SECONDS = 5.0
WARM_UP_S = 1.5
ROUNDS = 3
TICK_S = 0.002
STAMPED_PER_S = 50
"""Messages a second that pass the rule."""
STAMPED_AT_ONCE_PER_S = 200
"""The same where the latency itself is the question: three rounds of five seconds give 2,200 of them, so 22
make the last percent."""
KEYS = 2_000
READY_S_MAX = 60
"""Beside other work a start takes long."""

BARS = {0: {1_000: 0.7, 5_000: 0.35, 20_000: 0.2, 50_000: 0.2}, 1: {1_000: 0.7, 5_000: 0.4, 20_000: 0.25}}
"""Bars of the ratio by quality of service and rate."""

BARS_OUT = {0: 0.45, 1: 0.75}
"""Bars of a published row by quality of service: 15 and 30 µs where the bare subscriber takes 33 and 40."""

RULE = (
    STREAMS.replace(', TIMESTAMP="ts"', "")
    + """rules:
  - id: pass
    sql: SELECT sent FROM m WHERE sent > 0
    actions: [{mqtt: {topic: results, qos: QOS, sendSingle: true}}]
"""
)


EACH = STREAMS.replace(', TIMESTAMP="ts"', "") + (
    "rules:\n  - id: each\n    sql: SELECT dev, temp FROM m\n    actions: [ACTION]\n"
)
PUBLISHED = EACH.replace("ACTION", "{mqtt: {topic: each, qos: QOS, sendSingle: true}}")
DROPPED = EACH.replace("ACTION", "{nop: {}}")


FURTHER = {
    "ten_rules": "".join(
        f"  - id: filter_{number}\n    sql: SELECT dev, temp FROM m WHERE temp > {86 + number}\n"
        "    actions: [{nop: {}}]\n"
        for number in range(9)
    ),
    "cloud": """  - id: each_second
    sql: SELECT dev, avg(temp) AS a, window_start() AS ws, window_end() AS we FROM m
      GROUP BY dev, TUMBLINGWINDOW(ss, 1)
    actions: [{cloud: {keys: [dev], window: 1m}}]
""",
    "sessions": """  - id: sessions
    sql: SELECT key, count(*) AS c FROM m GROUP BY key, SESSIONWINDOW(ss, 60, 2)
    actions: [{nop: {}}]
""",
}
"""What the gateway does beside the rule of `RULE`: nine more filters, rows that are spooled and committed,
sessions of a hundred devices."""

DEVICES = 100


@dataclass
class Load:
    """What is sent: messages a second, their quality of service, the number of keys in them, and how many
    of them a second pass the rule."""

    rate: int
    qos: int
    keys: int = KEYS
    stamped_per_s: int = STAMPED_PER_S

    @property
    def name(self) -> str:
        return f"cpu_qos{self.qos}_{self.rate // 1_000}k"


@dataclass
class Subject:
    """A process that receives, and how to read the number of messages that it has received."""

    pid: int
    received: Callable[[], int]


def point(load: Load, bar: float) -> Result:
    """Processor time per message of gateway and bare subscriber, and the latency of results."""
    (bare, _), (gateway, found) = in_turns(load, bare_subscriber, the_gateway)
    p50, p99, _ = quantiles(found)
    numbers = {load.name: gateway / bare, f"{load.name}_us": gateway, f"{load.name}_p99_ms": p99}
    line = (
        f"{load.name}: {gateway:.1f} µs a message, bare paho {bare:.1f}; message to result p50 {p50:.1f} ms, "
        f"p99 {p99:.1f} ms (bar 12)"
    )
    return Result(load.name, unit="µs", ratio=gateway / bare, bar=bar, lines=[line], numbers=numbers)


def compared(name: str, load: Load, **gateway: Any) -> Result:
    """As `point`, for another setting of `the_gateway`, without a bar."""
    (bare, _), (used, found) = in_turns(load, bare_subscriber, partial(the_gateway, **gateway))
    return without_bar(name, load, bare, used, found)


def at_once(load: Load) -> Result:
    """As `point`, with `latencyMs: 0`; the bar is that of the latency. Its floor is the latency of a bare
    client that publishes passing messages again."""
    hasty = partial(the_gateway, PENSTOCK__GATEWAY__LATENCY_MS="0")
    answering = partial(bare_subscriber, answers=True)
    (bare, _), (used, found), (_, floor) = in_turns(load, bare_subscriber, hasty, answering)
    p50, p99, _ = quantiles(floor)
    beside = f" (bar 2; bare paho p50 {p50:.1f} ms, p99 {p99:.1f} ms)"
    return without_bar(load.name.replace("cpu_", "cpu_at_once_"), load, bare, used, found, beside)


def without_bar(
    name: str, load: Load, bare: float, used: float, found: list[float], beside: str = ""
) -> Result:
    """What is printed of a gateway whose processor time has no bar. `beside`: what its latency stands
    beside."""
    p50, p99, _ = quantiles(found)
    line = (
        f"{name}: {used:.1f} µs a message at {load.rate:,}/s with QoS {load.qos}, bare paho {bare:.1f}; "
        f"message to result p50 {p50:.1f} ms, p99 {p99:.1f} ms{beside}"
    )
    numbers = {name: used / bare, f"{name}_us": used, f"{name}_p99_ms": p99}
    return Result(name, unit="µs", ratio=used / bare, lines=[line], numbers=numbers)


def way_out(load: Load, bar: float) -> Result:
    """Processor time per published row, confirmed where the quality of service is 1."""
    dropped, sent = (partial(the_gateway, rule=rule) for rule in (DROPPED, PUBLISHED))
    (bare, _), (without, _), (published, _) = in_turns(load, bare_subscriber, dropped, sent)
    cost, name = published - without, f"cpu_out_qos{load.qos}"
    line = f"{name}: {cost:.1f} µs a published row, bare paho {bare:.1f} a message, the rule {without:.1f}"
    return Result(
        name,
        unit="µs",
        ratio=cost / bare,
        bar=bar,
        lines=[line],
        numbers={name: cost / bare, f"{name}_us": cost},
    )


Made = Callable[[Path, Mosquitto, Load], AbstractContextManager[Subject]]
"""Makes a process that receives, for as long as it is measured."""


def in_turns(load: Load, *subjects: Made) -> list[tuple[float, list[float]]]:
    """For each subject the least microseconds of processor time a message, and the latency in ms of each
    passing one. Each runs once in a round, so all meet the same machine."""
    rounds = [[measured(load, subject) for subject in subjects] for _ in range(ROUNDS)]
    return [
        (min(used_us for used_us, _ in turns), [ms for _, found in turns for ms in found])
        for turns in zip(*rounds, strict=True)
    ]


def measured(load: Load, subject: Made) -> tuple[float, list[float]]:
    """Microseconds of processor time a message, and the latency in ms of each passing one."""
    lines = (
        "max_inflight_messages 20",
    )  # as it comes; only the queue is not bounded, so that nothing is lost
    with (
        tempfile.TemporaryDirectory() as folder,
        mosquitto(Path(folder) / "broker", lines=lines) as broker,
        subject(Path(folder), broker, load) as process,
    ):
        found: list[float] = []
        with results(broker, found):
            used_s = used_per_message(broker, load, process)
        return used_s * 1e6, found[len(found) // 4 :]


def used_per_message(broker: Mosquitto, load: Load, process: Subject) -> float:
    """Seconds of processor time that a process takes for each message that it receives."""
    context = multiprocessing.get_context("spawn")
    began_sending = context.Event()
    sender = context.Process(target=publish, args=(broker.port, load, began_sending), daemon=True)
    sender.start()
    assert began_sending.wait(READY_S_MAX)
    time.sleep(WARM_UP_S)
    first = process.received()
    before_s = processor_s(process.pid)
    time.sleep(SECONDS - WARM_UP_S - 0.5)
    used_s = processor_s(process.pid) - before_s
    messages = process.received() - first
    sender.join(60)
    return used_s / messages


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has taken, in all of its threads.

    Linux has a clock for each process (clock_getcpuclockid(3)), which counts nanoseconds; the ticks of /proc
    are 10 ms, which is 3 µs a message at a thousand messages a second.
    """
    return time.clock_gettime((~pid << 3) | 2)


def processor_s_of_family(pid: int) -> float:
    """As `processor_s`, in ticks, and with that of its processes that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def the_gateway(
    folder: Path, broker: Mosquitto, load: Load, rule: str = RULE, **settings: str
) -> Iterator[Subject]:
    """The daemon with a rule. `settings`: environment variables."""
    rules = {"rule.yaml": rule.replace("QOS", str(load.qos))}
    settings = {"PENSTOCK__MQTT__QOS": str(load.qos), **settings}
    with daemon(folder / "gateway", broker.url, rules, **settings) as process:
        process.wait_ready()
        yield Subject(process.pid, lambda: sum(process.status()["intake"]["received"].values()))


@contextmanager
def bare_subscriber(
    folder: Path, broker: Mosquitto, load: Load, *, answers: bool = False
) -> Iterator[Subject]:
    """A process with a stock client. `answers`: it publishes what a gateway would."""
    context = multiprocessing.get_context("spawn")
    ready, received = context.Event(), context.RawValue("q")
    arguments = (broker.port, load.qos, ready, received, answers)
    process = context.Process(target=subscribe, args=arguments, daemon=True)
    process.start()
    try:
        assert ready.wait(READY_S_MAX)
        assert process.pid is not None
        yield Subject(process.pid, lambda: received.value)
    finally:
        process.kill()
        process.join()


def subscribe(port: int, qos: int, ready: Any, received: Any, answers: bool) -> None:
    """Subscribe and decode as paho's manual shows it. Runs in a process of its own, for ever."""

    def on_message(_: Any, userdata: Any, message: Any) -> None:
        row = json.loads(message.payload)
        received.value += 1
        if answers:
            acknowledge_at_once(client.socket())
            if row["sent"]:
                client.publish("results", message.payload, qos)

    client = paho_client("bare")
    if answers:
        client.on_socket_open = lambda _, __, connection: send_at_once(connection)
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.subscribe("plant/+", qos)
    client.loop_forever()


@contextmanager
def results(broker: Mosquitto, found: list[float]) -> Iterator[None]:
    """Collect the milliseconds from stamp to result."""
    client = paho_client("results")
    subscribed = threading.Event()
    client.on_subscribe = lambda *_: subscribed.set()

    def on_message(_: Any, userdata: Any, message: Any) -> None:
        received_ns = time.monotonic_ns()
        acknowledge_at_once(client.socket())
        found.append((received_ns - json.loads(message.payload)["sent"]) / 1e6)

    client.on_message = on_message
    client.connect("127.0.0.1", broker.port)
    client.subscribe("results", 0)
    client.loop_start()
    assert subscribed.wait(READY_S_MAX)
    yield
    client.disconnect()
    client.loop_stop()


def publish(port: int, load: Load, began_sending: Any) -> None:
    """Send at an even rate. Runs in a process of its own."""
    connection = socket.create_connection(("127.0.0.1", port))
    send_at_once(connection)
    connection.sendall(CONNECT + b"pub")
    connection.recv(4)
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
    bodies = [packet(number, 0, load.keys, load.qos) for number in range(KEYS)]
    number = 0
    began_sending.set()
    began = time.monotonic()
    while (passed := time.monotonic() - began) < SECONDS:
        packets = []
        while number < passed * load.rate:
            is_stamped = number % (load.rate // load.stamped_per_s) == 0
            packets.append(
                packet(number, time.monotonic_ns(), load.keys, load.qos)
                if is_stamped
                else bodies[number % KEYS]
            )
            number += 1
        connection.sendall(b"".join(packets))
        time.sleep(TICK_S)
    connection.sendall(b"\xe0\x00")


CASES: dict[str, Callable[[], Result]] = {
    **{
        load.name: partial(point, load, bar)
        for qos, bars in BARS.items()
        for load, bar in ((Load(rate, qos), bar) for rate, bar in bars.items())
    },
    **{f"cpu_out_qos{qos}": partial(way_out, Load(5_000, qos), bar) for qos, bar in BARS_OUT.items()},
    **{
        f"cpu_{name}": partial(compared, f"cpu_{name}", Load(5_000, 1, DEVICES), rule=RULE + rules)
        for name, rules in FURTHER.items()
    },
    **{
        load.name.replace("cpu_", "cpu_at_once_"): partial(at_once, load)
        for load in (
            Load(rate, qos, stamped_per_s=STAMPED_AT_ONCE_PER_S) for qos in (0, 1) for rate in (1_000, 5_000)
        )
    },
}
"""A case for each rate and quality of service, for the way out, and for other settings;
`gateway_cpu` means all of them."""
