"""From records to fleet windows: pure transforms of DataFrames, without files and without a clock.

A fleet row is the state of one group (rule, level, window, keys): cells that merge by adding whole numbers or
by taking an extreme, the gateways and the number of records in it. Merging is exact, associative and
commutative, so a window is the same whatever order its records came in, and however they were cut into runs.
`values` are the state's results, made once when a window is written. All rules share one schema and one plan;
a rule's own columns are a view (`view`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cloud_sync.moments import SAMPLE, spread
from cloud_sync.spark.exact import nearest, total

EXACT_INT = "DECIMAL(38, 0)"
"""Type of sums: those of many gateways may not fit 64 bits."""

SPANS = "ARRAY<STRUCT<level: STRING, start: BIGINT, end: BIGINT>>"
RECORD_VALUES = (
    "ARRAY<STRUCT<name: STRING, merge: STRING, type: STRING, whole: BIGINT, real: DOUBLE, counted: BIGINT, bin: INT, "
    f"units: {EXACT_INT}, squares: ARRAY<STRUCT<bin: INT, units: {EXACT_INT}>>>>"
)
IDENTITY = ("gateway", "spool", "rule", "seq")
"""What makes a record unique in the world, whatever file it came in."""

RECORDS = (
    "gateway STRING, spool STRING, rule STRING, seq BIGINT, rule_id STRING, day STRING, window_start BIGINT, "
    f"window_end BIGINT, windows {SPANS}, keys STRING, `values` {RECORD_VALUES}, digest STRING, file STRING, "
    "run STRING, revision BIGINT, retracted BOOLEAN, rule_hash STRING"
)
CELL = (
    f"STRUCT<name: STRING, merge: STRING, type: STRING, part: STRING, bin: INT, total: {EXACT_INT}, whole: BIGINT, "
    "real: DOUBLE>"
)
VALUE = f"STRUCT<name: STRING, merge: STRING, type: STRING, whole: {EXACT_INT}, real: DOUBLE>"
FLEET = (
    "rule STRING, rule_id STRING, level STRING, start_ms BIGINT, end_ms BIGINT, window_start TIMESTAMP, "
    f"window_end TIMESTAMP, keys STRING, `values` ARRAY<{VALUE}>, gateways ARRAY<STRING>, records BIGINT, "
    f"state ARRAY<{CELL}>, run STRING, rule_hashes ARRAY<STRING>"
)
GROUP = ("rule", "rule_id", "level", "start_ms", "end_ms", "keys")
"""What identifies a fleet row."""

SETS = ("gateways", "rule_hashes")
"""Columns of a fleet row that say from whom its records came and which versions of the rule made them."""
CELL_KEY = ("name", "merge", "type", "part", "bin")


def groups_of(records: DataFrame) -> DataFrame:
    """One row per record and level, with the group it belongs to."""
    spans = records.withColumn("span", F.explode("windows")).drop("windows")
    return spans.withColumns(
        {"level": F.col("span.level"), "start_ms": F.col("span.start"), "end_ms": F.col("span.end")}
    ).drop("span")


def current(grouped: DataFrame) -> DataFrame:
    """The records (as `groups_of` gives them) that count: of a window that a gateway stated anew only the
    newest statement, and nothing if that takes the window back."""
    statement = Window.partitionBy(*GROUP, "gateway", "window_start", "window_end")
    revision = F.coalesce("revision", F.lit(0))
    ranked = grouped.withColumns(
        {
            "newest": F.max(revision).over(statement),
            "place": F.row_number().over(
                statement.orderBy(revision.desc(), F.desc("seq"), "spool", "digest")
            ),
        }
    )
    return ranked.where("newest = 0 OR (place = 1 AND NOT retracted)").drop("newest", "place")


def contributions(grouped: DataFrame) -> DataFrame:
    """The states that records (as `groups_of` gives them) add to their groups: merged cells, one per row.

    The cell without a name counts records and gateways.
    """
    made = F.when(F.col("rule_hash") != "", F.col("rule_hash")).alias("rule_hash")
    cells = grouped.select(*GROUP, "gateway", made, F.explode(_cells()).alias("cell"))
    named = {"gateways": "gateway", "rule_hashes": "rule_hash"}
    return (
        cells.select(*GROUP, "gateway", "rule_hash", "cell.*")
        .groupBy(*GROUP, *CELL_KEY)
        .agg(
            *_merges(),
            *(
                F.sort_array(F.collect_set(F.when(_counts_records(), F.col(of)))).alias(name)
                for name, of in named.items()
            ),
        )
    )


def cells_of(fleet: DataFrame) -> DataFrame:
    """The cells of fleet rows, as `contributions` gives them."""
    cells = fleet.select(*GROUP, *SETS, F.explode("state").alias("cell"))
    nothing = F.array().cast("ARRAY<STRING>")
    alone = [
        F.coalesce(F.when(F.col("cell.part") == "records", F.col(name)), nothing).alias(name) for name in SETS
    ]
    return cells.select(*GROUP, "cell.*", *alone)


def merged(cells: DataFrame) -> DataFrame:
    """One cell for each group and cell key."""
    sets = [F.sort_array(F.array_distinct(F.flatten(F.collect_list(name)))).alias(name) for name in SETS]
    return cells.groupBy(*GROUP, *CELL_KEY).agg(*_merges(), *sets)


def rows_of(cells: DataFrame, run: str) -> DataFrame:
    """Fleet rows from merged cells."""
    cell = F.struct(*CELL_KEY, "total", "whole", "real")
    counter = F.filter("state", lambda item: item["part"] == "records")
    wide = cells.groupBy(*GROUP).agg(
        F.sort_array(F.collect_list(cell)).alias("state"),
        *(F.flatten(F.collect_list(name)).alias(name) for name in SETS),
    )
    values = F.udf(values_of, f"ARRAY<{VALUE}>", useArrow=False)
    return wide.select(
        "rule",
        "rule_id",
        "level",
        "start_ms",
        "end_ms",
        F.timestamp_millis("start_ms").alias("window_start"),
        F.timestamp_millis("end_ms").alias("window_end"),
        "keys",
        values("state").alias("values"),
        "gateways",
        F.get(counter, F.lit(0))["total"].cast("BIGINT").alias("records"),
        "state",
        F.lit(run).alias("run"),
        "rule_hashes",
    )


def deduplicated(records: DataFrame) -> DataFrame:
    """One record per identity. Of those that differ the one with the smallest digest stays, whatever came
    first; `conflicting` counts the others."""
    columns = [name for name in records.columns if name not in IDENTITY]
    return (
        records.groupBy(*IDENTITY)
        .agg(
            F.min_by(F.struct(*columns), F.struct("digest", "file")).alias("kept"),
            (F.count_distinct("digest") - 1).alias("conflicting"),
        )
        .select(*IDENTITY, "kept.*", "conflicting")
    )


def _cells() -> Column:
    """The cells of one record: one for each value, more for what it is made of, and one
    that counts the record."""
    counter = F.array(
        F.struct(
            F.lit("").alias("name"),
            F.lit("").alias("merge"),
            F.lit("").alias("type"),
            F.lit("records").alias("part"),
            F.lit(0).alias("bin"),
            F.lit(1).cast(EXACT_INT).alias("total"),
            F.lit(None).cast("BIGINT").alias("whole"),
            F.lit(None).cast("DOUBLE").alias("real"),
        )
    )
    counted = F.filter("values", lambda value: value["merge"].isin("avg", *SAMPLE))
    squared = F.filter("values", lambda value: value["squares"].isNotNull())
    squares = F.flatten(F.transform(squared, _square_cells))
    return F.concat(F.transform("values", _main_cell), F.transform(counted, _count_cell), squares, counter)


def _main_cell(value: Column) -> Column:
    adds = ~value["merge"].isin("min", "max")
    is_float = value["type"] == "float"
    return _cell(
        value,
        "value",
        F.when(adds & is_float, F.coalesce(value["bin"], F.lit(0))).otherwise(F.lit(0)),
        F.when(adds, F.when(is_float, value["units"]).otherwise(value["whole"].cast(EXACT_INT))),
        F.when(~adds, value["whole"]),
        F.when(~adds, value["real"]),
    )


def _square_cells(value: Column) -> Column:
    nothing = F.lit(None)
    return F.transform(
        value["squares"], lambda part: _cell(value, "square", part["bin"], part["units"], nothing, nothing)
    )


def _count_cell(value: Column) -> Column:
    nothing = F.lit(None)
    return _cell(value, "count", F.lit(0), value["counted"].cast(EXACT_INT), nothing, nothing)


def _cell(value: Column, part: str, number: Column, total_: Column, whole: Column, real: Column) -> Column:
    return F.struct(
        value["name"].alias("name"),
        value["merge"].alias("merge"),
        value["type"].alias("type"),
        F.lit(part).alias("part"),
        number.cast("INT").alias("bin"),
        total_.cast(EXACT_INT).alias("total"),
        whole.cast("BIGINT").alias("whole"),
        real.cast("DOUBLE").alias("real"),
    )


def _counts_records() -> Column:
    return F.col("part") == "records"


def _merges() -> Sequence[Column]:
    """How cells of one key become one: totals add, extremes stay; NULL is nothing."""
    least = F.col("merge") == "min"
    return (
        F.sum("total").cast(EXACT_INT).alias("total"),
        F.when(least, F.min("whole")).otherwise(F.max("whole")).alias("whole"),
        F.when(least, F.min("real")).otherwise(F.max("real")).alias("real"),
    )


def values_of(state: Sequence[Any]) -> list[tuple[str, str, str, Decimal | None, float | None]]:
    """The results of a state, by column: (name, merge, type, whole, real). Each is exact and rounded once."""
    columns: dict[tuple[str, str, str], list[Any]] = {}
    for cell in state:
        if cell["part"] != "records":
            columns.setdefault((cell["name"], cell["merge"], cell["type"]), []).append(cell)
    return [(*column, *_result(*column[1:], cells)) for column, cells in columns.items()]


def _parts(cells: Sequence[Any], part: str) -> list[tuple[int, int]]:
    """The bins and totals of one part of a column."""
    return [
        (cell["bin"], int(cell["total"]))
        for cell in cells
        if cell["part"] == part and cell["total"] is not None
    ]


def _result(merge: str, kind: str, cells: Sequence[Any]) -> tuple[Decimal | None, float | None]:
    if merge in ("min", "max"):
        whole, real = cells[0]["whole"], cells[0]["real"]
        return None if whole is None else Decimal(whole), real
    parts = _parts(cells, "value")
    if not parts:
        return None, None
    if merge == "avg" or merge in SAMPLE:
        count = sum(number for _, number in _parts(cells, "count"))
        if not count:
            return None, None
        if merge in SAMPLE:
            sums = (Fraction(*total(_parts(cells, part))) for part in ("value", "square"))
            return None, spread(merge, count, *sums)
        numerator, denominator = (parts[0][1], 1) if kind == "int" else total(parts)
        return None, nearest(numerator, denominator * count)
    if kind == "int":
        return Decimal(parts[0][1]), None
    return None, nearest(*total(parts))
