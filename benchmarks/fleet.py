"""`python -m benchmarks fleet --gateways 200 --days 1`:
a fleet in trouble, beside an independent computation.

Gateways upload hourly rows of two rules, and what happens to fleets happens:
outages, files that come twice in other cuts, corrupt files (some are restored), windows stated anew,
late days, clock steps, new disks, a changed rule.
After some runs of the job the tables must say what plain loops say.
`--growth 2 100 --files 20` then measures the processor time of runs with so many new files after
so many earlier batches (`fleet_history`), the whole process tree counted;
`--late 1000000 --heap 10000 --rules 100` compares costs by size (`fleet_growth`).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import fleet_growth
from benchmarks.fleet_growth import Unsynced, tree_seconds
from benchmarks.fleet_history import growth, made
from cloud_sync.declaration import CloudSettings
from cloud_sync.names import arrival_name
from cloud_sync.records import SpooledRow
from cloud_sync.sink import RecordMaker
from cloud_sync.spark import job, view
from cloud_sync.spark.session import session
from cloud_sync.targets import DirectoryTarget
from cloud_sync.upload_files import form_file, manifest

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
START_MS = 1_763_683_200_000  # 2025-11-21T00:00:00Z
DEVICES = ("a", "b")
STEPS_PER_DAY = 2
HALF_DAY_MS = DAY_MS // STEPS_PER_DAY
HOT: dict[str, Any] = {
    "keys": ["dev"],
    "merge": {"n": "count", "s": "sum", "lo": "min", "mean": {"sum": "s", "count": "n"}},
    "window": ["1h", "1d"],
}
BEFORE = CloudSettings.model_validate(HOT)
AFTER = CloudSettings.model_validate(HOT | {"merge": HOT["merge"] | {"hi": "max"}})
STATED = CloudSettings.model_validate(HOT | {"restates": True, "merge": {"n": "count"}})
SIZES = {"late": fleet_growth.late, "heap": fleet_growth.heap, "rules": fleet_growth.rules}
Row = dict[str, Any]
Group = tuple[str, str, int, str]
"""Rule, level, start of the window and device."""


@dataclass
class Gateway:
    """One gateway: its spool, and how far its clock is off."""

    name: str
    spool: str
    seq: int = 0
    clock_ms: int = 0


@dataclass
class World:
    """The fleet, its bucket, and what should be in the tables."""

    bucket: Path
    rng: random.Random
    gateways: list[Gateway]
    now_ms: int = START_MS + 10 * DAY_MS
    counted: dict[Group, list[Row]] = field(default_factory=lambda: defaultdict(list))
    stated: dict[tuple[str, int, str], Row] = field(default_factory=dict)
    later: list[tuple[Path, bytes]] = field(default_factory=list)
    troubles: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def happens(self, what: str, chance: float) -> bool:
        """Whether a trouble happens now; counted."""
        found = self.rng.random() < chance
        self.troubles[what] += found
        return found

    def step(self, settings: CloudSettings) -> None:
        """Every gateway uploads half a day; files that were held back come."""
        for path, content in self.later:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.later = []
        self.now_ms += HALF_DAY_MS
        for gateway in self.gateways:
            if self.happens("new disk", 0.02):
                gateway.spool, gateway.seq = f"{self.rng.getrandbits(64):016x}", 0
            if self.happens("clock step", 0.02):
                gateway.clock_ms = self.rng.randrange(-30, 30) * HOUR_MS
            late_ms = DAY_MS if self.happens("late day", 0.03) else 0
            begin_ms = self.now_ms - HALF_DAY_MS + gateway.clock_ms - late_ms
            self._hot(gateway, begin_ms, settings)
            self._stated(gateway, begin_ms)

    def _hot(self, gateway: Gateway, begin_ms: int, settings: CloudSettings) -> None:
        made = []
        for hour in range(12):
            for device in DEVICES:
                values = [self.rng.gauss(20, 5) for _ in range(self.rng.randint(1, 4))]
                start_ms = begin_ms + hour * HOUR_MS
                made.append(
                    {"window_start": start_ms, "window_end": start_ms + HOUR_MS, "dev": device,
                     "n": len(values),
                     "s": math.fsum(values), "lo": min(values), "hi": max(values)}
                )  # fmt: skip
        counts = self._upload(gateway, "hot", made, settings, [0] * len(made))
        for row in counts:
            kept = row if settings is AFTER else {name: value for name, value in row.items() if name != "hi"}
            for level, length_ms in (("1h", HOUR_MS), ("1d", DAY_MS)):
                start_ms = row["window_start"] // length_ms * length_ms
                self.counted["hot", level, start_ms, row["dev"]].append(kept)

    def _stated(self, gateway: Gateway, begin_ms: int) -> None:
        """Each window is told twice; the second time says more."""
        made: list[Row] = []
        at: list[int] = []
        for hour in range(12):
            start_ms = begin_ms + hour * HOUR_MS
            for revision in (1, 2):
                end_ms = start_ms + HOUR_MS
                made.append({"window_start": start_ms, "window_end": end_ms, "dev": "a", "n": revision * 10})
                at.append(start_ms + revision)
        self.troubles["restated window"] += 12
        for row in self._upload(gateway, "stated", made, STATED, at):
            key = (gateway.name, int(row["window_start"]), "a")
            # Rows of one window and revision are equal, so of several files it does not matter which counts.
            self.stated[key] = max(self.stated.get(key, row), row, key=lambda item: int(item["n"]))

    def _upload(
        self, gateway: Gateway, rule: str, made: list[Row], settings: CloudSettings, at: list[int]
    ) -> list[Row]:
        """Put files of one date each into the bucket, with troubles; the rows that will count."""
        maker = RecordMaker(settings, rule)
        by_date: dict[str, list[tuple[SpooledRow, Row]]] = defaultdict(list)
        for row, at_ms in zip(made, at, strict=True):
            gateway.seq += 1
            record = maker.record(row, at_ms)
            by_date[record.date].append((SpooledRow(gateway.seq, rule, record.date, 0, record.body, 0), row))
        counts: list[Row] = []
        for pairs in by_date.values():
            spooled, rows = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            path, content = self._put(gateway, spooled)
            if self.happens("corrupt file", 0.02):
                path.write_bytes(content[: len(content) // 2])
                if not self.happens("restored file", 0.5):
                    continue
                self.later.append((path, content))
            elif self.happens("outage", 0.05):
                path.unlink()
                self.later.append((path, content))
            if len(spooled) > 1 and self.happens("duplicate", 0.03):
                self._put(gateway, spooled[: len(spooled) // 2])
            counts += rows
        return counts

    def _put(self, gateway: Gateway, spooled: list[SpooledRow]) -> tuple[Path, bytes]:
        planned, content = form_file(spooled, gateway.name, gateway.spool)
        target = DirectoryTarget(self.bucket, Unsynced())
        target.put_if_absent(planned.name, content)
        place = arrival_name(planned.name, self.now_ms + gateway.clock_ms)
        target.put_if_absent(place, manifest(planned, gateway.name, gateway.spool))
        return self.bucket / planned.name, content

    def expected(self) -> dict[Group, Row]:
        """The tables by plain loops: the values of each group, and the number of its records."""
        found: dict[Group, Row] = {}
        for group, rows in self.counted.items():
            count, highest = sum(row["n"] for row in rows), [row["hi"] for row in rows if "hi" in row]
            found[group] = {
                "n": count, "s": math.fsum(row["s"] for row in rows), "lo": min(row["lo"] for row in rows),
                "hi": max(highest, default=None), "mean": math.fsum(row["s"] for row in rows) / count,
                "records": len(rows),
            }  # fmt: skip
        for (_, start_ms, device), row in self.stated.items():
            for level, length_ms in (("1h", HOUR_MS), ("1d", DAY_MS)):
                group = ("stated", level, start_ms // length_ms * length_ms, device)
                known = found.setdefault(group, {"n": 0, "records": 0})
                known["n"] += row["n"]
                known["records"] += 1
        return found


def found(spark: Any, out: str) -> dict[Group, Row]:
    """The tables in the form of `World.expected`."""
    tables: dict[Group, Row] = {}
    for rule in ("hot", "stated"):
        for row in (
            view.fleet(spark, out, rule).selectExpr("*", "unix_millis(window_start) AS start_ms").collect()
        ):
            told = row.asDict()
            group = (rule, told["level"], told["start_ms"], json.loads(told["keys"])["dev"])
            assert group not in tables, f"two rows for {group}"
            tables[group] = {
                name: told[name] for name in ("n", "s", "lo", "hi", "mean", "records") if name in told
            }
    return tables


def compare(wanted: dict[Group, Row], told: dict[Group, Row]) -> Counter[str]:
    """Groups with a wrong value, records that are lost, and records that count twice."""
    result = Counter(groups=len(wanted), records=0, wrong=0, lost=0, doubled=0)
    for group in wanted.keys() | told.keys():
        result.update(_differences(wanted.get(group, {"records": 0}), told.get(group, {"records": 0})))
    return result


def _differences(one: Row, other: Row) -> dict[str, int]:
    missing = one["records"] - other["records"]
    wrong = any(not _same(value, other.get(name)) for name, value in one.items())
    return {"records": one["records"], "lost": max(0, missing), "doubled": max(0, -missing), "wrong": wrong}


def _same(one: Any, other: Any) -> bool:
    """Equal to the last bit but for means and sums of sums, which `fsum` rounds once more."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-15)
    return bool(one == other)


