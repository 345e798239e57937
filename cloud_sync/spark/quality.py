"""Schemas of the rules and the checks of their rows: what is kept of them beside the tables,
and what follows.

A schema comes with the first file that names it, and its file is copied into OUT.
A record says which checks of its schema it breaks;
`warn` is counted, `quarantine` and `fail` keep the record out,
and `fail` ends the run with an exit code of its own after everything else is committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.names import safe, schema_name
from cloud_sync.schemas import Schema, read_schema, versions
from cloud_sync.spark.intake import data_name
from cloud_sync.spark.ledger import spools
from cloud_sync.spark.storage import Storage
from cloud_sync.spark.tables import Tables, Version, local, nothing

SCHEMAS = "schemas"
"""The folder of copied schemas in OUT."""
CHECKS = (
    "rule STRING, gateway STRING, file STRING, check STRING, outcome STRING, rows BIGINT, "
    "seqs ARRAY<BIGINT>, run STRING"
)
"""The checks that records broke: one row per file and check. `seqs` are the first ones."""
SEQS_MAX = 20
NAMED_MAX = 100
"""The most gateways of stale rules that a run names."""
WARN, FAIL = "warn", "fail"


def is_held() -> Column:
    """True for a record that does not count because of a check."""
    return F.coalesce(F.exists("broken", lambda item: item["outcome"] != WARN), F.lit(False))


def keep_schema(bucket: Storage, tables: Tables, version: Version, rule: str, schema: str) -> None:
    """Copy a schema that a file of a rule names into OUT, unless the version knows it."""
    known = version.schemas.setdefault(safe(rule), [])
    if schema in known:
        return
    content = bucket.read(schema_name(rule, schema))
    if content is not None:  # else it was deleted during the run; the next file brings it again
        tables.storage.create(_copy(safe(rule), schema), content)
        known.append(schema)


def _copy(rule_id: str, schema: str) -> str:
    return f"{SCHEMAS}/rule={rule_id}/{schema}.json"


def schemas_of(tables: Tables, version: Version, rule_id: str) -> list[Schema]:
    """The schemas of a rule, in the order in which they appeared."""
    return _read(tables, rule_id, version.schemas.get(rule_id, ()))


def _read(tables: Tables, rule_id: str, schemas: Sequence[str]) -> list[Schema]:
    """Those of some schemas of a rule whose copies are there."""
    contents = (tables.storage.read(_copy(rule_id, schema)) for schema in schemas)
    return [read_schema(content) for content in contents if content is not None]


def of_version(schemas: Sequence[Schema], number: int) -> list[Schema]:
    """The schemas that make one version of the rule's table, counted from 1. Raises ValueError."""
    found = [schema for schema, of in zip(schemas, versions(schemas), strict=True) if of == number]
    if not found:
        raise ValueError(f"there is no version {number} of the table; there are {len({*versions(schemas)})}")
    return found


def broken(read: DataFrame, run: str) -> DataFrame:
    """The checks (CHECKS) that the records of some files (`intake.READ`) break."""
    each = read.select("rule", "gateway", "manifest", "seq", F.explode("broken").alias("one"))
    found = each.groupBy("rule", "gateway", "manifest", "one.check", "one.outcome").agg(
        F.count("*").alias("rows"), F.slice(F.sort_array(F.collect_list("seq")), 1, SEQS_MAX).alias("seqs")
    )
    file = F.udf(data_name, "STRING", useArrow=False)("manifest")
    return found.select(
        "rule", "gateway", file.alias("file"), "check", "outcome", "rows", "seqs", F.lit(run).alias("run")
    )


def failures(found: DataFrame) -> list[str]:
    """The checks that fail the run, in words."""
    failed = (
        found.where(F.col("outcome") == FAIL)
        .groupBy("rule", "check")
        .agg(F.sum("rows").alias("rows"), F.count_distinct("gateway").alias("gateways"))
    )
    return [
        f"rule {row['rule']}: {row['check']}: broken by {row['rows']} rows of {row['gateways']} gateways"
        for row in failed.orderBy("rule", "check").collect()
    ]


def freshness_limits(tables: Tables, version: Version) -> list[tuple[str, int, str]]:
    """Rule id, milliseconds and outcome of each check of freshness. Only the newest schemas are read."""
    return [
        (rule_id, check.freshness_ms, check.then)
        for rule_id, schemas in version.schemas.items()
        for schema in _read(tables, rule_id, schemas[-1:])
        for check in schema.expect
        if check.freshness_ms is not None
    ]


def freshness(spark: SparkSession, tables: Tables, now_ms: int) -> DataFrame:
    """Gateways whose newest window of a rule is older than the rule's newest schema allows: gateway, rule,
    `behind_ms`, `outcome`."""
    version = tables.current()
    limits = freshness_limits(tables, version)
    if not limits:
        return nothing(spark, "gateway STRING, rule STRING, behind_ms BIGINT, outcome STRING")
    bounds = local(spark, limits, "rule_id STRING, freshness_ms BIGINT, outcome STRING")
    newest_ms = spools.summed(spools.read(tables, version), "gateway", "rule", "rule_id").withColumn(
        "behind_ms", F.lit(now_ms) - spools.newest_ms()
    )
    stale = newest_ms.join(F.broadcast(bounds), "rule_id").where("behind_ms > freshness_ms")
    return stale.select("gateway", "rule", "behind_ms", "outcome")
