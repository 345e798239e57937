"""Rows that the other branch of a restored spool has stored after its last heartbeat.

A spool that was restored from an older copy counts in its heartbeats the rows that the other branch had told
of in its own last one. Later rows of that branch have sequence numbers that the spool has left out. If a row
with one of these has arrived, all numbers up to it belong to rows; numbers behind it are unknown.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.spark.ledger import files
from cloud_sync.spark.tables import Tables, local, nothing

UNTOLD = "gateway STRING, spool STRING, untold BIGINT"


def untold(spark: SparkSession, tables: Tables, beats: DataFrame) -> DataFrame:
    """By gateway and spool: the number of rows (`untold`) that another branch has stored after the last
    heartbeat of its own. `beats` are rows of HEARTBEATS; files of spools that have left out nothing are not
    read."""
    listed = beats.where("left_out IS NOT NULL").select("gateway", "spool", "left_out").collect()
    ranges = [
        (row["gateway"], row["spool"], *pair) for row in listed for pair in row["left_out"] if len(pair) == 2
    ]
    if not ranges:
        return nothing(spark, UNTOLD)
    left = local(spark, ranges, "gateway STRING, spool STRING, after BIGINT, before BIGINT")
    found = files.read(tables, tables.current()).join(F.broadcast(left), ["gateway", "spool"])
    highest = found.where("last_seq > after AND last_seq < before").groupBy("gateway", "spool", "after")
    each = highest.agg((F.max("last_seq") - F.col("after")).alias("untold"))
    return each.groupBy("gateway", "spool").agg(F.sum("untold").alias("untold"))
