"""From uploaded records to fleet windows: pure transforms of DataFrames, without files and without a clock.

Every transform gives the same result for the same set of rows, in whatever order and however often they come: that is
what makes the job repeatable. Float sums are added in sorted order for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

MANIFEST_SCHEMA = (
    "version INT, name STRING, sha256 STRING, bytes BIGINT, rows BIGINT, gateway STRING, spool STRING, rule STRING, "
    "date STRING, first_seq BIGINT, last_seq BIGINT, _corrupt_record STRING"
)
RECORD_SCHEMA = (
    "gateway STRING, spool STRING, rule STRING, seq BIGINT, window BIGINT, window_start BIGINT, window_end BIGINT, "
    "keys STRING, values ARRAY<STRUCT<`as`: STRING, merge: STRING, type: STRING, `int`: BIGINT, `float`: DOUBLE, "
    "count: BIGINT>>, _corrupt_record STRING"
)
REQUIRED = ("gateway", "spool", "rule", "seq", "window", "window_start", "window_end", "keys", "values")
IDENTITY = ("gateway", "spool", "rule", "seq")
"""What makes a row unique in the world, whatever file it came in."""

PAYLOAD = ("window", "window_start", "window_end", "keys", "values")
FIXED_COLUMNS = ("window_start", "window_end", "keys", "gateways", "rows", "date")
"""Columns of every fleet table; a rule's column of the same name gets a suffix."""

MERGES = ("count", "sum", "min", "max", "avg")
TYPES = ("int", "float")
LAST_START_MS = 253_402_214_400_000
"""31 December 9999, UTC."""

EXACT_INT = "DECIMAL(38, 0)"
"""Type of integer sums: those of many gateways may not fit 64 bits."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One thing that a rule's records carry: a key (`merge` is "key") or a value with its merge and type."""

    name: str
    merge: str
    type: str


def is_damaged() -> SparkColumn:
    """Whether a parsed line is no record."""
    missing = F.col("_corrupt_record").isNotNull()
    for name in REQUIRED:
        missing = missing | F.col(name).isNull()
    missing = missing | _canonical("keys").isNull()
    outside = (F.col("window") <= 0) | ~F.col("window_start").between(0, LAST_START_MS)
    unknown = F.exists("values", lambda value: ~F.coalesce(_is_known(value), F.lit(False)))
    return missing | F.coalesce(outside | unknown, F.lit(True))


def _is_known(value: SparkColumn) -> SparkColumn:
    return value["as"].isNotNull() & value["merge"].isin(*MERGES) & value["type"].isin(*TYPES)


def placed(records: DataFrame) -> DataFrame:
    """Records with the fleet window that holds their start (`fleet_start`, milliseconds), its UTC `date`, and their
    keys in one spelling.

    |--- fleet window (1m) ---|--- fleet window (1m) ---|
    |-10s-|-10s-|-10s-| ...   |-10s-| ...
    """
    start = F.col("window_start") - F.pmod("window_start", "window")
    date = F.date_format(F.timestamp_millis(start), "yyyy-MM-dd")
    return records.withColumns({"fleet_start": start, "date": date, "keys": _canonical("keys")})


def _canonical(keys: str) -> SparkColumn:
    """Keys in one spelling, whatever their order and spacing; NULL if they are no JSON."""
    return F.to_json(F.try_parse_json(keys))


def deduplicated(rows: DataFrame) -> DataFrame:
    """One row per identity; `conflicting` tells where copies differ (then the smallest one counts, always the same)."""
    payload = F.struct(*PAYLOAD, "fleet_start", "date")
    merged = rows.groupBy(*IDENTITY).agg(F.min(payload).alias("kept"), F.max(payload).alias("other"))
    return merged.select(*IDENTITY, "kept.*", (F.col("kept") != F.col("other")).alias("conflicting"))


def parts(rows: DataFrame) -> DataFrame:
    """The distinct parts (rule, name, merge, type) that rows carry: the columns their fleet tables need."""
    values = rows.select("rule", F.explode("values").alias("value")).select(
        "rule", F.col("value.as").alias("name"), "value.merge", "value.type"
    )
    keys = rows.select("rule", F.explode(F.json_object_keys("keys")).alias("name"))
    return values.union(keys.select("rule", "name", F.lit("key"), F.lit("text"))).distinct()


