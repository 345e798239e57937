"""The fleet as a Delta table, for readers that know Delta and not this package: OUT/delta/fleet.

The versions in OUT remain authoritative. After a run one MERGE brings the Delta table to the newest version,
in the partitions that differ from the version it was at; rows that did not change are not written. MERGE is
atomic, and it compares: a run that was killed before it noted its version only does it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from cloud_sync.spark.fleet import FLEET, GROUP, PARTITION, partition
from cloud_sync.spark.tables import Tables, values_in, version_at

if TYPE_CHECKING:
    from cloud_sync.spark.tables import Version

DELTA_FOLDER = "delta/fleet"
NOTED_FOLDER = "_delta"
"""A file in this folder names the version that the Delta table is at."""


def publish(spark: SparkSession, tables: Tables) -> int:
    """Bring the Delta table to the newest version; the number of partitions that differed."""
    from delta.tables import DeltaTable

    version = tables.current()
    path = f"{tables.storage.root}/{DELTA_FOLDER}"
    is_there = DeltaTable.isDeltaTable(spark, path)
    noted = max((int(name) for name in tables.storage.names(NOTED_FOLDER)), default=0) if is_there else 0
    if noted == version.number:
        return 0
    before = version_at(tables.storage, noted) if noted else None
    keys = _differing(before, version)
    source = _rows(tables, [key for key in keys if key in version.fleet], version)
    if not is_there:
        source.write.format("delta").partitionBy(*PARTITION).save(path)
    elif keys:
        within = _within(keys) if before is not None else "true"
        same = " AND ".join(f"t.{name} = s.{name}" for name in (*PARTITION, *GROUP))
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), f"({within}) AND {same}")
        changed = merge.whenMatchedUpdateAll("t.run <> s.run").whenNotMatchedInsertAll()
        changed.whenNotMatchedBySourceDelete(within).withSchemaEvolution().execute()
    tables.storage.create(f"{NOTED_FOLDER}/{version.number:012}", b"")
    for name in tables.storage.names(NOTED_FOLDER):
        if int(name) < version.number:
            tables.storage.delete(f"{NOTED_FOLDER}/{name}")
    return len(keys)


def _differing(before: Version | None, after: Version) -> list[str]:
    """The partitions that were written, added or dropped between two versions; all of them if
    the first is unknown."""
    old = before.fleet if before is not None else {}
    return sorted(key for key in {*old, *after.fleet} if old.get(key) != after.fleet.get(key))


def _rows(tables: Tables, keys: Iterable[str], version: Version) -> DataFrame:
    """The rows of some partitions, without their states, with the columns that partition the table."""
    rows = tables.read([version.fleet[key] for key in keys], FLEET).drop("state")
    return rows.withColumns(partition())


def _within(keys: Iterable[str]) -> str:
    """A condition that holds in these partitions of the table t; their values are safe in SQL text."""
    days: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in keys:
        rule, level, day = values_in(key)
        days[rule, level].append(f"'{day}'")
    return " OR ".join(
        f"(t.of_rule = '{rule}' AND t.of_level = '{level}' AND t.of_day IN ({', '.join(listed)}))"
        for (rule, level), listed in days.items()
    )
