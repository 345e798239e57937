"""`penstock cloud reconcile RULES BACKFILL OUT`: rows of the gateways beside those of a backfill,
window by window.

    tables in OUT (`records`)  ──┐
                                 ├─ by gateway, bounds of the window and keys ─> equal, or why they differ
    tables of `cloud backfill` ──┘

Rows of a backfill become records as they do on a gateway, by the rule's cloud action, and are read by the
contract. A window differs if its records differ, of a window that is stated anew the newest statement. The
reason is derived from what is on record: heartbeats, quarantine, the days that are kept, rule hashes, late
events and the windows that were open at the end of the raw events.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from cloud_sync.declaration import CloudSettings
from cloud_sync.names import VERSION, file_folder, safe
from cloud_sync.records import SpooledRow, line
from cloud_sync.sink import RecordMaker
from cloud_sync.spark import fleet
from cloud_sync.spark.backfill import FIXED, TYPES
from cloud_sync.spark.contract.fields import Bad
from cloud_sync.spark.contract.uploaded_file import Manifest, read_record
from cloud_sync.spark.intake import READ, row_of
from cloud_sync.spark.reconciling.evidence import WINDOW, Subject, with_evidence
from cloud_sync.spark.reconciling.reasons import reason
from cloud_sync.spark.storage import literal, open_storage
from cloud_sync.spark.tables import in_batches, nothing, open_tables
from sql import Plan

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = (*WINDOW, "reason", "detail", "edge", "backfilled")


class ReconcileError(Exception):
    """The two sides cannot be compared; the text says why."""


@dataclass(slots=True)
class Comparison:
    """The result for one rule. `reasons` counts the windows that differ, by reason; `listed` holds the first
    ones (columns SHOWN); `refused` rows of the backfill do not fit the cloud action:
    the gateway's dead letters."""

    rule: str
    equal: int = 0
    differ: int = 0
    refused: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    listed: list[dict[str, Any]] = field(default_factory=list)


def reconcile(
    spark: SparkSession,
    rules: Mapping[str, tuple[Plan, CloudSettings]],
    backfill: str,
    out: str,
    limit: int,
) -> list[Comparison]:
    """Compare the rules, each with its plan and its cloud action; at most `limit` windows of each are listed.
    Raises ReconcileError."""
    tables = open_tables(spark, out)
    if not tables.current().number:
        raise ReconcileError(f"there are no tables in {out}; make them with penstock cloud aggregate")
    subjects = [
        Subject(tables, rule, *declared, _rows_of(spark, rule, backfill)) for rule, declared in rules.items()
    ]
    for subject in subjects:
        _check_version(subject, backfill)
    return [_compared(spark, subject, limit) for subject in subjects]


def _rows_of(spark: SparkSession, rule: str, backfill: str) -> DataFrame:
    """The rows of a rule's backfill. Raises ReconcileError if there are none."""
    source = open_storage(spark, backfill)
    if not source.is_folder(safe(rule)):
        raise ReconcileError(f"{backfill} has no rows of rule {rule}; make them with penstock cloud backfill")
    return spark.read.parquet(literal(f"{source.root}/{safe(rule)}"))


def _check_version(subject: Subject, backfill: str) -> None:
    """Raises ReconcileError if another version of the rule made the backfill."""
    if not subject.rows.where(F.col("rule_hash") != subject.settings.rule_hash).isEmpty():
        raise ReconcileError(
            f"{backfill} was made by another version of rule {subject.rule}; "
            "run penstock cloud backfill again"
        )


def _compared(spark: SparkSession, subject: Subject, limit: int) -> Comparison:
    made = _records_of(spark, subject).persist()
    sides = _stated(_uploads(subject), "edge"), _stated(made.where("reason IS NULL"), "backfilled")
    is_equal = F.coalesce(F.col("edge.said") == F.col("backfilled.said"), F.lit(False))
    both = sides[0].join(sides[1], list(WINDOW), "full_outer").withColumn("is_equal", is_equal).persist()
    differing = with_evidence(spark, subject, both.where("NOT is_equal"))
    kept_from = subject.tables.current().retained_from
    explained = reason(differing, subject.settings.rule_hash, kept_from).persist()
    try:
        result = Comparison(subject.rule, both.where("is_equal").count())
        result.refused = made.where("reason IS NOT NULL").count()
        _explain(result, explained, limit)
        return result
    finally:
        for frame in (made, both, explained):
            frame.unpersist()


def _explain(result: Comparison, explained: DataFrame, limit: int) -> None:
    """Count the windows by reason, and list the first ones."""
    counts = explained.groupBy("reason").count().orderBy(F.desc("count"), "reason").collect()
    result.reasons = {row["reason"]: row["count"] for row in counts}
    result.differ = sum(result.reasons.values())
    shown = explained.orderBy("window_start", "gateway", "keys", "window_end").limit(limit)
    result.listed = [row.asDict(recursive=True) for row in shown.select(*_shown()).collect()]


