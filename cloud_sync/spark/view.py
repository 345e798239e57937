"""Views for people: the fleet of one rule with a column for each key and value, and the state of the
gateways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.names import safe
from cloud_sync.spark import fleet as states
from cloud_sync.spark import quality
from cloud_sync.spark.heartbeats import HEARTBEATS
from cloud_sync.spark.ledger import branches, spools
from cloud_sync.spark.ledger import quarantine as bad_files
from cloud_sync.spark.tables import Tables, Version, open_tables, values_in

SHOWN_ROWS = 20
WINDOW_COLUMNS = ("level", "window_start", "window_end", "keys")
FIXED_COLUMNS = ("level", "window_start", "window_end", "gateways", "records", "keys", "run", "rule_hashes")


class Meaning(NamedTuple):
    """A column that the records of a rule have: a key (`merge` is "key") or a value
    with its merge and type."""

    name: str
    merge: str
    type: str


def fleet(
    spark: SparkSession, out: str, rule: str, level: str | None = None, version: int | None = None
) -> DataFrame:
    """The fleet table of a rule: level, window_start, window_end, its keys (as text), its values, `gateways`
    and `records` that contributed, `keys` (JSON, where 1 and "1" differ), `run` that wrote the window,
    `rule_hashes`: the versions of the rule that made its records. `level` picks one of several.

    Columns are named as in the SELECT. A name that has had several meanings has a column for each, named
    `n_count_int`, `n_sum_float`; nothing is written again for it.
    `version` picks a version of the table instead, from 1:
    those of its schemas that add columns to the first of them. Raises ValueError if there is none.
    """
    tables = open_tables(spark, out)
    current = tables.current()
    rows = tables.read(paths(current, rule, level), states.FLEET)
    if version is None:
        return _pivoted(rows)
    schemas = quality.of_version(quality.schemas_of(tables, current, safe(rule)), version)
    made = F.array(*(F.lit(schema.rule_hash) for schema in schemas))
    names = F.array(*(F.lit(name) for name in sorted(key.name for key in schemas[0].keys)))
    of_version = F.arrays_overlap("rule_hashes", made) & (F.sort_array(F.json_object_keys("keys")) == names)
    return _pivoted(rows.where(of_version), {value[:3] for schema in schemas for value in schema.values})


def sketches(spark: SparkSession, out: str, rule: str, column: str, level: str | None = None) -> DataFrame:
    """The sketches of a column: level, window_start, window_end, keys and `sketch`, the bytes that Spark's
    functions read (`theta_union_agg`, `kll_merge_agg_double`), to merge over windows and keys."""
    tables = open_tables(spark, out)
    rows = tables.read(paths(tables.current(), rule, level), states.FLEET)
    cells = rows.select(*WINDOW_COLUMNS, F.explode("state").alias("cell"))
    found = cells.where((F.col("cell.name") == column) & (F.col("cell.part") == states.SKETCH_PART))
    return found.select(*WINDOW_COLUMNS, "cell.sketch")


def gateways(spark: SparkSession, out: str) -> DataFrame:
    """One row per gateway and spool: `rows` that count, those `held` back by a check,
    `duplicates` (rows that came again), `conflicting` ones (rows whose number came with another content),
    `highest_seq`, the `first` and `last` instant of its windows, and `taken`: when a run last took a file in.

    From its heartbeat: `missing` rows that it has uploaded and that are not in the tables; those that are
    `waiting` there or `set_aside`, and those that it `dropped`, that `expired` there or were `lost`; when the
    `heartbeat` came, and by how many milliseconds the gateway's clock is behind the bucket's. Without one
    `missing` is the number of sequence numbers that are not there, and the others are NULL.
    """
    tables = open_tables(spark, out)
    told = _heartbeats(tables).where("reason IS NULL AND gateway IS NOT NULL").drop("name", "reason")
    # A spool of which all was forgotten is not listed, unless it has sent a heartbeat since.
    both = (
        _spools(tables)
        .join(told.withColumnRenamed("highest_seq", "stored_seq"), ["gateway", "spool"], "full_outer")
        .where("last_ms IS NOT NULL OR at_ms IS NOT NULL")
        .join(branches.untold(spark, tables, told), ["gateway", "spool"], "left")
    )
    uploaded = F.col("uploaded") + F.coalesce("untold", F.lit(0))
    seen = F.coalesce("seen", F.lit(0))
    counts = ("rows", "held", "duplicates", "conflicting")
    return both.select(
        "gateway",
        "spool",
        *(F.coalesce(name, F.lit(0)).alias(name) for name in counts),
        F.greatest("highest_seq", "stored_seq").alias("highest_seq"),
        F.when(F.col("uploaded").isNull(), F.col("highest_seq") - seen)
        .otherwise(F.greatest(uploaded - seen, F.lit(0)))
        .alias("missing"),
        "waiting",
        "set_aside",
        "dropped",
        "expired",
        "lost",
        F.timestamp_millis("first_ms").alias("first"),
        F.timestamp_millis("last_ms").alias("last"),
        F.timestamp_millis("taken_ms").alias("taken"),
        F.timestamp_millis("arrived_ms").alias("heartbeat"),
        (F.col("arrived_ms") - F.col("at_ms")).alias("clock_behind_ms"),
    )


def quarantine(spark: SparkSession, out: str) -> DataFrame:
    """The files that do not count, each with the reason that the newest run found; files that are no
    heartbeats, and rows that break a check in files that count otherwise."""
    tables = open_tables(spark, out)
    bad = bad_files.read(tables, tables.current()).drop("place")
    wrong = _heartbeats(tables).where("reason IS NOT NULL")
    nothing = F.lit(None).cast("STRING")
    held = checks(spark, out).where(F.col("outcome") != quality.WARN)
    some = F.concat_ws(", ", F.col("seqs").cast("ARRAY<STRING>"))
    why = F.format_string("%d rows break the check '%s' (seq %s)", "rows", "check", some)
    return bad.unionByName(
        wrong.select(nothing.alias("manifest"), F.col("name").alias("file"), "reason", nothing.alias("run"))
    ).unionByName(held.select(nothing.alias("manifest"), "file", why.alias("reason"), "run"))


def checks(spark: SparkSession, out: str) -> DataFrame:
    """The checks that rows break: rule, gateway, file, check, what follows (`outcome`),
    number of rows and the sequence numbers of the first ones."""
    tables = open_tables(spark, out)
    return tables.read(tables.current().checks, quality.CHECKS)


def records(spark: SparkSession, out: str) -> DataFrame:
    """Every record once. Of windows that were stated anew (`revision` above 0) all statements are there."""
    tables = open_tables(spark, out)
    return tables.read(
        [path for paths in tables.current().records.values() for path in paths], states.RECORDS
    )


def twins(tables: Tables) -> list[str]:
    """Gateways of whose spools two were in use at one time. A spool on a new disk begins
    after the old one ended."""
    each = _spools(tables)
    other = each.select(
        "gateway",
        F.col("spool").alias("other"),
        F.col("first_ms").alias("low"),
        F.col("last_ms").alias("high"),
    )
    both = each.join(other, "gateway").where("spool < other AND first_ms < high AND low < last_ms")
    return [row["gateway"] for row in both.select("gateway").distinct().orderBy("gateway").collect()]


def _heartbeats(tables: Tables) -> DataFrame:
    return tables.read(tables.current().heartbeats, HEARTBEATS)


def _spools(tables: Tables) -> DataFrame:
    """One row per gateway and spool; `seen`: the rows that count, and those that came after their day was
    dropped. The instants of one of which all was forgotten are NULL."""
    return spools.summed(spools.read(tables, tables.current()), "gateway", "spool")


def rules(version: Version) -> list[str]:
    """The ids of all rules, as they are in paths."""
    return sorted({values_in(key)[0] for key in version.fleet})


def paths(version: Version, rule: str, level: str | None) -> list[str]:
    """The parts of the fleet that hold windows of a rule."""
    wanted = [f"of_rule={safe(rule)}", *([f"of_level={level}"] if level else [])]
    return [path for key, path in version.fleet.items() if key.split("/")[: len(wanted)] == wanted]


def _pivoted(rows: DataFrame, values: Collection[tuple[str, str, str]] | None = None) -> DataFrame:
    """Fleet rows with a column for each of their keys and values, or for these values only."""
    found = [
        Meaning(*row)
        for row in rows.select(F.explode("values").alias("v"))
        .select("v.name", "v.merge", "v.type")
        .distinct()
        .collect()
    ]
    if values is not None:
        found = [part for part in found if part in values]
    keys = rows.select(F.explode(F.json_object_keys("keys")).alias("name")).distinct().collect()
    found += [Meaning(row["name"], "key", "text") for row in keys]
    columns = [_column(part).alias(name) for part, name in column_names(found).items()]
    counted = rows.withColumn("gateways", F.size("gateways"))
    return counted.select(*FIXED_COLUMNS[:3], *columns, *FIXED_COLUMNS[3:])


def column_names(found: Sequence[Meaning]) -> dict[Meaning, str]:
    """A column name for each part, keys first: its own, or with merge and type appended if that is ambiguous.

    >>> meanings = [("n", "count", "int"), ("n", "sum", "float"), ("dev", "key", "text")]
    >>> column_names([Meaning(*meaning) for meaning in meanings])
    {Meaning(name='dev', merge='key', type='text'): 'dev', \
Meaning(name='n', merge='count', type='int'): 'n_count_int', \
Meaning(name='n', merge='sum', type='float'): 'n_sum_float'}
    """
    uses = Counter(part.name.lower() for part in found)
    uses.update(FIXED_COLUMNS)
    return {
        part: part.name if uses[part.name.lower()] == 1 else f"{part.name}_{part.merge}_{part.type}"
        for part in sorted(found, key=lambda part: (part.merge != "key", part))
    }


def _column(part: Meaning) -> Column:
    if part.merge == "key":
        return F.element_at(F.from_json("keys", "MAP<STRING, STRING>"), F.lit(part.name))
    same = F.filter(
        "values",
        lambda value: (
            F.struct(value["name"], value["merge"], value["type"])
            == F.struct(F.lit(part.name), F.lit(part.merge), F.lit(part.type))
        ),
    )
    is_whole = (part.type == "int" and part.merge != "avg") or part.merge == "theta"
    field = (
        "text" if part.merge in ("kll", "top_k") or part.type == "text" else "whole" if is_whole else "real"
    )
    return F.get(same, F.lit(0))[field]


def show(spark: SparkSession, out: str) -> None:
    """Print the newest windows of every rule."""
    tables = open_tables(spark, out)
    version = tables.current()
    for rule_id in rules(version):
        keys = [key for key in version.fleet if key.startswith(f"of_rule={rule_id}/")]
        table = _pivoted(tables.read([version.fleet[key] for key in keys], states.FLEET)).drop(
            "keys", "run", "rule_hashes"
        )
        print(f"\nfleet of rule {rule_id}, version {version.number}")
        by = [name for name in table.columns if name not in ("level", "window_start")]
        newest = table.orderBy(F.desc("window_start"), *by).limit(SHOWN_ROWS)
        newest.orderBy("window_start", *by).show(SHOWN_ROWS, truncate=False)
