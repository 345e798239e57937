"""The heartbeats of spools: read the new ones from the bucket, keep the newest of each spool as a table.

A run reads those that were written since the newest known one, so its cost follows the number of new ones.
The clock of the bucket against that of the gateway, when the file was written, is the gateway's clock offset
(and the time it took).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.names import HEARTBEATS_FOLDER, MANIFEST_SUFFIX, heartbeat_name
from cloud_sync.spark.storage import Storage, literal
from cloud_sync.spark.tables import nothing

COUNTED = ("highest_seq", "stored", "uploaded", "waiting", "set_aside", "dropped", "expired", "lost")
TOLD = ", ".join(f"{name} BIGINT" for name in COUNTED) + ", left_out ARRAY<ARRAY<BIGINT>>"
"""The counters of a heartbeat; `left_out` has pairs: the highest number that the other branch has told, and
the next one of the spool itself."""
HEARTBEATS = (
    f"name STRING, reason STRING, gateway STRING, spool STRING, at_ms BIGINT, arrived_ms BIGINT, {TOLD}"
)
"""The newest heartbeat of each spool. `left_out`: the sequence numbers that it has left out for another
branch of it (NULL in those of earlier versions and of spools without branches). A file that is no heartbeat
has only a `reason`, that of a gateway that was forgotten neither that nor a gateway."""
HEARTBEAT_BYTES_MAX = 64 << 10
OVERLAP_MS = 2_000
"""Files of the last interval of this length are read again: file systems may keep times in seconds."""


def new(spark: SparkSession, bucket: Storage, known: DataFrame) -> DataFrame:
    """The heartbeats in the bucket that were written since those known."""
    if not bucket.is_folder(HEARTBEATS_FOLDER):
        return nothing(spark, HEARTBEATS)
    since_ms = known.agg(F.max("arrived_ms")).collect()[0][0]
    files = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .option("ignoreMissingFiles", "true")
    )
    if since_ms is not None:
        files = files.option("modifiedAfter", _second(since_ms - OVERLAP_MS))
    found = files.load(literal(f"{bucket.root}/{HEARTBEATS_FOLDER}"))
    found = found.where(F.col("path").endswith(MANIFEST_SUFFIX))
    return _parsed(found).join(known.select("name", "arrived_ms"), ["name", "arrived_ms"], "left_anti")


def newest(known: DataFrame, new: DataFrame) -> DataFrame:
    """The newest heartbeat of each spool."""
    both = known.unionByName(new)
    found = both.groupBy("name").agg(F.max_by(F.struct(*both.columns), "arrived_ms").alias("newest"))
    return found.select("newest.*")


def forgotten(known: DataFrame, is_gone: Column) -> DataFrame:
    """The heartbeats without what those that are forgotten tell. Their names stay: only newer ones count."""
    stays = ~F.coalesce(is_gone, F.lit(False))
    told = [name for name in known.columns if name not in ("name", "arrived_ms")]
    return known.withColumns({name: F.when(stays, F.col(name)) for name in told})


def _second(instant_ms: int) -> str:
    """An instant in the form of the reader's option, in the session's time zone (UTC)."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(max(0, instant_ms) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _parsed(files: DataFrame) -> DataFrame:
    """One row per file: its heartbeat, or the reason why the file is not one."""
    schema = f"gateway STRING, spool STRING, at BIGINT, {TOLD}"
    text = F.when(F.col("length") <= HEARTBEAT_BYTES_MAX, F.col("content").cast("STRING"))
    placed = F.udf(_name, "STRING", useArrow=False)
    told = files.select(
        F.regexp_extract("path", f".*/({HEARTBEATS_FOLDER}/.*)$", 1).alias("name"),
        F.unix_millis("modificationTime").alias("arrived_ms"),
        F.from_json(text, schema).alias("told"),
    ).select("name", "arrived_ms", "told.*")
    numbers = ("at", *COUNTED)
    is_whole = F.expr(" AND ".join(f"coalesce({name}, -1) >= 0" for name in numbers))
    reason = F.when(~is_whole, F.lit("a number of the heartbeat is missing or below 0")).when(
        F.col("name") != F.coalesce(placed("gateway", "spool"), F.lit("")), F.lit("it lies at another place")
    )
    judged = told.withColumn("reason", reason)
    good = F.col("reason").isNull()
    said = {"gateway": "gateway", "spool": "spool", "at": "at_ms"}
    said |= {name: name for name in (*COUNTED, "left_out")}
    columns = [F.when(good, F.col(name)).alias(alias) for name, alias in said.items()]
    return judged.select("name", "reason", "arrived_ms", *columns)


def _name(gateway: str | None, spool: str | None) -> str | None:
    return heartbeat_name(gateway, spool) if gateway and spool else None
