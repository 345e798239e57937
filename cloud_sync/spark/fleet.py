"""From records to fleet windows: pure transforms of DataFrames, without files and without a clock.

A fleet row is the state of one group (rule, level, window, keys): cells that merge by adding whole numbers or
by taking an extreme, the gateways and the number of records in it. Merging is exact, associative and
commutative, so a window is the same for any order of its records, and any division of them into runs.
`values` are the state's results, made once when a window is written. All rules share one schema and one plan;
a rule's own columns are a view (`view`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cloud_sync.moments import SAMPLE
from cloud_sync.sketches import SKETCHES, merge_top
from cloud_sync.spark.results import EXACT_INT, VALUE, values_of

SPANS = "ARRAY<STRUCT<level: STRING, start: BIGINT, end: BIGINT>>"
RECORD_VALUES = (
    "ARRAY<STRUCT<name: STRING, merge: STRING, type: STRING, whole: BIGINT, real: DOUBLE, "
    f"counted: BIGINT, bin: INT, units: {EXACT_INT}, squares: ARRAY<STRUCT<bin: INT, units: {EXACT_INT}>>, "
    "sketch: BINARY, of: STRING, part: DOUBLE, text: STRING, instant: BIGINT>>"
)
IDENTITY = ("gateway", "spool", "rule", "seq")
"""The columns that identify a record over all gateways, whatever file it came in."""

RECORDS = (
    "gateway STRING, spool STRING, rule STRING, seq BIGINT, rule_id STRING, day STRING, window_start BIGINT, "
    f"window_end BIGINT, windows {SPANS}, keys STRING, `values` {RECORD_VALUES}, digest STRING, file STRING, "
    "run STRING, revision BIGINT, retracted BOOLEAN, rule_hash STRING"
)
PLACED = (
    "STRUCT<instant: BIGINT, gateway: STRING, spool: STRING, seq: BIGINT, whole: BIGINT, real: DOUBLE, "
    "text: STRING>"
)
"""A first or last value, in the order in which the least and the greatest are found."""
CELL = {
    **dict.fromkeys(("name", "merge", "type", "part"), "STRING"),
    "bin": "INT",
    "total": EXACT_INT,
    "whole": "BIGINT",
    "real": "DOUBLE",
    "sketch": "BINARY",
    "of": "STRING",
    "at": "DOUBLE",
    "placed": PLACED,
}
FLEET = (
    "rule STRING, rule_id STRING, level STRING, start_ms BIGINT, end_ms BIGINT, window_start TIMESTAMP, "
    f"window_end TIMESTAMP, keys STRING, `values` ARRAY<{VALUE}>, gateways ARRAY<STRING>, records BIGINT, "
    f"state ARRAY<STRUCT<{', '.join(f'{name}: {kind}' for name, kind in CELL.items())}>>, run STRING, "
    "rule_hashes ARRAY<STRING>"
)
GROUP = ("start_ms", "end_ms", "keys", "level", "rule", "rule_id")
"""The columns that identify a fleet row. Spark sorts by the first one as a number, without reading the
others of rows that differ in it."""

PARTITION = ("of_rule", "of_level", "of_day")

SETS = ("gateways", "rule_hashes")
"""Columns of a fleet row with the gateways of its records and the versions of the rule that made them."""
CELL_KEY = ("name", "merge", "type", "part", "bin", "of", "at")
"""The columns that identify a cell of a group. `of` is the sketch that a cell follows from, `at` its part."""
SKETCH_PART = "sketch"
"""The part of cells that hold sketches."""


def first_day() -> Column:
    """The UTC day on which a window begins, such as 2025-11-21: that of its partition."""
    return F.date_format(F.timestamp_millis("start_ms"), "yyyy-MM-dd")


def partition() -> dict[str, Column]:
    """The columns by which the fleet is divided into parts (PARTITION), from those of a row."""
    return dict(zip(PARTITION, (F.col("rule_id"), F.col("level"), first_day()), strict=True))


def groups_of(records: DataFrame, retained_from: str = "") -> DataFrame:
    """One row per record and level, with the group it belongs to. Windows that begin before the day
    `retained_from` are left out: the tables do not keep all of their records."""
    spans = records.withColumn("span", F.explode("windows")).drop("windows")
    grouped = spans.withColumns(
        {"level": F.col("span.level"), "start_ms": F.col("span.start"), "end_ms": F.col("span.end")}
    ).drop("span")
    return grouped.where(first_day() >= retained_from) if retained_from else grouped


def current(grouped: DataFrame) -> DataFrame:
    """The records (as returned by `groups_of`) that count: of a window that a gateway restated only the
    newest statement, and none if that takes the window back."""
    statement = Window.partitionBy("window_start", "gateway", *GROUP, "window_end")
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


def contributions(grouped: DataFrame, *, sketches: bool = False) -> DataFrame:
    """The states that records (as returned by `groups_of`) add to their groups: merged cells, one per row.

    The cell without a name counts records and gateways. `sketches`: there may be some.
    """
    made = F.when(F.col("rule_hash") != "", F.col("rule_hash")).alias("rule_hash")
    cells = grouped.select(*GROUP, "gateway", made, F.explode(_cells()).alias("cell"))
    named = {"gateways": "gateway", "rule_hashes": "rule_hash"}
    sets = [
        F.sort_array(F.collect_set(F.when(_counts_records(), F.col(of)))).alias(name)
        for name, of in named.items()
    ]
    return _merged(cells.select(*GROUP, "gateway", "rule_hash", "cell.*"), sets, sketches)


def cells_of(fleet: DataFrame) -> DataFrame:
    """The cells of fleet rows, in the form that `contributions` returns."""
    cells = fleet.select(*GROUP, *SETS, F.explode("state").alias("cell"))
    nothing = F.array().cast("ARRAY<STRING>")
    alone = [
        F.coalesce(F.when(F.col("cell.part") == "records", F.col(name)), nothing).alias(name) for name in SETS
    ]
    return cells.select(*GROUP, "cell.*", *alone)


def merged(cells: DataFrame, *, sketches: bool = False) -> DataFrame:
    """One cell for each group and cell key. `sketches`: there may be some."""
    sets = [F.sort_array(F.array_distinct(F.flatten(F.collect_list(name)))).alias(name) for name in SETS]
    return _merged(cells, sets, sketches)


def _merged(cells: DataFrame, sets: Sequence[Column], sketches: bool) -> DataFrame:
    """Merge cells; sketches merge in a plan of their own, so that rules without any do not pay for it."""
    key = (*GROUP, *CELL_KEY)
    if not sketches:
        return cells.groupBy(*key).agg(*_merges(), F.lit(None).cast("BINARY").alias("sketch"), *sets)
    whole = cells.withColumn("is_sketch", F.col("part") == SKETCH_PART)
    plain = _merged(whole.where("NOT is_sketch").drop("is_sketch"), sets, sketches=False)
    of = {kind: F.when(F.col("merge") == kind, F.col("sketch")) for kind in SKETCHES}
    made = (
        whole.where("is_sketch")
        .groupBy(*key)
        .agg(
            *_merges(),
            F.count("sketch").alias("some"),
            F.theta_union_agg(of["theta"]).alias("theta"),
            F.kll_merge_agg_double(of["kll"]).alias("kll"),
            F.sort_array(F.collect_list(of["top_k"])).alias("top_k"),
            *sets,
        )
    )
    top = F.udf(merge_top, "BINARY", useArrow=False)
    kind = F.col("merge")
    one = F.when(kind == "theta", F.col("theta")).when(kind == "kll", F.col("kll"))
    found = F.when(F.col("some") > 0, one.otherwise(F.when(kind == "top_k", top("top_k"))))
    return plain.unionByName(made.withColumn("sketch", found).select(*plain.columns))


def rows_of(cells: DataFrame, run: str) -> DataFrame:
    """Fleet rows from merged cells."""
    counter = F.filter("state", lambda item: item["part"] == "records")
    wide = cells.groupBy(*GROUP).agg(
        F.sort_array(F.collect_list(F.struct(*CELL))).alias("state"),
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
    """The cells of one record: one for each value, several for an average or a deviation, and one that counts
    the record."""
    empty = F.lit("")
    counter = F.array(_cell(name=empty, merge=empty, type=empty, part=F.lit("records"), total=F.lit(1)))
    counted = F.filter("values", lambda value: value["merge"].isin("avg", *SAMPLE))
    squared = F.filter("values", lambda value: value["squares"].isNotNull())
    squares = F.flatten(F.transform(squared, _square_cells))
    return F.concat(F.transform("values", _main_cell), F.transform(counted, _count_cell), squares, counter)


def _main_cell(value: Column) -> Column:
    adds = ~value["merge"].isin("min", "max", "first", "last")
    origin = (F.col(name) for name in ("gateway", "spool", "seq"))
    placed = F.struct(value["instant"], *origin, value["whole"], value["real"], value["text"])
    is_float = value["type"] == "float"
    return _cell(
        **_of(value),
        part=F.when(value["type"] == "sketch", F.lit(SKETCH_PART)).otherwise(F.lit("value")),
        bin=F.when(adds & is_float, F.coalesce(value["bin"], F.lit(0))).otherwise(F.lit(0)),
        total=F.when(adds, F.when(is_float, value["units"]).otherwise(value["whole"].cast(EXACT_INT))),
        whole=F.when(~adds, value["whole"]),
        real=F.when(~adds, value["real"]),
        sketch=value["sketch"],
        placed=F.when(value["instant"].isNotNull(), placed),
    )


def _square_cells(value: Column) -> Column:
    return F.transform(
        value["squares"],
        lambda part: _cell(**_of(value), part=F.lit("square"), bin=part["bin"], total=part["units"]),
    )


def _count_cell(value: Column) -> Column:
    return _cell(**_of(value), part=F.lit("count"), total=value["counted"])


def _of(value: Column) -> dict[str, Column]:
    """The fields of a cell that name its value."""
    return {**{name: value[name] for name in ("name", "merge", "type", "of")}, "at": value["part"]}


def _cell(**fields: Column) -> Column:
    """A cell with these fields; of the others `bin` is 0, and they are NULL."""
    found = {"bin": F.lit(0), **fields}
    return F.struct(*(found.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in CELL.items()))


def _counts_records() -> Column:
    return F.col("part") == "records"


def _merges() -> Sequence[Column]:
    """The aggregates that merge cells of one key: totals add up, extremes stay, NULL is ignored.
    Of values with an instant the first or the last stays;
    at one instant gateway, spool and sequence number decide."""
    least = F.col("merge") == "min"
    earliest = F.col("merge") == "first"
    return (
        F.sum("total").cast(EXACT_INT).alias("total"),
        F.when(least, F.min("whole")).otherwise(F.max("whole")).alias("whole"),
        F.when(least, F.min("real")).otherwise(F.max("real")).alias("real"),
        F.when(earliest, F.min("placed")).otherwise(F.max("placed")).alias("placed"),
    )
