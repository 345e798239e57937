"""What a run of the cloud job costs beside what is in the tables already:
`python -m benchmarks fleet --late 1000000 --heap 10000 --rules 100`.

Each figure is a ratio of processor times (the whole process tree, the median of five runs in turn)
in one session: a late row in a full and in an empty day, many rules and one rule with equal rows;
and of the heap that the driver retains after many and after few files.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cloud_sync.declaration import CloudSettings
from cloud_sync.names import arrival_name
from cloud_sync.records import SpooledRow
from cloud_sync.sink import RecordMaker
from cloud_sync.spark import job
from cloud_sync.targets import DirectoryTarget
from cloud_sync.targets.file_operations import DiskFiles
from cloud_sync.upload_files import form_file, manifest

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
START_MS = 1_763_683_200_000  # 2025-11-21T00:00:00Z
SETTINGS = CloudSettings.model_validate(
    {
        "keys": ["dev"],
        "merge": {"n": "count", "s": "sum", "lo": "min", "mean": {"sum": "s", "count": "n"}},
        "window": ["1h", "1d"],
    }
)
ROUNDS = 5


class Unsynced(DiskFiles):
    """Files of a bucket that need not survive a power cut: thousands of them are written in seconds."""

    def sync(self, path: Path) -> None: ...

    def sync_folder(self, path: Path) -> None: ...


class Cost(NamedTuple):
    """What a run of the job costs: processor seconds, and the files that Spark reads."""

    seconds: float
    files: int


@dataclass
class Plant:
    """A bucket, and the tables that the job makes of it."""

    spark: Any
    folder: Path
    now_ms: int = START_MS
    seqs: dict[str, int] = field(default_factory=dict)
    makers: dict[str, RecordMaker] = field(default_factory=dict)

    def upload(self, gateway: str, starts_ms: Sequence[int], rule: str = "hot") -> None:
        """One file of rows of one day, a row for each start."""
        bucket = self.folder / "bucket"
        bucket.mkdir(parents=True, exist_ok=True)
        maker = self.makers.setdefault(rule, RecordMaker(SETTINGS, rule))
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
            record = maker.record(row, 0)
            spooled.append(SpooledRow(seq, rule, record.date, 0, record.body, 0))
        planned, content = form_file(spooled, gateway, "s")
        target = DirectoryTarget(bucket, Unsynced())
        target.put_if_absent(planned.name, content)
        place = arrival_name(planned.name, self.now_ms)
        target.put_if_absent(place, manifest(planned, gateway, "s"))

    def run(self) -> Cost:
        """Run the job once."""
        before, began = set(_queries(self.spark)), tree_seconds()
        paths = str(self.folder / "bucket"), str(self.folder / "out")
        metrics = job.aggregate(self.spark, *paths, job.Options(lambda: self.now_ms))
        seconds = tree_seconds() - began
        new = _queries(self.spark)
        cost = Cost(seconds, sum(new[query] for query in new.keys() - before))
        print(
            f"{self.folder.name}: {metrics.files} files, {metrics.rows} rows: "
            f"{cost.seconds:.1f} s, {cost.files} files read",
            file=sys.stderr,
            flush=True,
        )
        return cost

    def heap_mb(self) -> float:
        """What the driver's heap holds when nothing runs, and Python holds no frames of earlier runs. Spark
        frees what was collected in a thread of its own, so it is asked until nothing more goes."""
        gc.collect()
        memory = self.spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        found = [math.inf]
        while len(found) < 3 or found[-1] < found[-3] - 1:
            memory.gc()
            time.sleep(1)
            found.append(float(memory.getHeapMemoryUsage().getUsed()) / 2**20)
        return found[-1]


def medians(series: Mapping[int, tuple[Plant, Callable[[int], None]]]) -> dict[int, Cost]:
    """The median cost of some runs of each plant, each with new files. The plants take turns:
    what the session compiles meanwhile makes the runs of all of them faster."""
    costs: dict[int, list[Cost]] = {size: [] for size in series}
    for number in range(ROUNDS):
        for size, (plant, new) in series.items():
            new(number)
            costs[size].append(plant.run())
    return {size: Cost(*map(statistics.median, zip(*found, strict=True))) for size, found in costs.items()}


def heap(spark: Any, folder: Path, files: int) -> float:
    """The heap after a run over so many files, beside that after one over a hundred."""
    few, many = (_heap_mb(Plant(spark, folder / f"files{count}"), count) for count in (100, files))
    return many / few


def rules(spark: Any, folder: Path, count: int) -> float:
    """A run over files of so many rules, beside one over as many files of one."""
    found = medians({each: _rules(Plant(spark, folder / f"rules{each}"), each, count) for each in (1, count)})
    return found[count].seconds / found[1].seconds


def late(spark: Any, folder: Path, records: int) -> float:
    """A run with a late row in a day of so many records, beside one in an empty day."""
    found = medians({count: _late(Plant(spark, folder / f"day{count}"), count) for count in (0, records)})
    return found[records].seconds / found[0].seconds


def _heap_mb(plant: Plant, files: int) -> float:
    """The heap after a run over so many files, an hour of ten gateways after another."""
    for number in range(files):
        plant.upload(f"gw{number % 10}", [START_MS + number // 10 * HOUR_MS])
    plant.run()
    found = plant.heap_mb()
    print(f"{plant.folder.name}: heap {found:.0f} MB", file=sys.stderr, flush=True)
    return found


def _rules(plant: Plant, count: int, files: int) -> tuple[Plant, Callable[[int], None]]:
    """Files of ten rows each, of so many rules."""

    def new(at: int) -> None:
        for number in range(files):
            starts_ms = [START_MS + hour * HOUR_MS for hour in range(10)]
            plant.upload(f"gw{number}", starts_ms, f"rule{number % count}")

    return plant, new


def _late(plant: Plant, records: int) -> tuple[Plant, Callable[[int], None]]:
    """One row in a day that has so many; another day has a row in both cases."""
    plant.upload("gw", [START_MS + 5 * DAY_MS])
    for first in range(0, records, 20_000):
        times = [START_MS + at * DAY_MS // records for at in range(first, min(first + 20_000, records))]
        plant.upload(f"gw{first}", times)
    plant.run()
    return plant, lambda at: plant.upload("late", [START_MS + at * HOUR_MS])


def _queries(spark: Any) -> dict[int, int]:
    """The queries that the session has run, and of each the number of files that it has read."""
    store = spark._jsparkSession.sharedState().statusStore()
    listed = store.executionsList()
    found = {}
    for at in range(listed.size()):
        query = listed.apply(at)
        told, metrics = store.executionMetrics(query.executionId()), query.metrics()
        of = (metrics.apply(place) for place in range(metrics.size()))
        counts = (told.get(one.accumulatorId()) for one in of if one.name() == "number of files read")
        read = (int(count.get().replace(",", "")) for count in counts if count.isDefined())
        found[int(query.executionId())] = sum(read)
    return found


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
