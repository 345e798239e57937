"""The table of runs: what each of them took in, a row for each version."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cloud_sync.spark.ledger.metrics import RUN_COUNTERS
from cloud_sync.spark.tables import Part, Tables, local

RUNS = "run STRING, version BIGINT, at TIMESTAMP, " + ", ".join(f"{name} BIGINT" for name in RUN_COUNTERS)


def note(spark: SparkSession, tables: Tables, run: str, version: int, counted: Mapping[str, int]) -> Part:
    """Write the row of a run; its part."""
    row = (run, version, *(counted[name] for name in RUN_COUNTERS))
    frame = local(spark, [row], RUNS.replace("at TIMESTAMP, ", ""))
    part = Part(f"runs/run={run}", 1)
    tables.write(
        frame.select("run", "version", F.current_timestamp().alias("at"), *RUN_COUNTERS).coalesce(1),
        part.path,
    )
    return part