def _shown() -> list[Column]:
    """The columns SHOWN: the two sides as JSON text of their values."""
    values = [F.to_json(F.col(f"{side}.told")).alias(side) for side in ("edge", "backfilled")]
    return [*(F.col(name) for name in SHOWN[:-2]), *values]


def _uploads(subject: Subject) -> DataFrame:
    """The records of the rule that the gateways uploaded."""
    folder = f"of_rule={safe(subject.rule)}/"
    records = subject.tables.current().records.items()
    paths = [path for key, parts in records if key.startswith(folder) for path in parts]
    return subject.tables.read(paths, fleet.RECORDS).withColumn("is_open", F.lit(False))


# --- the two sides ------------------------------------------------------------------------------------------


def _stated(records: DataFrame, side: str) -> DataFrame:
    """One row per window, with a struct `side`: what its records say,
    of a window that is stated anew the newest one; nothing of a window that was taken back."""
    columns = ("revision", "seq", "retracted", "values", "rule_hash", "is_open", "day")
    some = records.withColumn("revision", F.coalesce("revision", F.lit(0)))
    said = F.sort_array(F.collect_list(F.struct(*columns)), asc=False)
    grouped = some.groupBy(*WINDOW).agg(said.alias("all"))
    newest = F.get("all", F.lit(0))
    alone = F.when(~newest["retracted"], F.slice("all", 1, 1)).otherwise(F.slice("all", 1, 0))
    all_or_newest = F.when(newest["revision"] == 0, F.col("all")).otherwise(alone)
    stated = grouped.withColumn("all", all_or_newest).where(F.size("all") > 0)
    return stated.select(*WINDOW, _one_side().alias(side))


def _one_side() -> Column:
    """The records in the column `all` as one struct: their values, sorted, and their newest facts."""
    newest, values = F.get("all", F.lit(0)), F.transform("all", lambda row: row["values"])
    return F.struct(
        F.sort_array(values).alias("said"),
        F.size("all").alias("rows"),
        newest["revision"].alias("revision"),
        newest["day"].alias("day"),
        F.array_distinct(F.transform("all", lambda row: row["rule_hash"])).alias("rule_hashes"),
        F.exists("all", lambda row: row["is_open"]).alias("is_open"),
        F.transform(F.flatten(values), _value_shown).alias("told"),
    )


def _value_shown(value: Column) -> Column:
    """A value of a record in few fields, for people."""
    return F.struct(
        value["name"].alias("as"),
        value["merge"].alias("merge"),
        F.coalesce(value["whole"].cast("STRING"), value["real"].cast("STRING"), value["text"]).alias("value"),
        value["counted"].alias("count"),
    )


def _records_of(spark: SparkSession, subject: Subject) -> DataFrame:
    """The rows of a backfill as the records that the gateway's cloud action would upload (READ); one that it
    refuses has a `reason`."""
    schema = f"{READ}, is_open BOOLEAN"
    columns = subject.plan.columns_with_states
    as_text = None if columns is None else {name for name, kind in columns.items() if kind not in TYPES}
    arrow = to_arrow_schema(nothing(spark, schema).schema)
    worker = partial(_uploaded, subject.rule, subject.settings, as_text, arrow)
    return subject.rows.where("kind = 'insert'").mapInArrow(worker, schema)


def _uploaded(
    rule: str,
    settings: CloudSettings,
    as_text: Collection[str] | None,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's workers. `as_text`: the columns that hold JSON text; None if the whole row does."""
    maker = RecordMaker(settings, rule)
    rows = (row for batch in batches for row in batch.to_pylist())
    yield from in_batches((_uploaded_row(rule, maker, as_text, row) for row in rows), schema)


def _uploaded_row(
    rule: str, maker: RecordMaker, as_text: Collection[str] | None, row: dict[str, Any]
) -> dict[str, Any]:
    cells = {name: value for name, value in row.items() if name not in FIXED and value is not None}
    if as_text is None:
        cells = json.loads(cells["row"])
    else:
        cells |= {name: json.loads(cells[name]) for name in as_text if name in cells}
    gateway, seq = str(row["gateway"]), int(row["number"])
    try:
        record = maker.record(cells, int(row["at_ms"]))
        folder = file_folder(gateway, rule, record.date)
        manifest = Manifest(VERSION, folder, "", 0, 1, gateway, "backfill", rule, record.date, seq, seq)
        spooled = SpooledRow(seq, rule, record.date, 0, record.body, 0)
        read = read_record(line(spooled, gateway, "backfill"), manifest)
    except (ValueError, Bad) as error:
        return {"gateway": gateway, "reason": str(error)}
    return row_of(folder, manifest, read) | {"is_open": row["is_open"]}
