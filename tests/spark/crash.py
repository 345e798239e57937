"""Kill the cloud job at random instants while a reader polls: `python -m tests.spark.crash --kills 200`.

Gateways go on uploading. Runs are killed with SIGKILL, driver, JVM and workers together; now and then two run
at once. A reader that knows only the pointer and Parquet must never miss a day that it has seen, see a group
twice, or see fewer records than before. In the end the tables equal an independent computation.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from cloud_sync.spark import tables
from tests.spark.support import Row, brute_force, rows, upload


class Reader:
    """Polls the fleet in a thread, without Spark."""

    def __init__(self, out: Path) -> None:
        self.polls = 0
        self.wrong: list[str] = []
        self._out = out
        self._days: set[str] = set()
        self._records = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.2):
            try:
                self._poll()
            except Exception as error:  # noqa: BLE001  whatever a reader meets is a finding
                self.wrong.append(f"{type(error).__name__}: {error}")

    def _poll(self) -> None:
        found = fleet(self._out)
        days = {row["window_start"].date().isoformat() for row in found}
        groups = {(row["rule"], row["level"], row["start_ms"], row["keys"]) for row in found}
        records = sum(row["records"] for row in found)
        if len(groups) < len(found):
            self.wrong.append("a group is there twice")
        if missed := self._days - days:
            self.wrong.append(f"missed {sorted(missed)}")
        if records < self._records:
            self.wrong.append(f"{records} records after {self._records}")
        self._days, self._records = days, records
        self.polls += 1


def fleet(out: Path) -> list[dict[str, Any]]:
    """The rows of the newest version, as any reader of Parquet gets them."""
    import pyarrow.parquet as pq

    names = sorted((out / "_versions").glob("*.json")) if out.is_dir() else []
    version = tables.decode(names[-1].read_bytes()) if names else tables.Version()
    return [row for path in version.fleet.values() for row in pq.read_table(out / path).to_pylist()]


def start(bucket: Path, out: Path) -> subprocess.Popen[bytes]:
    """One run in a process group of its own."""
    command = [
        sys.executable,
        "-m",
        "edge.cli",
        "cloud",
        "aggregate",
        str(bucket),
        str(out),
        "--master",
        "local[1]",
    ]
    environment = os.environ | {
        "PYSPARK_SUBMIT_ARGS": "--driver-java-options=-XX:TieredStopAtLevel=1 pyspark-shell",
    }
    return subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def kill(process: subprocess.Popen[bytes]) -> bool:
    """End a run at once; whether it was still at work."""
    was_alive = process.poll() is None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        was_alive = False
    process.communicate()
    return was_alive


def crash(kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill so often, then let one run end; what was found."""
    rng = random.Random(seed)
    bucket, out = folder / "bucket", folder / "out"
    bucket.mkdir()
    sent: list[tuple[str, Row]] = []

    def send() -> None:
        gateway = f"gw{rng.randrange(3)}"
        made = rows(rng, 20, first_minute=rng.randrange(3) * 1_440)
        sent.extend((gateway, row) for row in made)
        upload(bucket, gateway, made, rows_max=15)

    send()
    begun = time.monotonic()
    assert start(bucket, out).communicate() and (out / "_versions").is_dir()
    whole_s = time.monotonic() - begun
    killed = ended = refused = 0
    with Reader(out) as reader:
        while killed < kills:
            send()
            runs = [start(bucket, out) for _ in range(1 + (rng.random() < 0.15))]
            time.sleep(rng.uniform(0.3, 1.1) * whole_s)
            for run in runs:
                if run.poll() is None:
                    killed += kill(run)
                else:
                    ended += run.returncode == 0
                    refused += run.returncode == 1
        last = start(bucket, out)
        _, errors = last.communicate()
        assert last.returncode == 0, errors.decode()
    found = {(row["start_ms"], repr(json.loads(row["keys"])["dev"])): line(row) for row in fleet(out)}
    wanted = brute_force(sent)
    return {
        "seed": seed,
        "killed": killed,
        "ended": ended,
        "refused": refused,
        "polls": reader.polls,
        "equal": found == wanted,
        "wrong": reader.wrong,
        "records": len(sent),
    }


def line(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row of the fleet in the form of `brute_force`."""
    values = {
        value["name"]: value["real"] if value["whole"] is None else int(value["whole"])
        for value in row["values"]
    }
    columns = ("n", "energy", "temp_sum", "temp_min", "temp_max", "avg_temp")
    return (*(values[name] for name in columns), len(row["gateways"]), row["records"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = crash(arguments.kills, arguments.seed, Path(folder))
    print(json.dumps(report))
    return 0 if report["equal"] and not report["wrong"] else 1


if __name__ == "__main__":
    sys.exit(main())
