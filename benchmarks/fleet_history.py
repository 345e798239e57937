"""A bucket and tables as thousands of earlier runs of the cloud job have left them, written in a few runs.

The files are those of the earlier runs, and the job itself takes them in, thousands at once.
The parts of the tables are then divided into those that a run for each batch would have written:
the records of each batch on their own, and the lists of files and runs in the tiers of `tables.full_tier`.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fleet_growth import HOUR_MS, START_MS, Cost, Plant, medians
from cloud_sync.spark import job
from cloud_sync.spark.ledger.files import ORDER
from cloud_sync.spark.tables import KEPT_VERSIONS, VERSIONS_FOLDER, Part, Version, decode, encode, full_tier

FILES_PER_BATCH = 20_000


def growth(spark: Any, folder: Path, marks: Sequence[int], files: int) -> dict[int, Cost]:
    """The cost of a run with so many new files after so many batches: the median of some runs."""
    made(spark, folder / "warm", 2, files)
    plants = {mark: made(spark, folder / str(mark), mark, files) for mark in marks}
    return medians({mark: (plant, partial(_next_hour, plant, mark, files)) for mark, plant in plants.items()})


def _next_hour(plant: Plant, batches: int, files: int, number: int) -> None:
    upload_hour(plant, batches + number, files)


def made(spark: Any, folder: Path, batches: int, files: int) -> Plant:
    """A plant after so many batches of so many files, each batch an hour of as many gateways."""
    plant = Plant(spark, folder)
    for hour in range(batches):
        upload_hour(plant, hour, files)
    _take_in(plant)
    _divide(folder / "out", batches, files)
    return plant


def _take_in(plant: Plant) -> None:
    """One run of the job, with large batches."""
    options = job.Options(lambda: plant.now_ms, files_per_batch=FILES_PER_BATCH)
    job.aggregate(plant.spark, str(plant.folder / "bucket"), str(plant.folder / "out"), options)


def upload_hour(plant: Plant, hour: int, files: int) -> None:
    """A file of one row from each gateway, in the hour after."""
    plant.now_ms = START_MS + (hour + 1) * HOUR_MS
    for gateway in range(files):
        plant.upload(f"gw{gateway}", [START_MS + hour * HOUR_MS])


def _divide(out: Path, batches: int, files: int) -> None:
    """Write the newest version anew, as the last of so many."""
    newest = max((out / VERSIONS_FOLDER).glob("*.json"))
    version = decode(newest.read_bytes())
    for key, paths in version.records.items():
        version.records[key] = _by_start(out, key, paths)
    version.files = _in_tiers(out, "files", version.files, [files] * batches, ORDER)
    version.runs = _in_tiers(out, "runs", version.runs * batches, [1] * batches)
    shutil.rmtree(out / VERSIONS_FOLDER)
    (out / VERSIONS_FOLDER).mkdir()
    for number in range(max(1, batches - KEPT_VERSIONS + 1), batches + 1):
        _keep(out, version, number)


def _keep(out: Path, version: Version, number: int) -> None:
    version.number = number
    (out / VERSIONS_FOLDER / f"{number:012}.json").write_bytes(encode(version))


def _by_start(out: Path, key: str, paths: Sequence[str]) -> list[str]:
    """The records of a partition as a part for each start of a window."""
    import pyarrow.compute as pc

    table, parts = _read(out, paths), []
    for start in pc.unique(table["window_start"]).to_pylist():
        parts.append(f"records/run={start}/{key}")
        _write(out, parts[-1], table.filter(pc.equal(table["window_start"], start)))
    return parts


def _in_tiers(
    out: Path, name: str, parts: Sequence[Part], added: Sequence[int], order: Sequence[str] = ()
) -> list[Part]:
    """A list as the parts that are left when so many rows, in this order, were added by one run
    after another."""
    table, first = _read(out, [part.path for part in parts]), 0
    if order:
        table = table.sort_by([(name, "ascending") for name in order])
    left = _left(name, added)
    for part in left:
        _write(out, part.path, table.slice(first, part.rows))
        first += part.rows
    return left


def _left(name: str, added: Sequence[int]) -> list[Part]:
    parts: list[Part] = []
    for number, rows in enumerate(added):
        parts.append(Part(f"{name}/run=history{number}", rows))
        if tier := full_tier(parts):
            kept = [part for part in parts if part not in tier]
            parts = [*kept, Part(f"{name}/run=history{number}/whole", sum(part.rows for part in tier))]
    return parts


def _read(out: Path, paths: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa.concat_tables(pq.read_table(out / path, partitioning=None) for path in paths)


def _write(out: Path, path: str, table: Any) -> None:
    import pyarrow.parquet as pq

    (out / path).mkdir(parents=True, exist_ok=True)
    pq.write_table(table, out / path / "part-0.snappy.parquet", write_page_index=True)
