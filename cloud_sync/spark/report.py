"""`penstock cloud report OUT`: the state of a fleet's uploads, as one static page without scripts.

Rules with the age of their newest window, gateways (silent ones first) with missing sequence numbers, files
in quarantine, and the newest runs. Ages count from the newest window or heartbeat of the whole fleet, not
from the clock of this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from cloud_sync.spark import completeness, fleet, view
from cloud_sync.spark.ledger.runs import RUNS
from cloud_sync.spark.storage import open_storage
from cloud_sync.spark.tables import Tables, Version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTED_MAX = 1_000
"""The most rows of a table of the page; the page gives the number of the others."""
RULE_COLUMNS = ("rule", "level", "days", "newest", "records", "gateways", "of", "final until")
GATEWAY_COLUMNS = (
    "gateway",
    "spool",
    "rows",
    "held",
    "duplicates",
    "conflicting",
    "highest_seq",
    "missing",
    "waiting",
    "set_aside",
    "dropped",
    "expired",
    "lost",
    "first",
    "last",
    "taken",
    "heartbeat",
    "clock_behind_ms",
    "silent for",
    "state",
)
BAD_COLUMNS = frozenset(
    {"missing", "quarantined", "conflicting", "dropped", "expired", "lost", "held", "silent for", "state"}
)
"""Columns in which a number above 0 or a text is highlighted."""

STYLE = (
    "body{font:14px system-ui;margin:2em;max-width:75em}table{border-collapse:collapse;margin:.5em 0 2em}"
    "td,th{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:left}"
    "td.n{text-align:right}.bad{color:#b00}"
)


def page(spark: SparkSession, out: str) -> str:
    """The page as HTML."""
    tables = Tables(spark, open_storage(spark, out))
    version = tables.current()
    states = completeness.gateways(spark, out).orderBy("alive_ms", "gateway").collect()
    gateways = [_in_words(row.asDict()) for row in states]
    rules = _rules(spark, tables, len({row["gateway"] for row in gateways}))
    bad = view.quarantine(spark, out).select("file", "reason").orderBy("file").limit(LISTED_MAX + 1).collect()
    runs = (
        tables.read([part.path for part in version.runs], RUNS).orderBy("version", ascending=False).limit(20)
    )
    return "".join(
        [
            f"<!doctype html><html lang=en><meta charset=utf-8><title>Fleet</title><style>{STYLE}</style>",
            f"<h1>Fleet, version {version.number}</h1>",
            _table("Rules", RULE_COLUMNS, rules),
            _table("Gateways", GATEWAY_COLUMNS, gateways),
            _table(
                "Checks that rows break",
                ("rule", "check", "outcome", "rows", "gateways"),
                _checks(spark, out),
            ),
            _table("Files that do not count", ("file", "reason"), [row.asDict() for row in bad]),
            _table("Newest runs", tuple(runs.columns), [row.asDict() for row in runs.collect()]),
        ]
    )


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """A gateway with its state in words."""
    silent = _length(row["behind_ms"]) if "silent" in row["state"] else ""
    return row | {"silent for": silent, "state": ", ".join(row["state"])}


def _checks(spark: SparkSession, out: str) -> list[dict[str, Any]]:
    found = view.checks(spark, out).groupBy("rule", "check", "outcome")
    told = found.agg(F.sum("rows").alias("rows"), F.count_distinct("gateway").alias("gateways"))
    return [row.asDict() for row in told.orderBy("rule", "check").collect()]


def _rules(spark: SparkSession, tables: Tables, known: int) -> list[dict[str, Any]]:
    """One row per rule and level: the number of `days` with windows, `records` and `gateways` (of so many)
    of the newest window, and until when windows are final. Of each level only the newest day is read."""
    until = completeness.reached(spark, tables).groupBy("rule").agg(F.min("until_ms").alias("until_ms"))
    final = until.select("rule", F.timestamp_millis("until_ms").alias("final until"))
    days = _days(tables.current())
    windows = tables.read([path for _, path in days.values()], fleet.FLEET)
    each = windows.groupBy("rule", "rule_id", "level", "start_ms", "window_start").agg(
        F.sum("records").alias("records"),
        F.size(F.array_distinct(F.flatten(F.collect_list("gateways")))).alias("gateways"),
    )
    shown = F.struct(F.col("window_start").alias("newest"), "records", "gateways")
    newest = each.groupBy("rule", "rule_id", "level").agg(F.max_by(shown, "start_ms").alias("of"))
    found = newest.select("rule", "rule_id", "level", "of.*").join(final, "rule", "left")
    return [
        row.asDict() | {"days": days[row["rule_id"], row["level"]][0], "of": known}
        for row in found.orderBy("rule", "level").collect()
    ]


def _days(version: Version) -> dict[tuple[str, str], tuple[int, str]]:
    """By rule id and level: the number of days that have windows, and the part with those of the newest."""
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for key, path in sorted(version.fleet.items()):
        rule_id, level, _ = (part.partition("=")[2] for part in key.split("/"))
        number, _ = found.get((rule_id, level), (0, ""))
        found[rule_id, level] = number + 1, path
    return found


def _table(title: str, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(_cells(row, columns))}</tr>" for row in rows[:LISTED_MAX])
    more = f"<p>and {len(rows) - LISTED_MAX} more</p>" if len(rows) > LISTED_MAX else ""
    return f"<h2>{escape(title)} ({len(rows)})</h2><table><tr>{head}</tr>{lines}</table>{more}"


def _cells(row: dict[str, Any], columns: Sequence[str]) -> Iterable[str]:
    for name in columns:
        value = row[name]
        is_bad = name in BAD_COLUMNS and value
        kind = " class=bad" if is_bad else " class=n" if isinstance(value, int) else ""
        yield f"<td{kind}>{escape('' if value is None else str(value))}</td>"


def _length(duration_ms: int) -> str:
    hours = duration_ms // 3_600_000
    return f"{hours // 24}d{hours % 24}h" if hours >= 24 else f"{hours}h"
