"""Records about windows that differ: heartbeats, quarantine, late events, and gateways without raw events."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.declaration import CloudSettings
from cloud_sync.names import safe
from cloud_sync.spark import view
from cloud_sync.spark.tables import Tables
from sql import Plan

WINDOW = ("gateway", "window_start", "window_end", "keys")
"""The columns that identify a window of a rule on its gateway."""
ABSENT = ("missing", "waiting", "set_aside", "dropped", "expired", "lost")
IN_PATH = r"^v\d+/gw=([^/]*)/rule=([^/]*)/date=([^/]*)/"
"""The folders of gateway, rule and day of a data file."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One rule: its plan, its cloud action, the tables with its records, and the rows of its backfill."""

    tables: Tables
    rule: str
    plan: Plan
    settings: CloudSettings
    rows: DataFrame


def with_evidence(spark: SparkSession, subject: Subject, differing: DataFrame) -> DataFrame:
    """Windows that differ, with what is known of their gateway (`spool`, NULL if nothing),
    of the files of their day in quarantine (`bad`), of late events (`late`),
    and whether the backfill has rows of the gateway (`is_backfilled`)."""
    out = subject.tables.storage.root
    day = F.coalesce(F.col("edge.day"), F.col("backfilled.day"))
    known = differing.withColumns({"day": day, "folder": F.udf(safe, "STRING", useArrow=False)("gateway")})
    seen = subject.rows.select("gateway").distinct().withColumn("is_backfilled", F.lit(True))
    joined = known.join(_spools(spark, out), "gateway", "left").join(seen, "gateway", "left")
    joined = joined.join(_quarantined(spark, out, subject.rule), ["folder", "day"], "left")
    return joined.join(_late(subject, differing), list(WINDOW), "left")


def _spools(spark: SparkSession, out: str) -> DataFrame:
    """By gateway: the counters of all its spools, and the number of its heartbeats."""
    counters = [F.sum(name).alias(name) for name in ABSENT]
    told = F.struct(*counters, F.count("heartbeat").alias("heartbeats"))
    return view.gateways(spark, out).groupBy("gateway").agg(told.alias("spool"))


def _quarantined(spark: SparkSession, out: str, rule: str) -> DataFrame:
    """By folder of the gateway and day: why a file of the rule does not count."""
    places = ((1, "folder"), (2, "of"), (3, "day"))
    found = view.quarantine(spark, out).select(
        *(F.regexp_extract("file", IN_PATH, at).alias(name) for at, name in places), "reason"
    )
    return found.where(F.col("of") == safe(rule)).groupBy("folder", "day").agg(F.min("reason").alias("bad"))


def _late(subject: Subject, differing: DataFrame) -> DataFrame:
    """The number of late events of the backfill in each window that differs and has some."""
    fields = F.from_json("reason", "MAP<STRING, STRING>")
    instant = F.try_element_at(fields, F.lit(subject.plan.timestamp)).try_cast("BIGINT")
    late = subject.rows.where("kind = 'late'").select(F.col("gateway").alias("of"), instant.alias("at"))
    is_in = F.col("at").between(F.col("window_start"), F.col("window_end") - 1)
    both = differing.select(*WINDOW).join(late, (F.col("gateway") == F.col("of")) & is_in)
    return both.groupBy(*WINDOW).agg(F.count("*").alias("late"))