def column_names(found: Sequence[Part]) -> dict[Part, str]:
    """A column name for each part: its own, or with merge and type appended where that would be ambiguous.

    A rule whose author turned a count into a sum gets two columns: a column keeps one meaning and one type for ever.

    >>> column_names([Part("n", "count", "int"), Part("n", "sum", "float"), Part("dev", "key", "text")])
    {Part(name='dev', merge='key', type='text'): 'dev', Part(name='n', merge='count', type='int'): 'n_count_int', \
Part(name='n', merge='sum', type='float'): 'n_sum_float'}
    """
    uses = Counter(part.name.lower() for part in found)
    uses.update(FIXED_COLUMNS)
    names = {}
    for part in sorted(found):
        alone = uses[part.name.lower()] == 1
        names[part] = part.name if alone else f"{part.name}_{part.merge}_{part.type}"
    return names


def is_ambiguous(found: Sequence[Part]) -> bool:
    """Whether some name has several meanings, so that older partitions must be written again with the longer names."""
    return len({part.name.lower() for part in found}) < len(found)


def fleet(rows: DataFrame, found: Sequence[Part]) -> DataFrame:
    """The fleet table of one rule: one line per fleet window and keys, from de-duplicated rows.

    Columns: window_start, window_end (timestamps), the keys (as text), the merged values, `gateways` and `rows` that
    contributed, `keys` (JSON: the exact group identity, where 1 and "1" differ), date.
    """
    names = column_names(found)
    values = [part for part in names if part.merge != "key"]
    picked = rows.select(
        "date",
        "fleet_start",
        "window",
        "keys",
        "gateway",
        *[_pick(part).alias(f"v{i}") for i, part in enumerate(values)],
    )
    merged = picked.groupBy("date", "fleet_start", "window", "keys").agg(
        *[_merged(f"v{i}", part).alias(names[part]) for i, part in enumerate(values)],
        F.countDistinct("gateway").alias("gateways"),
        F.count("*").alias("rows"),
    )
    keys = [_key(part.name).alias(name) for part, name in names.items() if part.merge == "key"]
    return merged.select(
        F.timestamp_millis("fleet_start").alias("window_start"),
        F.timestamp_millis(F.col("fleet_start") + F.col("window")).alias("window_end"),
        *keys,
        *[F.col(_quoted(names[part])) for part in values],
        "gateways",
        "rows",
        "keys",
        "date",
    )


def _pick(part: Part) -> SparkColumn:
    """The value of `part` in a row's `values`, or NULL if the row has none."""

    def is_it(value: SparkColumn) -> SparkColumn:
        same = (value["as"] == part.name) & (value["merge"] == part.merge)
        return same & (value["type"] == part.type)

    return F.get(F.filter("values", is_it), F.lit(0))


def _key(name: str) -> SparkColumn:
    """A key as text: a JSON text as it is, other JSON values as JSON writes them, null as NULL."""
    entries = F.from_json("keys", "MAP<STRING, STRING>")
    return F.element_at(entries, F.lit(name))


def _merged(column: str, part: Part) -> SparkColumn:
    value = F.col(f"{column}.{part.type}")
    match part.merge:
        case "min":
            return F.min(value)
        case "max":
            return F.max(value)
        case "count":
            return F.try_sum(value)
        case "sum":
            return _total(value, part.type)
        case "avg":
            count = F.try_sum(f"{column}.count")
            return _total(value, part.type).cast("DOUBLE") / F.nullif(count, F.lit(0))
    raise AssertionError(part)  # `is_damaged` keeps others out


def _total(value: SparkColumn, kind: str) -> SparkColumn:
    """The sum of a group, the same in every run; NULL if all values are."""
    if kind == "int":
        return F.sum(value.cast(EXACT_INT)).cast(EXACT_INT)
    total = F.aggregate(F.array_sort(F.collect_list(value)), F.lit(0.0), lambda sum_, item: sum_ + item)
    return F.when(F.count(value) > 0, total)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
