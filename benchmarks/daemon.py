"""The real daemon, as a process of its own with a mosquitto of its own: memory, start-up, deployment."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.latency import Sender
from benchmarks.measure import STREAM as STREAM_SQL
from benchmarks.measure import Result
from benchmarks.payloads import payloads
from edge.base.memory import calm_collector
from sql import Catalog, Engine, parse, plan_rule
from tests.integration.daemon.support import STREAM, Process, daemon
from tests.support.brokers import Mosquitto, mosquitto, wait_for


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
        "startup",
        unit="s",
        lines=[f"startup {best:.2f} s to readiness with 10 rules (bar 0.8)"],
        numbers={"s": best},
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
        wait_for(
            lambda: process.status()["rules"]["r1"]["counters"]["events_in"] >= 100_000, 60, "the messages"
        )
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
    calm_collector()  # as the daemon does
    began = time.perf_counter()
    for number in range(1000):
        rule = (
            f"SELECT dev, avg(temp) AS a FROM m WHERE temp > {number} "
            f"GROUP BY dev, TUMBLINGWINDOW(ss, {1 + number})"
        )
        engine.deploy(f"r{number}", plan_rule(rule, catalog), 0, shape="struct")
    whole = time.perf_counter() - began
    line = f"deploy {whole:.2f} s for 1000 rules, {whole:.2f} ms each (bar 1 s)"
    return Result("deploy", unit="s", lines=[line], numbers={"s_per_1000": whole})


CASES: dict[str, Callable[[], Result]] = {"memory": memory, "startup": startup, "deploy": deploy}
