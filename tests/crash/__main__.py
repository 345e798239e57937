"""Kill a daemon again and again while messages flow, restart its broker, edit its rules; then count."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.crash import disk
from tests.crash.plant import Plant, until
from tests.integration.daemon.support import Process, bucket_rows
from tests.support.brokers import Mosquitto

BOUNDS = "window_start() AS window_start, window_end() AS window_end"

STREAMS = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#", TIMESTAMP="ts")'
  - 'CREATE STREAM arriving () WITH (DATASOURCE="plant/#")'
  - 'CREATE STREAM chained () WITH (TYPE="memory", DATASOURCE="t/+")'
"""

RULES = f"""rules:
  - id: each
    sql: SELECT n FROM m
    actions: [{{cloud: {{keys: [n], window: 86400000}}}}]
  - id: tens
    sql: SELECT count(*) AS c, sum(n) AS total FROM m GROUP BY COUNTWINDOW(10)
    actions: [{{memory: {{topic: t/tens}}}}]
  - id: chain
    sql: SELECT c, total FROM chained
    actions: [{{cloud: {{merge: {{c: sum, total: sum}}, types: {{c: int, total: int}}, window: 86400000}}}}]
  - id: sessions
    sql: SELECT g, count(*) AS c, {BOUNDS} FROM arriving GROUP BY g, SESSIONWINDOW(ss, 20, 1)
    actions: [{{cloud: {{keys: [g], merge: {{c: count}}, window: 86400000}}}}]
  - id: event_time
    sql: SELECT count(*) AS c, {BOUNDS} FROM m GROUP BY TUMBLINGWINDOW(ss, 1)
    options: {{isEventTime: true, lateTolerance: 60000}}
    actions: [{{cloud: {{merge: {{c: count}}, window: 86400000}}}}]
"""

EDITED = (
    "rules:\n  - id: edited\n    sql: SELECT n + {} AS n FROM m WHERE n < 0\n    actions: [{{nop: {{}}}}]\n"
)

END_TS = 4_000_000_000_000

READY_S_MAX = 120
"""A machine that is busy with other work takes long."""

START_S_MAX = 1.5
"""Kills during a start come within this time: at its imports, in its recovery, at its first connection."""


def campaign(
    folder: Path, seconds: float, seed: int, version: str, in_flight: int
) -> tuple[int, int, list[str]]:
    """Kills, messages, and what was lost or doubled."""
    dice = random.Random(seed)
    lines = (f"max_inflight_messages {in_flight}", "max_queued_messages 0")
    broker = Mosquitto(folder / "broker", persistence=True, lines=lines)
    broker.start()
    bucket = folder / "bucket"
    arguments = ("--upload", str(bucket), "--upload-interval-ms", "200")
    environment = {
        "PENSTOCK__MQTT__PROTOCOLVERSION": version,
        "PENSTOCK__MQTT__RECEIVEMAX": "65535",
        "PENSTOCK__JOURNAL__SNAPSHOTBYTES": "100000",
    }
    gateway = Process(folder, broker.url, arguments, environment)
    gateway.write_rule("a.yaml", STREAMS + RULES)
    kills = 0
    try:
        gateway.start()
        gateway.wait_ready(READY_S_MAX)
        plant = Plant(broker.port, seed)
        plant.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            threading.Event().wait(dice.choice((0.0, 0.02, 0.1, 0.3, 0.6, 1.0)) * dice.random())
            if dice.random() < 0.05:
                broker.stop()
                broker.start()
            if dice.random() < 0.2:
                gateway.write_rule("b.yaml", EDITED.format(dice.randrange(1_000)))
            if dice.random() < 0.1:
                gateway.send(15)
                threading.Event().wait(dice.random() * 0.3)
            gateway.kill()
            kills += 1
            while dice.random() < 0.3:
                gateway.start(wait=False)
                threading.Event().wait(dice.random() * START_S_MAX)
                gateway.kill()
                kills += 1
            gateway.start()
            if dice.random() < 0.5:
                gateway.wait_ready(READY_S_MAX)
        total = plant.finish()
        until(lambda: len(rows_of(bucket, "each")) >= total, 120, f"all {total} messages, seed {seed}")
        threading.Event().wait(2.5)  # sessions end
        last = f'{{"n": -1, "g": 0, "ts": {END_TS}}}'
        plant.send(last)
        until(lambda: sessions(bucket) > total, 60, f"the last session, seed {seed}")
        assert gateway.stop(60) == 0
        plant.close()
        gateway.start()
        until(lambda: gateway.status()["spool"]["rows"] == 0, 60, "the upload")
        return kills, total, problems(bucket, total)
    finally:
        gateway.kill()
        broker.stop()


def rows_of(bucket: Path, rule: str) -> list[dict[str, Any]]:
    return [row for row in bucket_rows(bucket) if row["rule"] == rule]


def sums(bucket: Path, rule: str, column: str) -> int:
    values = (value for row in rows_of(bucket, rule) for value in row["values"])
    return sum(value["int"] for value in values if value["as"] == column)


def sessions(bucket: Path) -> int:
    return sums(bucket, "sessions", "c")


def problems(bucket: Path, total: int) -> list[str]:
    """Every count that is not what the broker confirmed."""
    found = []
    numbers = Counter(row["keys"]["n"] for row in rows_of(bucket, "each"))
    del numbers[-1]
    lost = [number for number in range(total) if not numbers[number]]
    doubled = [number for number, count in numbers.items() if count > 1]
    if lost or doubled:
        found.append(f"raw rows: lost {len(lost)} {lost[:5]}, doubled {len(doubled)} {doubled[:5]}")
    chain = [sums(bucket, "chain", "c"), sums(bucket, "chain", "total"), len(rows_of(bucket, "chain"))]
    if chain != [total, sum(range(total)), total // 10]:
        found.append(f"chain: {chain} in place of {[total, sum(range(total)), total // 10]}")
    if sessions(bucket) != total + 1:
        found.append(f"sessions: {sessions(bucket)} in place of {total + 1}")
    windows = sums(bucket, "event_time", "c")
    if windows != total:
        found.append(f"event time: {windows} in place of {total}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seconds", type=float, default=12, help="of each of the four settings")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument(
        "--disk", type=int, default=0, metavar="RUNS", help="so many runs on a small disk instead"
    )
    arguments = parser.parse_args()
    if arguments.disk:
        return 0 if disk.campaign(arguments.seed, arguments.disk) else 1
    failed = False
    for number, (version, in_flight) in enumerate((("5", 20), ("5", 0), ("3.1.1", 20), ("3.1.1", 0))):
        seed = arguments.seed + number
        with tempfile.TemporaryDirectory(prefix="crash-") as folder:
            kills, messages, wrong = campaign(Path(folder), arguments.seconds, seed, version, in_flight)
        told = f"MQTT {version}, {in_flight or 'unlimited'} in flight, seed {seed}: {kills} kills, {messages} messages"
        print(f"{told}, {'; '.join(wrong) or '0 lost, 0 doubled'}", flush=True)
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
