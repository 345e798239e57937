"""A gateway on a disk of 20 MB whose upload target is away until the disk is full, with and without kills."""

from __future__ import annotations

import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.crash.plant import Plant, until
from tests.integration.daemon.support import Process, bucket_rows
from tests.support.brokers import Mosquitto

DISK_MB = 20
POLICIES = ("block", "dropOldest", "dropNewest")
FULL_FOR_S = 6
DRAIN_S = 300
PAD = "x" * 800

RULES = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#")'
rules:
  - id: each
    sql: SELECT n, pad FROM m
    actions: [{cloud: {keys: [n, pad], window: 86400000}}]
  - id: windows
    sql: SELECT count(*) AS c FROM m GROUP BY SLIDINGWINDOW(ss, 5)
    actions: [{nop: {}}]
"""


class Outcome(NamedTuple):
    """What a run came to. `wrong` is empty where all is as it must be."""

    kills: int
    messages: int
    dropped: int
    drained_s: float
    wrong: str


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 20 MB at `folder`. Needs the right to mount."""
    folder.mkdir(parents=True)
    size = f"size={DISK_MB}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def run(folder: Path, policy: str, *, kills: int, seed: int) -> Outcome:
    """Fill the disk, kill, give the target back, and count."""
    dice = random.Random(seed)
    broker = Mosquitto(
        folder / "broker", persistence=True, lines=("max_queued_messages 0", "max_queued_bytes 0")
    )
    broker.start()
    bucket = folder / "bucket"
    bucket.write_text("the target is away")
    environment = {"PENSTOCK__CLOUD__ONFULL": policy}
    gateway = Process(
        folder, broker.url, ("--upload", str(bucket), "--upload-interval", "1000ms"), environment
    )
    gateway.write_rule("a.yaml", RULES)
    with small_disk(gateway.data):
        plant = Plant(broker.port, seed, pad=PAD)
        try:
            gateway.start()
            gateway.wait_ready()
            plant.start()
            until(lambda: is_full(gateway), 120, "the full disk")
            for _ in range(kills):
                threading.Event().wait(dice.random() * FULL_FOR_S / max(1, kills))
                gateway.kill()
                gateway.start()
            threading.Event().wait(FULL_FOR_S / (kills + 1))
            total = plant.finish()
            began = time.monotonic()
            bucket.unlink()
            until(lambda: is_drained(gateway, total), DRAIN_S, "the end of the backlog")
            took = time.monotonic() - began
            counters = gateway.status()["spool"]
            dropped = counters["dropped_oldest"] + counters["dropped_newest"]
            wrong = judged(bucket, policy, total, dropped, was_killed=kills > 0)
            return Outcome(kills, total, dropped, took, wrong)
        except (TimeoutError, AssertionError) as error:
            return Outcome(kills, plant.sent, 0, 0.0, f"{error}; log: {gateway.log()[-3000:]}")
        finally:
            plant.close()
            gateway.kill()
            broker.stop()


def is_full(gateway: Process) -> bool:
    """Whether the full disk has had an effect."""
    spool = gateway.status()["spool"]
    return bool(spool["dropped_oldest"] + spool["dropped_newest"]) or "full" in gateway.get("/readyz")[1]


def is_drained(gateway: Process, total: int) -> bool:
    """Whether all messages were taken in, and all rows are in the cloud."""
    status = gateway.status()
    return (
        status["spool"]["rows"] == 0
        and not status["intake"]["unacknowledged"]
        and not status["ready"]
        and (gateway.status()["rules"]["each"]["counters"]["events_in"] >= total)
    )


def judged(bucket: Path, policy: str, total: int, dropped: int, *, was_killed: bool) -> str:
    """What is wrong with the rows in the cloud; empty if nothing is."""
    numbers = Counter(row["keys"]["n"] for row in bucket_rows(bucket) if row["rule"] == "each")
    doubled = sum(count > 1 for count in numbers.values())
    missing = total - len(numbers)
    if doubled or missing < 0:
        return f"{doubled} doubled of {len(numbers)}"
    if policy == "block" and (missing or dropped):
        return f"{missing} lost, {dropped} dropped, though the policy is block"
    if policy == "dropOldest" and missing != dropped:
        return f"{missing} missing, {dropped} counted as dropped"
    if policy == "dropNewest" and missing < dropped:
        return f"{missing} missing, {dropped} counted as dropped"
    return ""


def campaign(seed: int, runs: int) -> bool:
    """Every policy, with and without kills; whether all went well."""
    fine = True
    for number in range(runs):
        policy, kills = POLICIES[number % 3], (0, 3)[number // 3 % 2]
        with tempfile.TemporaryDirectory(prefix="disk-") as folder:
            found = run(Path(folder), policy, kills=kills, seed=seed + number)
        told = (
            f"disk of {DISK_MB} MB, {policy}, {kills} kills, seed {seed + number}: {found.messages} messages"
        )
        print(
            f"{told}, {found.dropped} dropped, {found.drained_s:.1f} s: {found.wrong or 'fine'}", flush=True
        )
        fine &= not found.wrong
    return fine
