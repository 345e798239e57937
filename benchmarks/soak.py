"""`python -m benchmarks.soak [--minutes 20] [--rate 5000]`: a daemon under load for long;
exit code 1 where it drifts.

The seven rules of `latency_state` with its keys, QoS 1, rows for the cloud uploaded to a folder.
Every ten seconds memory, descriptors, threads, disk, `/healthz` and the latency of the alerts are noted.
In the second half of the run each of them must stay: the mean of its last part within 5 % of that of the
part before. In the end every message must have been taken in once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.gateway_cpu import processor_s, results
from benchmarks.latency_state import SESSION_KEYS, SEVEN, publish, quantiles
from tests.integration.daemon.support import Process, daemon
from tests.support.brokers import mosquitto
from tests.support.waiting import wait_for

STEP_S = 10
DRIFT_MAX = 0.05
DRAIN_S = 120


@dataclass(frozen=True)
class Sample:
    """What was seen at one instant; the latency is that of the alerts since the sample before."""

    memory_mb: float
    descriptors: int
    threads: int
    disk_mb: float
    p99_ms: float


STEADY = tuple(field.name for field in fields(Sample) if field.name != "p99_ms")
P99_GROWTH_MAX = 0.5
"""The p99 of a part is one of few values, and swings more."""


def sample(process: Process, latencies: list[float]) -> Sample:
    """The state of the daemon, and the alerts since the sample before."""
    of = Path(f"/proc/{process.pid}")
    p99_ms = quantiles(latencies or [float("nan")])[1]
    counts = entries(of / "fd"), entries(of / "task")
    return Sample(process.resident_bytes() / 1e6, *counts, disk_bytes(process.data) / 1e6, p99_ms)


def entries(folder: Path) -> int:
    """How many a folder has."""
    return len(list(folder.iterdir()))


def disk_bytes(folder: Path) -> int:
    """What the files below a folder take."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def watched(process: Process, found: list[float], seconds: float) -> tuple[list[Sample], int]:
    """Samples until the time is over, and how often `/healthz` was not 200."""
    samples, sick, seen = [], 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(min(STEP_S, max(0.0, end - time.monotonic())))
        sick += process.get("/healthz")[0] != 200
        samples.append(sample(process, found[seen:]))
        seen = len(found)
        print(f"{len(samples) * STEP_S:5} s  {told(samples[-1])}", flush=True)
    return samples, sick


def told(seen: Sample) -> str:
    """A sample as a line."""
    counts = f"{seen.descriptors} descriptors  {seen.threads} threads"
    return f"{seen.memory_mb:6.1f} MB  {counts}  {seen.disk_mb:7.1f} MB on disk  p99 {seen.p99_ms:.1f} ms"


def drifts(samples: list[Sample]) -> list[str]:
    """What did not stay in the second half of the run."""
    half = samples[len(samples) // 2 :]
    before, after = half[: len(half) // 2], half[len(half) // 2 :]
    bounds = dict.fromkeys(STEADY, DRIFT_MAX) | {"p99_ms": P99_GROWTH_MAX}
    return [drift for name, bound in bounds.items() if (drift := grown(name, before, after, bound))]


def grown(name: str, before: list[Sample], after: list[Sample], bound: float) -> str:
    """By how much a figure has grown, where that is more than its bound."""
    first, last = (mean(getattr(one, name) for one in part) for part in (before, after))
    growth = last / first - 1 if first else 0.0
    return f"{name} grew from {first:.1f} to {last:.1f}, by {growth:.0%}" if growth > bound else ""


def soak(minutes: float, rate: int) -> list[str]:
    """Run; what is wrong."""
    seconds = minutes * 60
    with tempfile.TemporaryDirectory() as folder, mosquitto(Path(folder) / "broker") as broker:
        text = SEVEN.replace("BROKER", f"tcp://127.0.0.1:{broker.port}")
        upload = ("--upload", str(Path(folder) / "bucket"), "--upload-interval", "5000ms")
        with daemon(Path(folder) / "gateway", broker.url, {"rules.yaml": text}, *upload) as process:
            process.wait_ready()
            found: list[float] = []
            with results(broker, found):
                context = multiprocessing.get_context("spawn")
                sender = context.Process(
                    target=publish, args=(broker.port, rate, SESSION_KEYS, seconds), daemon=True
                )
                sender.start()
                began = time.monotonic()
                samples, sick = watched(process, found, seconds)
                used = processor_s(process.pid) / (time.monotonic() - began)
                sender.join(DRAIN_S)
                wrong = drifts(samples) + ([f"/healthz was {sick} times not 200"] if sick else [])
                wrong += miscounted(process)
            p50, p99, most = quantiles(found)
            status = process.status()
    print(f"{used:.0%} of a core; {status['journal']['bytes_per_message']} bytes written a message")
    print(f"alerts: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.0f} ms")
    return wrong


def miscounted(process: Process) -> list[str]:
    """Whether the broker has messages left, or the rules saw another number than was received."""
    wait_for(lambda: is_drained(process.status()), "the end of the backlog")
    status = process.status()
    seen = status["rules"]["alert"]["counters"]["events_in"]
    received = status["sources"]["mqtt"]["messages"] - status["sources"]["mqtt"]["duplicates"]
    return [] if seen == received else [f"{received} messages were received, the rules saw {seen}"]


def is_drained(status: dict[str, Any]) -> bool:
    """Whether everything that was taken in is acknowledged."""
    return not status["intake"]["unacknowledged"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--rate", type=int, default=5_000, help="messages a second")
    given = parser.parse_args()
    wrong = soak(given.minutes, given.rate)
    print("; ".join(wrong) or "nothing drifted")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
