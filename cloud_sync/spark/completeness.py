"""Freshness and completeness: which gateways are silent, missing rows, sending twice or skewed,
and which windows are final.

A gateway is silent if its newest sign of life is older than the newest of the fleet by `SILENT_MS`;
ages count from there, not from the clock of this machine. A window that ends after the run that took it in
counts from that run: the clock of its gateway is ahead. That is no reason to call the others silent, nor to
call the gateway itself alive when it sends no more.
A window is final once every gateway of its rule that is not silent has uploaded rows up to its end.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.spark import fleet as states
from cloud_sync.spark import view
from cloud_sync.spark.ledger import spools
from cloud_sync.spark.tables import Tables, open_tables

SILENT_MS = 2 * 3_600_000
"""Two heartbeats."""
SKEW_MS = 60_000
"""A gateway's clock is skewed if a heartbeat, when it arrives, is older or newer than this."""


def gateways(spark: SparkSession, out: str) -> DataFrame:
    """`view.gateways` with `alive_ms`, the newest sign of life (the end of a window, or a heartbeat),
    `behind_ms`, its distance from the fleet's newest, and `state`, a list of the words silent,
    missing, duplicate, conflicting and skewed."""
    listed_ms = open_tables(spark, out).current().listed_ms
    seen = F.unix_millis("taken"), F.lit(listed_ms or None).cast("BIGINT")
    last = F.least(F.unix_millis("last"), *seen)
    signs = [F.coalesce(sign, F.lit(0)) for sign in (last, F.unix_millis("heartbeat"))]
    found = view.gateways(spark, out).withColumn("alive_ms", F.greatest(*signs))
    newest = found.agg(F.max("alive_ms").alias("newest_ms"))
    both = found.crossJoin(F.broadcast(newest)).withColumn("behind_ms", F.expr("newest_ms - alive_ms"))
    holds = {
        "silent": F.col("behind_ms") > SILENT_MS,
        "missing": F.col("missing") > 0,
        "duplicate": F.col("duplicates") > 0,
        "conflicting": F.col("conflicting") > 0,
        "skewed": F.abs("clock_behind_ms") > SKEW_MS,
    }
    words = F.array(*(F.when(condition, F.lit(word)) for word, condition in holds.items()))
    return both.withColumn("state", F.array_compact(words)).drop("newest_ms")


def reached(spark: SparkSession, tables: Tables) -> DataFrame:
    """By rule and gateway that is not silent: `until_ms`,
    the end of the newest window that it has uploaded."""
    live = gateways(spark, tables.storage.root).where("NOT array_contains(state, 'silent')").select("gateway")
    newest = spools.summed(spools.read(tables, tables.current()), "rule", "gateway").select(
        "rule", "gateway", F.col("last_ms").alias("until_ms")
    )
    return newest.join(live.distinct(), "gateway", "left_semi")


def windows(spark: SparkSession, out: str, rule: str, level: str | None = None) -> DataFrame:
    """The fleet windows of a rule: level, window_start, window_end, `gateways` that contributed,
    `waiting_for`, the number of gateways that are not silent and have not uploaded up to its end,
    and `is_final`: there are none."""
    tables = open_tables(spark, out)
    rows = tables.read(view.paths(tables.current(), rule, level), states.FLEET)
    found = rows.groupBy("level", "window_start", "window_end", "end_ms").agg(
        F.size(F.array_distinct(F.flatten(F.collect_list("gateways")))).alias("gateways")
    )
    at = (
        reached(spark, tables)
        .where(F.col("rule") == rule)
        .groupBy("until_ms")
        .agg(F.count("*").alias("some"))
    )
    behind = found.select("end_ms").distinct().join(F.broadcast(at), F.col("until_ms") < F.col("end_ms"))
    waiting = behind.groupBy("end_ms").agg(F.sum("some").alias("some"))
    told = found.join(waiting, "end_ms", "left").withColumn("waiting_for", F.coalesce("some", F.lit(0)))
    return told.withColumn("is_final", F.col("waiting_for") == 0).drop("end_ms", "some")
