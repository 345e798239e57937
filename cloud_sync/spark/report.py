"""`penstock cloud report OUT`: the state of a fleet's uploads, as one static page without scripts.

Rules with their newest window, what their columns were and are, gateways (silent ones first) with missing
sequence numbers, those whose rows are too old, files in quarantine, and the newest runs. Ages count from the
newest window or heartbeat of the whole fleet, or from the last run, not from the clock of this machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from cloud_sync.names import utc_date
from cloud_sync.schemas import Schema, versions
from cloud_sync.spark import completeness, fleet, quality, view
from cloud_sync.spark.ledger.runs import RUNS
from cloud_sync.spark.tables import Tables, Version, open_tables, values_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTED_MAX = 1_000
"""The most rows of a table of the page; the page gives the number of the others."""
VERSION_COLUMNS = ("rule", "version", "rule_hash", "levels", "keys", "columns", "in newest window")
LATE_COLUMNS = ("rule", "gateway", "behind", "outcome")
RULE_COLUMNS = ("rule", "level", "days", "newest", "records", "gateways", "of", "final until")
BAD_COLUMNS = frozenset(
    {
        *("missing", "quarantined", "conflicting", "dropped", "expired", "lost", "held"),
        *("silent for", "state", "behind"),
    }
)
"""Columns in which a number above 0 or a text is highlighted."""

INSTANTS = frozenset({"newest", "final until", "first", "last", "taken", "heartbeat", "at"})
"""Columns with milliseconds since the epoch."""
NOTES = {
    "Columns of the rules": "Two versions of a rule in its newest window: gateways run both.",
    "Gateways": "silent: no window and no heartbeat for two hours. missing: uploaded rows that are not in "
    "the tables, see the files that do not count. skewed: the clock is off, set it. conflicting: the disk "
    "was copied, give the gateway that runs on the copy a gateway.id of its own. One that was taken down: "
    "penstock cloud forget OUT GATEWAY --keep-records",
    "Rows older than `freshness` allows": "As of the newest run. See that these gateways run and upload; of "
    "a rule that was removed or renamed: penstock cloud forget OUT --rule RULE --keep-records",
    "Files and rows that do not count": "A file that is put back, or whose manifest or schema arrives, "
    "counts in the next run. Rows that break a check stay in their file.",
}
"""What follows from the rows of a table, by its title."""

STYLE = (
    "body{font:14px system-ui;margin:2em;max-width:75em}table{border-collapse:collapse;margin:.5em 0 2em}"
    "td,th{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:left}"
    "td.n{text-align:right}.bad{color:#b00}"
)


def page(spark: SparkSession, out: str) -> str:
    """The page as HTML."""
    tables = open_tables(spark, out)
    version = tables.current()
    states = completeness.gateways(spark, out).withColumns(
        {name: _instant(name) for name in ("first", "last", "taken", "heartbeat")}
    )
    order = F.array_contains("state", "silent").desc(), (F.size("state") > 0).desc(), "alive_ms", "gateway"
    gateways = [_in_words(row.asDict()) for row in states.orderBy(*order).collect()]
    columns = [name for name in states.columns if name not in ("alive_ms", "behind_ms", "state")]
    rules = _rules(spark, tables, len({row["gateway"] for row in gateways}))
    # Files without a single row that counts come before those in which a check keeps some out.
    bad = view.quarantine(spark, out).orderBy(F.isnull("manifest"), "file").select("file", "reason")
    runs = tables.read(version.runs, RUNS).withColumn("at", _instant("at"))
    runs = runs.orderBy("version", ascending=False).limit(20)
    return "".join(
        [
            f"<!doctype html><html lang=en><meta charset=utf-8><title>Fleet</title><style>{STYLE}</style>",
            f"<h1>Fleet, version {version.number}</h1><p>Times are UTC.</p>",
            _table("Rules", RULE_COLUMNS, rules),
            _table("Columns of the rules", VERSION_COLUMNS, _versions(tables, version, rules)),
            _table("Gateways", [*columns, "silent for", "state"], gateways),
            _table("Rows older than `freshness` allows", LATE_COLUMNS, _late(spark, tables, version)),
            _table(
                "Checks that rows break",
                ("rule", "check", "outcome", "rows", "gateways"),
                _checks(spark, out),
            ),
            _table(
                "Files and rows that do not count",
                ("file", "reason"),
                [row.asDict() for row in bad.limit(LISTED_MAX + 1).collect()],
            ),
            _table("Newest runs", tuple(runs.columns), [row.asDict() for row in runs.collect()]),
        ]
    )


def _instant(name: str) -> Column:
    """An instant in milliseconds: as a timestamp Python would have it in the time zone of this machine."""
    return F.unix_millis(name)


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """A gateway with its state in words."""
    silent = _length(row["behind_ms"]) if "silent" in row["state"] else ""
    return row | {"silent for": silent, "state": ", ".join(row["state"])}


def _late(spark: SparkSession, tables: Tables, version: Version) -> list[dict[str, Any]]:
    """The gateways that were behind at the last run, the latest first."""
    found = quality.freshness(spark, tables, version.listed_ms)
    listed = found.orderBy(F.desc("behind_ms"), "rule", "gateway").limit(LISTED_MAX + 1).collect()
    return [row.asDict() | {"behind": _length(row["behind_ms"])} for row in listed]


def _versions(tables: Tables, version: Version, rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per schema of a rule that has windows, in the order in which they appeared: the version of the
    rule's table that it belongs to, its columns as `view.fleet` names them, and whether rows of it are in a
    newest window. Several are where gateways run several versions of the rule."""
    used: dict[str, set[str]] = {}
    for row in rules:
        used.setdefault(row["rule_id"], set()).update(row["rule_hashes"])
    return [
        line
        for rule_id in sorted(used.keys() & version.schemas)
        for line in _schemas(quality.schemas_of(tables, version, rule_id), used[rule_id])
    ]


