"""Raw events in, a typed table for each rule out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.declaration import rule_hash
from cloud_sync.names import safe
from cloud_sync.spark.backfill import handover, slots, worker
from cloud_sync.spark.backfill.row_writer import FOUND
from cloud_sync.spark.backfill.rules import BackfillError, Sources, compiled
from cloud_sync.spark.backfill.shares import shared
from cloud_sync.spark.storage import Storage, literal, open_storage, writing
from rules.compiled import CompiledRule
from sql import Plan

RAW_FILE = ("gateway", "path", "length", "content")
FIXED = ("gateway", "number", "at_ms", "kind", "reason", "is_open", "rule_hash")


class Cut(NamedTuple):
    """The place of a backfill between others: it goes on `after` the one with this OUT;
    `is_open`: another one will go on after it, so that windows stay open at its end,
    and the states are kept."""

    after: str | None = None
    is_open: bool = False


UNCUT = Cut()


def backfill(
    spark: SparkSession,
    sources: Sources,
    rules: Sequence[str],
    raw: str,
    out: str,
    zone: str,
    cut: Cut = UNCUT,
) -> dict[str, int]:
    """Run the rules over the raw events and write one Parquet folder for each, `OUT/<rule>`; the number of
    rows of each rule.

    OUT must not exist. Raises BackfillError.
    """
    storage = open_storage(spark, out)
    if storage.is_folder(""):
        raise BackfillError(f"{out} exists; a backfill writes into a new folder")
    known = compiled(sources, zone)
    for rule in rules:
        check_columns(known.rules[rule], FIXED)
    found = rows(spark, sources, rules, raw, zone, cut)
    is_read_again = cut.is_open or len(rules) > 1
    if is_read_again:
        found.persist()
    counts = {}
    for rule in rules:
        table = typed(found.where(F.col("rule") == rule), known.rules[rule].plan)
        with writing(storage, safe(rule)) as path:
            table.write.parquet(path)  # in order: whole gateways in a partition, rows of each by number
        counts[rule] = spark.read.schema(table.schema).parquet(literal(path)).count()
    if cut.is_open:
        handover.write(found, storage.root)
    if is_read_again:
        found.unpersist()
    return counts


def check_columns(rule: CompiledRule, fixed: Iterable[str]) -> None:
    """Raises BackfillError if the SELECT has a column that the table has beside it."""
    if taken := {*(rule.plan.output_columns or ())} & {*fixed}:
        raise BackfillError(
            f"{rule.path}: rule {rule.id} has a column '{min(taken)}', "
            "which each row of its table has anyway; rename it with AS"
        )


def rows(
    spark: SparkSession, sources: Sources, rules: Sequence[str], raw: str, zone: str, cut: Cut = UNCUT
) -> DataFrame:
    """The rows of all rules (FOUND, and the columns of `slots`), by gateway and number in each partition."""
    storage = raw_events(spark, raw)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")  # a batch is one file
    known = compiled(sources, zone).rules
    plans = {rule: known[rule].plan for rule in rules}
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(literal(storage.root))
    named = by_gateway(files).select(*RAW_FILE)
    if cut.after is not None:
        states = handover.states_of(spark, cut.after, plans)
        paths, named = handover.after(by_gateway(files), states)
        if paths:
            new = spark.read.format("binaryFile").load([literal(path) for path in paths])
            named = named.unionByName(by_gateway(new).select(*RAW_FILE))
    sorted_files = shared(spark, named).sortWithinPartitions("gateway", "path")
    run = partial(worker.run, tuple(sources), tuple(rules), zone, cut.is_open)
    return sorted_files.mapInArrow(run, FOUND + slots.definitions(plans.values()))


def raw_events(spark: SparkSession, raw: str) -> Storage:
    """The folder of raw events, or that of one gateway. Raises BackfillError if it is none."""
    storage = open_storage(spark, raw)
    if not any(name.startswith("gw=") for name in [*storage.root.split("/"), *storage.names("")]):
        found = "has no folder gw=<gateway>" if storage.is_folder("") else "is no folder"
        raise BackfillError(f"{raw} {found}; give the path of raw events, such as BUCKET/v2-archive")
    return storage


def by_gateway(files: DataFrame) -> DataFrame:
    """Files with the folder of their gateway, and their name below it."""
    below = "/gw=([^/]*)/(.*)$"
    parts = {"gateway": F.regexp_extract("path", below, 1), "name": F.regexp_extract("path", below, 2)}
    return files.withColumns(parts)


def typed(found: DataFrame, plan: Plan, fixed: Sequence[str] = FIXED) -> DataFrame:
    """The rows of one rule with the columns of its SELECT behind the `fixed` ones;
    one column `row` of JSON if the messages decide the columns."""
    # A record that is no event has no instant. Every rule's table lists it, without the hash of the rule.
    of_rule = F.when(F.col("at_ms").isNotNull(), F.lit(rule_hash(plan.text)))
    return found.withColumn("rule_hash", of_rule).select(*fixed, *slots.selected(plan))
