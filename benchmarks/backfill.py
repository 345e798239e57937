"""`python -m benchmarks backfill`: what the engine costs inside Spark.

`backfill_<rule> ratio V` is the rate of a worker, from the lines of a file to Arrow batches, beside that of
the engine over the same lines, decoded by the same decoder; a line below tells the engine without decoding.
Both take turns in this process, by processor time.

`backfill_cores ratio V` is the whole job, `penstock cloud backfill` with JVM and workers, on two cores
beside the same on one: each in a process of its own, which is bound to its cores before it starts the JVM,
`local[1]` on one core and `local[2]` on two. Eight equal gateways, all runs of a session but the first,
by wall time, the files compressed as in an archive: it wants a machine with nothing else to do,
or `chrt -r 10` before the command.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import in_turns
from rules.collector import calm_collector

START_MS = 1_763_683_200_000  # 2025-11-21T00:00:00Z
GATEWAYS = 8
LATE_MS = (*[0] * 95, 500, 500, 1500, 1500, 5000)
"""By how much events are behind the newest: five of a hundred, and one of them too late for the rules."""
HEAD = """
streams: ["CREATE STREAM plant (dev string, n bigint, ts bigint) WITH (DATASOURCE='x', TIMESTAMP='ts')"]
rules:
- id: r
  actions: [{log: {}}]
"""
LATE, ARRIVAL = "{lateTolerance: 2s}", "{isEventTime: false}"
RULES = {
    "filter": ("SELECT dev, n * 2 AS m FROM plant WHERE n > 48", ARRIVAL),
    "length": ("select dev, sum(n) as total from plant#length(3)", ARRIVAL),
    "tumbling": (
        "SELECT dev, sum(n) AS total, avg(n) AS mean, max(n) AS hi FROM plant "
        "GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
        LATE,
    ),
    "sliding": (
        "SELECT dev, avg(n) AS mean FROM plant WHERE n > 90 GROUP BY dev, SLIDINGWINDOW(ss, 2)",
        LATE,
    ),
}
"""Rules in the order of their rows an event: a half, one, a tenth, six."""


def source(rule: str) -> list[tuple[str, str]]:
    """The rule file of one rule."""
    sql, options = RULES[rule]
    return [(f"{HEAD}  sql: {json.dumps(sql)}\n  options: {options}\n", "rules.yaml")]


def raw_lines(count: int) -> bytes:
    """So many raw events of a gateway with fifty devices."""
    choice = random.Random(3)
    lines = []
    for place in range(count):
        at_ms = START_MS + place * 20
        event = {
            "dev": f"d{place % 50}",
            "n": place % 97,
            "temp": 20.5 + place % 7,
            "state": "running",
            "ts": at_ms - choice.choice(LATE_MS),
        }
        lines.append(json.dumps({"at": at_ms, "stream": "plant", "event": event}, separators=(",", ":")))
    return "\n".join(lines).encode()


def worker(rule: str, content: bytes, count: int, rounds: int) -> str:
    """The worker beside the engine."""
    from cloud_sync.spark.backfill.rules import compiled
    from cloud_sync.spark.backfill.worker import Reading, batches_of, runs_of
    from rules.drive import drive
    from sql import Engine

    known = compiled(source(rule), "UTC")
    plans = {name: found.plan for name, found in known.rules.items()}
    file = {"gateway": "g", "path": "file:/raw/gw=g/1.jsonl", "content": content}
    decoded = list(runs_of([file], Reading()))

    def engine() -> None:
        for _ in drive(Engine(known.catalog.copied(), by_instants=True), plans, decoded, known.tables):
            pass

    def decoding() -> None:
        for _ in runs_of([file], Reading()):
            pass

    def whole() -> None:
        for _ in batches_of(known, plans, [file]):
            pass

    alone, read, took = (1e6 * best / count for best in in_turns((engine, decoding, whole), rounds))
    ratio = (alone + read) / took
    detail = (
        f"worker {took:.2f} us an event, decoding {read:.2f}, engine {alone:.2f} ({alone / took:.2f} of it)"
    )
    return f"backfill_{rule} ratio {ratio:.2f}\n  {detail}"


def job_seconds(cores: int, raw: Path, rule: str, rounds: int) -> float:
    """The least seconds of a run of the job in a process of its own, on so many cores."""
    command = [sys.executable, "-m", "benchmarks", "backfill", "--on", str(cores), "--rounds", str(rounds)]
    command += ["--rule", rule, "--raw", str(raw)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return float(json.loads(done.stdout.splitlines()[-1]))


def on_cores(cores: int, raw: Path, rule: str, rounds: int) -> float:
    """As `job_seconds`, in this process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from cloud_sync.spark.backfill import backfill
    from cloud_sync.spark.session import session

    best = float("inf")
    with tempfile.TemporaryDirectory() as folder, session(f"local[{cores}]") as spark:
        for lap in range(rounds + 1):  # a first run compiles
            out = Path(folder) / "out"
            began = time.monotonic()
            backfill(spark, source(rule), ["r"], str(raw), str(out), "UTC")
            if lap:
                best = min(best, time.monotonic() - began)
            shutil.rmtree(out)
    return best


def cores(rule: str, events: int, rounds: int) -> str:
    """Two cores beside one."""
    with tempfile.TemporaryDirectory() as folder:
        content = gzip.compress(raw_lines(events), mtime=0)
        for number in range(GATEWAYS):
            place = Path(folder) / f"gw=g{number}"
            place.mkdir()
            (place / "1.jsonl.gz").write_bytes(content)
        one, two = (job_seconds(count, Path(folder), rule, rounds) for count in (1, 2))
    rates = ", ".join(f"{GATEWAYS * events / took:,.0f}" for took in (one, two))
    return f"backfill_cores ratio {one / two:.2f}\n  {rule}: {rates} events/s on one core, on two"


def arguments_of(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks backfill", description=__doc__)
    parser.add_argument("--events", type=int, default=250_000, help="of each gateway, in the whole job")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rule", choices=RULES, default="tumbling", help="of the whole job")
    parser.add_argument("--no-cores", action="store_true", help="without the whole job, which starts Spark")
    parser.add_argument("--on", type=int, metavar="CORES", help=argparse.SUPPRESS)
    parser.add_argument("--raw", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(arguments: list[str]) -> int:
    """Run and print a line for each ratio."""
    chosen = arguments_of(arguments)
    if chosen.on is not None:
        print(on_cores(chosen.on, chosen.raw, chosen.rule, chosen.rounds))
        return 0
    calm_collector()  # as the worker does
    count = 8_192
    content = raw_lines(count)
    for rule in RULES:
        print(worker(rule, content, count, 4 * chosen.rounds), flush=True)
    if not chosen.no_cores:
        print(cores(chosen.rule, chosen.events, chosen.rounds))
    return 0