def _schemas(schemas: Sequence[Schema], used: Collection[str]) -> Iterable[dict[str, Any]]:
    """The rows of `_versions` for the schemas of one rule."""
    parts = {view.Meaning(*value[:3]) for schema in schemas for value in schema.values}
    parts |= {view.Meaning(key.name, "key", "text") for schema in schemas for key in schema.keys}
    names = view.column_names(sorted(parts))
    for schema, number in zip(schemas, versions(schemas), strict=True):
        yield {
            "rule": schema.rule,
            "version": number,
            "rule_hash": schema.rule_hash,
            "levels": ", ".join(schema.windows),
            "keys": ", ".join(names[view.Meaning(key.name, "key", "text")] for key in schema.keys),
            "columns": ", ".join(
                f"{names[view.Meaning(*value[:3])]}: {value.merge} {value.type}" for value in schema.values
            ),
            "in newest window": "yes" if schema.rule_hash in used else "",
        }


def _checks(spark: SparkSession, out: str) -> list[dict[str, Any]]:
    found = view.checks(spark, out).groupBy("rule", "check", "outcome")
    told = found.agg(F.sum("rows").alias("rows"), F.count_distinct("gateway").alias("gateways"))
    return [row.asDict() for row in told.orderBy("rule", "check").collect()]


def _rules(spark: SparkSession, tables: Tables, known: int) -> list[dict[str, Any]]:
    """One row per rule and level: the number of `days` with windows, `records`, `gateways` (of so many) and
    `rule_hashes` of the newest window, and until when windows are final. Of each level only the newest day is
    read."""
    until = completeness.reached(spark, tables).groupBy("rule").agg(F.min("until_ms").alias("until_ms"))
    final = until.select("rule", F.col("until_ms").alias("final until"))
    version = tables.current()
    days = _days(version)
    windows = tables.read([path for _, path in days.values()], fleet.FLEET)
    each = windows.groupBy("rule", "rule_id", "level", "start_ms", "window_start").agg(
        F.sum("records").alias("records"),
        F.size(F.array_distinct(F.flatten(F.collect_list("gateways")))).alias("gateways"),
        F.array_distinct(F.flatten(F.collect_list("rule_hashes"))).alias("rule_hashes"),
    )
    shown = F.struct(_instant("window_start").alias("newest"), "records", "gateways", "rule_hashes")
    is_past = F.col("start_ms") <= version.listed_ms  # others are of a gateway whose clock is ahead
    order = F.struct(is_past.alias("is_past"), "start_ms")
    newest = each.groupBy("rule", "rule_id", "level").agg(F.max_by(shown, order).alias("of"))
    found = newest.select("rule", "rule_id", "level", "of.*").join(final, "rule", "left")
    return [
        row.asDict() | {"days": days[row["rule_id"], row["level"]][0], "of": known}
        for row in found.orderBy("rule", "level").collect()
    ]


def _days(version: Version) -> dict[tuple[str, str], tuple[int, str]]:
    """By rule id and level: the number of days that have windows, and the part with those of the newest, if
    possible of one before the last run: later ones are of a gateway whose clock is ahead."""
    found: dict[tuple[str, str], tuple[int, str]] = {}
    today = utc_date(version.listed_ms) if version.listed_ms else "9999"
    for key, path in sorted(version.fleet.items()):
        rule_id, level, day = values_in(key)
        number, before = found.get((rule_id, level), (0, ""))
        found[rule_id, level] = number + 1, path if day <= today or not before else before
    return found


def _table(title: str, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(_cells(row, columns))}</tr>" for row in rows[:LISTED_MAX])
    more = f"<p>and {len(rows) - LISTED_MAX} more</p>" if len(rows) > LISTED_MAX else ""
    note = f"<p>{escape(NOTES[title])}</p>" if rows and title in NOTES else ""
    return f"<h2>{escape(title)} ({len(rows)})</h2>{note}<table><tr>{head}</tr>{lines}</table>{more}"


def _cells(row: dict[str, Any], columns: Sequence[str]) -> Iterable[str]:
    for name in columns:
        value = _utc(row[name]) if name in INSTANTS else row[name]
        is_bad = name in BAD_COLUMNS and value
        kind = " class=bad" if is_bad else " class=n" if isinstance(value, int) else ""
        yield f"<td{kind}>{escape('' if value is None else str(value))}</td>"


def _utc(instant_ms: int | None) -> str:
    """An instant as text.

    >>> _utc(1_763_683_200_000)
    '2025-11-21 00:00:00'
    """
    if instant_ms is None:
        return ""
    return datetime.fromtimestamp(instant_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _length(duration_ms: int) -> str:
    minutes = duration_ms // 60_000
    hours = minutes // 60
    return f"{hours // 24}d{hours % 24}h" if hours >= 24 else f"{hours}h" if hours else f"{minutes}m"
