"""The real daemon, as a process of its own with a mosquitto of its own: memory, start-up, deployment."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.gateway_cpu import processor_s_of_family
from benchmarks.latency import Sender
from benchmarks.measure import STREAM as STREAM_SQL
from benchmarks.measure import Result, in_turns
from benchmarks.payloads import payloads
from rules.collector import calm_collector
from sql import Catalog, Engine, parse, plan_rule
from tests.integration.daemon.support import STREAM, Process
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.nursery import spawned
from tests.support.waiting import wait_for

RATE, MESSAGES, BURST = 20_000, 100_000, 40
"""Messages a second, their number, and how many are sent at once."""


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


@contextmanager
def running(rules: dict[str, str]) -> Iterator[tuple[Process, Mosquitto]]:
    """A broker and a daemon with these rule files, ready."""
    with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder) / "broker") as broker:
        process = Process(Path(folder) / "gateway", broker.url, spawn=spawned)
        for name, text in rules.items():
            process.write_rule(name, text)
        with stopped_behind(process):
            yield ready(process), broker


@contextmanager
def stopped_behind(process: Process) -> Iterator[None]:
    """Kill it behind the block."""
    try:
        yield
    finally:
        process.kill()


def ready(process: Process) -> Process:
    """Start it as a user does, as a process that has imported nothing, and wait until it is ready."""
    process.start()
    process.wait_ready()
    return process


def startup() -> Result:
    """From the start of the process to readiness, with ten rules. Beside other work the least of several is
    the nearest to the truth; the processor time, of both processes, depends less on it."""
    waited, used = [], []
    for _ in range(7):
        with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder) / "broker") as broker:
            process = Process(Path(folder) / "gateway", broker.url, spawn=spawned)
            process.write_rule("ten.yaml", rules_file(10))
            began = time.perf_counter()
            with stopped_behind(process):
                ready(process)
                waited.append(time.perf_counter() - began)
                used.append(processor_s_of_family(process.pid))
    line = f"startup {min(waited):.2f} s to readiness with 10 rules (bar 0.6), {min(used):.2f} s of processor"
    return Result("startup", unit="s", lines=[line], numbers={"s": min(waited), "processor_s": min(used)})


def memory() -> Result:
    """Resident memory with ten rules: when ready, and at 20,000 messages a second."""
    with running({"ten.yaml": rules_file(10)}) as (process, broker):
        at_first = process.resident_bytes()
        messages = payloads(20_000, 100)
        sender = Sender(broker.port)
        began = time.monotonic()
        for number in range(MESSAGES):
            sender.add(messages[number % len(messages)])
            if number % BURST == 0:
                sender.flush()
                time.sleep(max(0.0, began + number / RATE - time.monotonic()))
        sender.flush()
        wait_for(lambda: process.status()["rules"]["r1"]["counters"]["events_in"] >= MESSAGES, "the messages")
        loaded = process.resident_bytes()
        sender.close()
    megabytes = {"ready_mb": at_first / 1e6, "loaded_mb": loaded / 1e6}
    line = (
        f"memory {at_first / 1e6:.1f} MB with 10 rules when ready (bar 58), "
        f"{loaded / 1e6:.1f} MB at {RATE:,} messages/s (bar 70)"
    )
    return Result("memory", unit="MB", lines=[line], numbers=megabytes)


def deploy() -> Result:
    """Planning and deploying rules one after the other, up to a thousand: processor seconds of one thread."""
    calm_collector()  # as the daemon does
    (whole,) = in_turns([_deploy_thousand], 3)
    line = f"deploy {whole:.2f} s for 1000 rules, {whole:.2f} ms each (bar 1 s)"
    return Result("deploy", unit="s", lines=[line], numbers={"s_per_1000": whole})


def _deploy_thousand() -> None:
    catalog = Catalog()
    catalog.define(parse(STREAM_SQL)[0])  # type: ignore[arg-type]
    engine = Engine(catalog)
    for number in range(1000):
        rule = (
            f"SELECT dev, avg(temp) AS a FROM m WHERE temp > {number} "
            f"GROUP BY dev, TUMBLINGWINDOW(ss, {1 + number})"
        )
        engine.deploy(f"r{number}", plan_rule(rule, catalog), 0, shape="struct")


CASES: dict[str, Callable[[], Result]] = {"memory": memory, "startup": startup, "deploy": deploy}