def arguments_of(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet", description=__doc__)
    numbers = {"gateways": 200, "days": 1, "files": 20, "seed": random.randrange(2**32)}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--growth", type=int, nargs="*", default=[], metavar="BATCHES")
    for name in SIZES:
        parser.add_argument(f"--{name}", type=int, metavar="N")
    return parser.parse_args(given)


def trouble(spark: Any, folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """The fleet through its days, a run of the job after each step;
    how its tables differ from the computation."""
    rng = random.Random(chosen.seed)
    bucket, out = folder / "bucket", str(folder / "out")
    bucket.mkdir()
    fleet = [Gateway(f"gw{number}", f"{rng.getrandbits(64):016x}") for number in range(chosen.gateways)]
    world = World(bucket, rng, fleet)
    files, seconds, began = 0, 0.0, time.monotonic()
    for step in range(chosen.days * STEPS_PER_DAY + 1):
        is_last = step == chosen.days * STEPS_PER_DAY
        if is_last:  # only what was held back, and what clocks have put into far hours
            world.gateways = []
        world.step(AFTER if step >= chosen.days else BEFORE)
        options, before = job.Options(lambda: world.now_ms, everything=is_last), tree_seconds()
        taken = job.aggregate(spark, str(bucket), out, options).files
        spent = tree_seconds() - before
        files, seconds = files + taken, seconds + spent
        spans = f"{spent:.0f} s of processor time, {time.monotonic() - began:.0f} s since the start"
        print(f"step {step}: {taken} files, {spans}", file=sys.stderr, flush=True)
    told = {"files": files, "troubles": dict(world.troubles), "wall_s": round(time.monotonic() - began)}
    told["processor_s"] = round(seconds)
    return compare(world.expected(), found(spark, out)) | told


def main(arguments: list[str]) -> int:
    """Run and print one line of JSON; 1 if the tables are not those of the computation."""
    chosen = arguments_of(arguments)
    report: dict[str, Any] = {"seed": chosen.seed, "gateways": chosen.gateways, "days": chosen.days}
    with tempfile.TemporaryDirectory() as name, session("local[2]") as spark:
        if chosen.gateways:
            report |= trouble(spark, Path(name), chosen)
        if chosen.growth:
            measured = growth(spark, Path(name), chosen.growth, chosen.files)
            report["growth_s"] = {str(mark): round(cost.seconds, 2) for mark, cost in measured.items()}
            report["growth_files_read"] = {str(mark): cost.files for mark, cost in measured.items()}
            few, many = (measured[mark].seconds for mark in (min(chosen.growth), max(chosen.growth)))
            report["growth"] = round(many / few, 2)
        sizes = {name: size for name in SIZES if (size := vars(chosen)[name])}
        if sizes:
            made(spark, Path(name) / "first", 2, chosen.files)  # a first run compiles
        for measure, size in sizes.items():
            report[measure] = round(SIZES[measure](spark, Path(name), size), 2)
    print(json.dumps(report))
    return int(any(report.get(name) for name in ("wrong", "lost", "doubled")))
