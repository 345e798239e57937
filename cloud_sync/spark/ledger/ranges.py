"""The files that may share a record with new ones: those of the same spool and rule with sequence numbers in
the same range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cloud_sync.spark.ledger import files, spools
from cloud_sync.spark.tables import Tables, Version, local

ORIGIN = ("gateway", "spool", "rule")
RANGES = "gateway STRING, spool STRING, rule STRING, low BIGINT, high BIGINT, name STRING"
GATEWAYS_MAX = 10
"""Of more values than this Spark asks Parquet for the least and the greatest only."""


def overlapping(spark: SparkSession, tables: Tables, version: Version, new: Sequence[Any]) -> list[Any]:
    """The days that may hold a record of some new files (rows with manifest, origin and range), by rule:
    `rule_id`, `day`, and `again`, the name of a new file that the table of files has already."""
    if not version.files:
        return []
    columns = (*ORIGIN, "first_seq", "last_seq", "manifest")
    ranges = local(spark, [tuple(row[name] for name in columns) for row in new], RANGES)
    # Most files lie behind all that their spool has uploaded; the others are looked for among all files.
    reached = spools.read(tables, version).select(*ORIGIN, "highest_seq")
    within = ranges.join(reached, [*ORIGIN]).where("low <= highest_seq").drop("highest_seq").collect()
    if not within:
        return []
    old = files.read(tables, version)
    gateways = {row["gateway"] for row in within}
    if len(gateways) <= GATEWAYS_MAX:
        old = old.where(F.col("gateway").isin(gateways))
    both = old.join(F.broadcast(local(spark, within, RANGES)), [*ORIGIN])
    found = both.where("first_seq <= high AND low <= last_seq")
    again = F.when(F.col("manifest") == F.col("name"), F.col("name")).alias("again")
    return found.select("rule_id", "day", again).distinct().collect()
