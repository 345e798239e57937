"""What a run of the cloud job costs beside what is in the tables already:
`python -m benchmarks fleet --shapes`.

Each figure is a ratio of processor times (the whole process tree, the median of three runs) in one session:
a run with few new files after many and after few earlier files, a late row in a full and in an empty day,
many rules and one rule with equal rows; and of the heap that the driver retains.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloud_sync.declaration import CloudSettings
from cloud_sync.layout import form_file, manifest
from cloud_sync.names import manifest_name
from cloud_sync.records import SpooledRow
from cloud_sync.sink import partial
from cloud_sync.spark import job
from cloud_sync.targets import open_target

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
START_MS = 1_763_683_200_000  # 2025-11-21T00:00:00Z
SETTINGS = CloudSettings.model_validate(
    {
        "keys": ["dev"],
        "merge": {"n": "count", "s": "sum", "lo": "min", "mean": {"sum": "s", "count": "n"}},
        "window": ["1h", "1d"],
    }
)
ROUNDS = 3


@dataclass
class Plant:
    """A bucket, and the tables that the job makes of it."""

    spark: Any
    folder: Path
    seqs: dict[str, int] = field(default_factory=dict)

    def upload(self, gateway: str, starts_ms: Sequence[int], rule: str = "hot") -> None:
        """One file of rows of one day, a row for each start."""
        bucket = self.folder / "bucket"
        bucket.mkdir(parents=True, exist_ok=True)
        first = self.seqs.get(gateway, 0) + 1
        self.seqs[gateway] = first + len(starts_ms) - 1
        spooled = []
        for seq, start_ms in enumerate(starts_ms, first):
            row = {
                "window_start": start_ms,
                "window_end": start_ms,
                "dev": f"d{seq % 50}",
                "n": 1,
                "s": seq / 7,
                "lo": 0.5,
            }
            record = partial(row, SETTINGS, rule, 0)
            spooled.append(SpooledRow(seq, rule, record.date, 0, record.body, 0))
        planned, content = form_file(spooled, gateway, "s")
        target = open_target(str(bucket))
        target.put_if_absent(planned.name, content)
        target.put_if_absent(manifest_name(planned.name), manifest(planned, gateway, "s"))

    def run(self) -> float:
        """The processor seconds of a run of the job."""
        began = tree_seconds()
        paths = str(self.folder / "bucket"), str(self.folder / "out")
        metrics = job.aggregate(self.spark, *paths, job.Options(lambda: START_MS))
        seconds = tree_seconds() - began
        print(
            f"{self.folder.name}: {metrics.files} files, {metrics.rows} rows: {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        return seconds

    def rounds(self, new: Callable[[int], None]) -> float:
        """The median of some runs, each with new files."""
        seconds = []
        for number in range(ROUNDS):
            new(number)
            seconds.append(self.run())
        return statistics.median(seconds)

    def heap_mb(self) -> float:
        """What the driver's heap holds when nothing runs, and Python holds no frames of earlier runs."""
        gc.collect()
        memory = self.spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        for _ in range(3):
            memory.gc()
        return float(memory.getHeapMemoryUsage().getUsed()) / 2**20


def shapes(spark: Any, folder: Path, files: int, records: int, rules: int) -> dict[str, Any]:
    """The ratios, by name; those whose size is 0 are left out."""
    _history(Plant(spark, folder / "warm"), 20)
    found = {}
    if files:
        few, few_mb = _history(Plant(spark, folder / "few"), 20)
        many, many_mb = _history(Plant(spark, folder / "many"), files)
        found[f"after {files} files"] = many / few
        found[f"heap after {files} files"] = many_mb / few_mb
    if rules:
        one, several = (_rules(Plant(spark, folder / f"rules{count}"), count, rules) for count in (1, rules))
        found[f"{rules} rules"] = several / one
    if records:
        empty, full = (_late(Plant(spark, folder / f"day{count}"), count) for count in (0, records))
        found[f"late row in a day of {records}"] = full / empty
    return {name: round(ratio, 2) for name, ratio in found.items()}


def _history(plant: Plant, earlier: int) -> tuple[float, float]:
    """Ten new files, the next hour, after so many files of earlier hours; and the heap afterwards."""
    hours = earlier // 10
    for number in range(10):
        for hour in range(hours):
            plant.upload(f"gw{number}", [START_MS + hour * HOUR_MS])
    plant.run()

    def new(at: int) -> None:
        for number in range(10):
            plant.upload(f"gw{number}", [START_MS + (hours + at) * HOUR_MS])

    seconds, heap_mb = plant.rounds(new), plant.heap_mb()
    print(f"{plant.folder.name}: heap {heap_mb:.0f} MB", file=sys.stderr, flush=True)
    return seconds, heap_mb


def _rules(plant: Plant, count: int, files: int) -> float:
    """Files of ten rows each, of so many rules."""

    def new(at: int) -> None:
        for number in range(files):
            starts_ms = [START_MS + hour * HOUR_MS for hour in range(10)]
            plant.upload(f"gw{number}", starts_ms, f"rule{number % count}")

    return plant.rounds(new)


def _late(plant: Plant, records: int) -> float:
    """One row in a day that has so many; another day has a row in both cases."""
    plant.upload("gw", [START_MS + 5 * DAY_MS])
    for first in range(0, records, 20_000):
        times = [START_MS + at * DAY_MS // records for at in range(first, min(first + 20_000, records))]
        plant.upload(f"gw{first}", times)
    plant.run()
    return plant.rounds(lambda at: plant.upload("late", [START_MS + at * HOUR_MS]))


def tree_seconds() -> float:
    """The processor time of this process, of those below it, and of those of them that have ended."""
    processes = dict(_processes())
    tree = [os.getpid()]
    for process in tree:  # which grows
        tree += [child for child, (parent, _) in processes.items() if parent == process]
    return sum(processes[process][1] for process in tree if process in processes)


def _processes() -> Iterator[tuple[int, tuple[int, float]]]:
    """Each process: its parent, and its processor seconds."""
    ticks = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            yield int(stat.parent.name), (int(fields[1]), sum(map(int, fields[11:15])) / ticks)
