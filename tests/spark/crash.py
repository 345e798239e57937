"""Kill the cloud job at random instants while a reader polls: `python -m tests.spark.crash --kills 200`.

Gateways go on uploading. Most runs work on a Spark Connect server with two executors, which lives as long
as a piece: either the driver is killed, whose work on the server goes on for a while beside the next run,
or an executor, and then the run must end well. The others work in a session of their own,
and driver, JVM and workers are killed together. Now and then two run at once.
A reader that knows only the pointer and Parquet must never miss a day that it has seen, see a group twice,
or see fewer records than before. In the end the tables equal an independent computation.

With `--folder DIR --seconds 420` it works in pieces: each ends in time with that comparison,
and the next one with the same DIR goes on with its bucket and tables, until `--kills` are reached.
The last line has the sums of all pieces.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cloud_sync.spark import job, tables
from cloud_sync.spark.session import CONNECT_REMEDY
from edge.cli import main as main_of_cli
from tests.spark.engines import CLUSTER, Server, connect_server, submitting
from tests.spark.support import Row, brute_force, rows, upload


class Reader:
    """Polls the fleet in a thread, without Spark; findings go to the tally."""

    def __init__(self, out: Path, tally: Tally) -> None:
        self._out = out
        self._tally = tally
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
                self.poll()
            except Exception as error:  # noqa: BLE001  whatever a reader meets is a finding
                self._tally.wrong.append(f"{type(error).__name__}: {error}")

    def poll(self) -> None:
        """Read the tables once."""
        found = newest(self._out)
        days = {row["window_start"].date().isoformat() for row in found}
        groups = {(row["rule"], row["level"], row["start_ms"], row["keys"]) for row in found}
        records = sum(row["records"] for row in found)
        if len(groups) < len(found):
            self._tally.wrong.append("a group is there twice")
        if missed := self._days - days:
            self._tally.wrong.append(f"missed {sorted(missed)}")
        if records < self._records:
            self._tally.wrong.append(f"{records} records after {self._records}")
        self._days, self._records = days, records
        self._tally.polls += 1


def newest(out: Path) -> list[dict[str, Any]]:
    """The rows of the newest version, as any reader of Parquet gets them."""
    import pyarrow.parquet as pq

    names = sorted((out / "_versions").glob("*.json")) if out.is_dir() else []
    version = tables.decode(names[-1].read_bytes()) if names else tables.Version()
    return [row for path in version.fleet.values() for row in pq.read_table(out / path).to_pylist()]


@dataclass
class Tally:
    """What has happened in all pieces. `refused` runs met another one at work, `at_once` counts those that
    began beside another one, `compared` the comparisons with the independent computation; `wrong` is what
    the reader found, runs that failed, and tables that were not those of the computation."""

    seeds: list[int] = field(default_factory=list)
    drivers: int = 0
    executors: int = 0
    ended: int = 0
    refused: int = 0
    at_once: int = 0
    polls: int = 0
    records: int = 0
    compared: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        return self.drivers + self.executors


class Fleet:
    """A bucket that gateways upload into, its tables, and what was sent,
    in a folder that outlives a piece."""

    def __init__(self, folder: Path) -> None:
        self.bucket, self.out = folder / "bucket", folder / "out"
        self.bucket.mkdir(parents=True, exist_ok=True)
        self._sent, self._tally = folder / "sent.jsonl", folder / "tally.json"
        self._sent.touch()
        self._told = folder / "told"
        self._told.mkdir(exist_ok=True)

    def new_file(self) -> Path:
        """A file for the errors of a run."""
        file = self._told / uuid.uuid4().hex
        file.touch()
        return file

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


class Run:
    """A run of the job in a process group of its own."""

    def __init__(self, fleet: Fleet, master: str) -> None:
        self._told = fleet.new_file()
        command = ["cloud", "aggregate", str(fleet.bucket), str(fleet.out), "--master", master]
        self._process = FORKS.Process(target=_run, args=(command, str(self._told)), daemon=True)
        self._process.start()

    def kill(self) -> bool:
        """End it at once, with all processes that it has started; whether it was at work."""
        assert self._process.pid is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended, or has no group yet
            self._process.kill()
            return False
        finally:
            self._process.join()
        return self._process.exitcode == -signal.SIGKILL

    def end(self, tally: Tally) -> None:
        """Wait for its end, and count it."""
        self._process.join()
        code, told = self._process.exitcode, self._told.read_text(encoding="utf-8")
        if code == job.OK:
            tally.ended += 1
        elif code == job.FAILED and any(text in told for text in REFUSALS):
            tally.refused += 1
        else:
            tally.wrong.append(f"a run has ended with code {code}: {told[-2_000:]}")


FORKS = multiprocessing.get_context("forkserver")
"""Makes the processes of runs: each begins with the modules that it needs, for it is killed after a second
or two."""
MODULES = (
    "__main__",
    "edge.cli",
    "cloud_sync.spark.aggregate",
    "cloud_sync.spark.intake",
    "cloud_sync.spark.job",
    "cloud_sync.spark.quality",
    "cloud_sync.spark.view",
    "pandas",
    "pyarrow",
    "pyspark.sql.connect.session",
)


def _run(command: list[str], told: str) -> None:
    """The process of a run; what it tells goes into a file."""
    os.setsid()
    with Path(told).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(main_of_cli(command))


REFUSALS = ("wait for its end", "has taken over", "by turns", "meanwhile")
"""What a run says that has met another one."""


class Killer:
    """Rounds of runs and kills."""

    def __init__(self, fleet: Fleet, server: Server, rng: random.Random, tally: Tally) -> None:
        self._fleet, self._server, self._rng, self._tally = fleet, server, rng, tally
        self.whole()
        self.whole_s = self.whole()

    def whole(self) -> float:
        """A run that is left alone; its length in seconds."""
        begun = time.monotonic()
        self._fleet.send(self._rng)
        Run(self._fleet, self._server.url).end(self._tally)
        return time.monotonic() - begun

    def round(self) -> None:
        """Start a run or two, and kill something."""
        rng, tally = self._rng, self._tally
        self._fleet.send(rng)
        kind = rng.choices(("driver", "executor", "session"), (0.8, 0.15, 0.05))[0]
        master = "local[1]" if kind == "session" else self._server.url
        runs = [Run(self._fleet, master) for _ in range(1 + (rng.random() < 0.3))]
        tally.at_once += len(runs) - 1
        # A session of its own starts as long as several runs work.
        time.sleep(rng.uniform(0.1, 1.0) * self.whole_s * (5 if kind == "session" else 1))
        if kind == "executor":
            self._kill_executors()
            for run in runs:
                run.end(tally)
            return
        tally.drivers += sum(run.kill() for run in runs)
        if rng.random() < 0.1:
            self.whole_s = self.whole()  # it follows the load of the machine

    def _kill_executors(self) -> None:
        """Kill one of the executors, or both."""
        executors = self._server.executors()
        for executor in self._rng.sample(executors, min(len(executors), self._rng.randint(1, 2))):
            os.kill(executor, signal.SIGKILL)
            self._tally.executors += 1


def crash(fleet: Fleet, kills: int, seconds: float, seed: int) -> Tally:
    """Kill for so many seconds or until there are so many kills in all pieces, then let one run end."""
    rng, tally, begun = random.Random(seed), fleet.tally(), time.monotonic()
    tally.seeds.append(seed)
    with connect_server(CLUSTER) as server, Reader(fleet.out, tally):
        killer = Killer(fleet, server, rng, tally)
        while tally.killed < kills and time.monotonic() - begun + 4 * killer.whole_s < seconds:
            killer.round()
            fleet.keep(tally)
        killer.whole()
    sent = fleet.sent()
    tally.records = len(sent)
    found = {(row["start_ms"], repr(json.loads(row["keys"])["dev"])): line(row) for row in newest(fleet.out)}
    if found != brute_force(sent):
        tally.wrong.append(f"seed {seed}: the tables are not those of the computation")
    tally.compared += 1
    fleet.keep(tally)
    return tally


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
    if find_spec("grpc_status") is None:
        parser.error(f"this needs Spark Connect: {CONNECT_REMEDY}")
    os.environ.update(submitting())
    FORKS.set_forkserver_preload([*MODULES])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server ends too
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(arguments.folder or Path(folder))
        tally = crash(fleet, arguments.kills, arguments.seconds, arguments.seed)
    print(json.dumps(asdict(tally)))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
