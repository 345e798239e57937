"""The streaming query: each archived file once, the rows of each batch once.

    OUT/<rule>/batch=<number>   the rows of a rule, typed by its plan
    OUT/_checkpoint             Spark's: the files that were read, the state of all keys
    OUT/_rules.json             the rules that the states belong to

A batch that was interrupted runs again over the same files and states, so it gives the same rows.
Each part is one file, which is there as a whole or not at all, and one that is there is not written again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from cloud_sync.names import safe
from cloud_sync.spark.backfill import handover, slots
from cloud_sync.spark.backfill.rule_tables import by_gateway, check_columns, raw_events, typed
from cloud_sync.spark.backfill.rules import BackfillError, Sources, compiled
from cloud_sync.spark.session import is_connect
from cloud_sync.spark.storage import Storage, literal, open_storage, writing
from cloud_sync.spark.streaming import keying
from cloud_sync.spark.streaming.processor import FOUND_OF_KEY, EngineOfKey
from cloud_sync.spark.tables import nothing
from sql import Plan

FIXED_OF_KEY = ("key", "number", "at_ms", "kind", "reason", "rule_hash")
BINARY_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
}


class Pace(NamedTuple):
    """The number of files of a batch, whose events of one key a worker holds in memory;
    and how far, in ms, the time of keys without events stays behind the newest arrival,
    so that gateways that upload later still count."""

    files: int = 1_000
    delay_ms: int = 3_600_000


def stream(
    spark: SparkSession, sources: Sources, rules: Sequence[str], raw: str, out: str, zone: str, pace: Pace
) -> dict[str, int]:
    """Run the rules over the files that earlier runs have not read; the number of new rows of each. Raises
    BackfillError."""
    if is_connect(spark):
        raise BackfillError(
            "penstock cloud stream needs the driver of Spark; run it with spark-submit, not on Spark Connect"
        )
    storage, folder = open_storage(spark, out), raw_events(spark, raw)
    known = compiled(sources, zone)
    plans = {rule: known.rules[rule].plan for rule in rules}
    for rule in rules:
        check_columns(known.rules[rule], (*FIXED_OF_KEY, "batch"))
    _check_same(storage, handover.fingerprints(plans))
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    counts: Counter[str] = Counter(dict.fromkeys(rules, 0))

    def keep(found: DataFrame, batch: int) -> None:
        rows = found.persist()
        new = {row["rule"]: int(row["count"]) for row in rows.groupBy("rule").count().collect()}
        for rule in rules:
            if batch == 0 or rule in new:
                table = typed(rows.where(F.col("rule") == rule), plans[rule], FIXED_OF_KEY)
                _write_once(storage, table, f"{safe(rule)}/batch={batch:09}")
        rows.unpersist()
        counts.update(new)

    query = _rows(spark, sources, plans, folder.root, zone, pace)
    writer = query.writeStream.outputMode("append").option(
        "checkpointLocation", f"{storage.root}/_checkpoint"
    )
    writer.trigger(availableNow=True).foreachBatch(keep).start().awaitTermination()
    return dict(counts)


def _check_same(storage: Storage, rules: str) -> None:
    """Raises BackfillError if the states in OUT are those of other rules."""
    name = "_rules.json"
    content = json.dumps({"rules": rules}).encode()
    if not storage.create(name, content) and storage.read(name) != content:
        raise BackfillError(
            f"the states in {storage.root} are those of other rules, or of other versions of them; "
            "write into a new OUT"
        )


def _rows(
    spark: SparkSession, sources: Sources, plans: Mapping[str, Plan], raw: str, zone: str, pace: Pace
) -> DataFrame:
    """The rows of all rules (FOUND_OF_KEY, and the columns of `slots`), as a stream."""
    reader = spark.readStream.format("binaryFile").schema(BINARY_FILES)
    # Files older than `maxFileAge`, by default a week before the newest, would be ignored.
    settings = {"recursiveFileLookup": "true", "maxFilesPerTrigger": str(pace.files), "maxFileAge": "100000d"}
    files = by_gateway(reader.options(**settings).load(literal(raw))).select("gateway", "path", "content")
    schema = to_arrow_schema(nothing(spark, keying.KEYED).schema)
    run = partial(keying.run, tuple(sources), tuple(plans), zone, schema)
    # Spark drops rows that are behind the watermark: the clock's alone have the time that it goes by.
    events = files.mapInArrow(run, keying.KEYED).withColumn("clock", F.timestamp_millis("clock_ms"))
    keyed = events.withWatermark("clock", f"{pace.delay_ms} milliseconds").groupBy("rule", "key")
    columns = FOUND_OF_KEY + slots.definitions(plans.values())
    engine = EngineOfKey(tuple(sources), zone, columns)
    return keyed.transformWithState(engine, columns, "Append", "EventTime")


def _write_once(storage: Storage, table: DataFrame, path: str) -> None:
    if storage.read(f"{path}/_SUCCESS") is None:
        one = table.repartition(1).sortWithinPartitions("key", "number")
        with writing(storage, path) as folder:
            one.write.mode("overwrite").parquet(folder)
