"""Kill the cloud job at random instants while a reader polls: `python -m tests.spark.crash --kills 200`.

Gateways go on uploading. Runs are killed with SIGKILL, driver, JVM and workers together; now and then two run
at once. A reader that knows only the pointer and Parquet must never miss a day that it has seen, see a group
twice, or see fewer records than before. In the end the tables equal an independent computation.

With `--folder DIR --seconds 420` it works in pieces: each ends in time with that comparison,
and the next one with the same DIR goes on with its bucket and tables, until `--kills` are reached.
The last line has the sums of all pieces.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cloud_sync.spark import tables
from tests.spark.support import Row, brute_force, rows, upload

SUBMIT = (
    "--driver-java-options=-XX:TieredStopAtLevel=1 --conf spark.sql.codegen.wholeStage=false "
    "--conf spark.sql.codegen.factoryMode=NO_CODEGEN pyspark-shell"
)
"""Most of a short run would go into compiling what runs once."""


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
        found = newest(self._out)
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


def newest(out: Path) -> list[dict[str, Any]]:
    """The rows of the newest version, as any reader of Parquet gets them."""
    import pyarrow.parquet as pq

    names = sorted((out / "_versions").glob("*.json")) if out.is_dir() else []
    version = tables.decode(names[-1].read_bytes()) if names else tables.Version()
    return [row for path in version.fleet.values() for row in pq.read_table(out / path).to_pylist()]


@dataclass
class Tally:
    """What has happened in all pieces. `refused` runs met another one at work,
    `wrong` is what the reader found and tables that were not those of the independent computation."""

    seeds: list[int] = field(default_factory=list)
    killed: int = 0
    ended: int = 0
    refused: int = 0
    polls: int = 0
    records: int = 0
    wrong: list[str] = field(default_factory=list)


class Fleet:
    """A bucket that gateways upload into, its tables, and what was sent,
    in a folder that outlives a piece."""

    def __init__(self, folder: Path) -> None:
        self.bucket, self.out = folder / "bucket", folder / "out"
        self.bucket.mkdir(parents=True, exist_ok=True)
        self._sent, self._tally = folder / "sent.jsonl", folder / "tally.json"
        self._sent.touch()

    def send(self, rng: random.Random) -> None:
        """A gateway uploads rows of one of three days."""
        gateway = f"gw{rng.randrange(3)}"
        made = rows(rng, 20, first_minute=rng.randrange(3) * 1_440)
        with self._sent.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps([gateway, row]) + "\n" for row in made)
        upload(self.bucket, gateway, made, rows_max=15)

    def sent(self) -> list[tuple[str, Row]]:
        """Every row, with its gateway."""
        return [(gateway, row) for gateway, row in map(json.loads, self._sent.open(encoding="utf-8"))]

    def tally(self) -> Tally:
        """The sums of the pieces that have ended."""
        return Tally(**json.loads(self._tally.read_bytes())) if self._tally.exists() else Tally()

    def keep(self, tally: Tally) -> None:
        """Remember the sums for the next piece."""
        self._tally.write_text(json.dumps(asdict(tally)), encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        """One run of the job in a process group of its own."""
        command = [sys.executable, "-m", "edge.cli", "cloud", "aggregate", str(self.bucket), str(self.out)]
        return subprocess.Popen(
            [*command, "--master", "local[1]"],
            env=os.environ | {"PYSPARK_SUBMIT_ARGS": SUBMIT},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def run(self) -> float:
        """A run that is left alone; its length in seconds."""
        begun = time.monotonic()
        process = self.start()
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        return time.monotonic() - begun


def kill(process: subprocess.Popen[bytes]) -> bool:
    """End a run at once; whether it was still at work."""
    was_alive = process.poll() is None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        was_alive = False
    process.communicate()
    return was_alive


def crash(fleet: Fleet, kills: int, seconds: float, seed: int) -> Tally:
    """Kill runs for so many seconds or until there are so many kills in all pieces, then let one run end."""
    rng, tally, begun = random.Random(seed), fleet.tally(), time.monotonic()
    tally.seeds.append(seed)
    fleet.send(rng)
    whole_s = fleet.run()
    with Reader(fleet.out) as reader:
        while tally.killed < kills and time.monotonic() - begun + 2 * whole_s < seconds:
            fleet.send(rng)
            runs = [fleet.start() for _ in range(1 + (rng.random() < 0.15))]
            # Before the session is up there is nothing to kill; `whole_s` follows the load of the machine.
            time.sleep(rng.uniform(0.4, 1.1) * whole_s)
            _count_ends(runs, tally)
        fleet.run()
    tally.polls += reader.polls
    tally.wrong += reader.wrong
    sent = fleet.sent()
    tally.records = len(sent)
    found = {(row["start_ms"], repr(json.loads(row["keys"])["dev"])): line(row) for row in newest(fleet.out)}
    if found != brute_force(sent):
        tally.wrong.append(f"seed {seed}: the tables are not those of the computation")
    fleet.keep(tally)
    return tally


def _count_ends(runs: list[subprocess.Popen[bytes]], tally: Tally) -> None:
    """Kill the runs that are at work; count these and those that have ended."""
    for run in runs:
        if run.poll() is None:
            tally.killed += kill(run)
        else:
            tally.ended += run.returncode == 0
            tally.refused += run.returncode == 1


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
    parser.add_argument("--seconds", type=float, default=math.inf, help="the longest time of a piece")
    parser.add_argument("--folder", type=Path, help="keeps bucket and tables for the next piece")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(arguments.folder or Path(folder))
        tally = crash(fleet, arguments.kills, arguments.seconds, arguments.seed)
    print(json.dumps(asdict(tally)))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
