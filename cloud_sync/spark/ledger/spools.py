"""The table of spools: what the files of each spool and rule add up to.

A batch writes it anew, from the last one and its own files. Its size follows the number of gateways,
so what a run asks of it costs the same after years.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cloud_sync.spark.ledger import files
from cloud_sync.spark.tables import Tables, Version

KEY = ("gateway", "spool", "rule", "rule_id")
SUMS = ("rows", "held", "duplicates", "seen", "conflicting")
SPOOLS = (
    ", ".join(f"{name} STRING" for name in KEY)
    + ", "
    + ", ".join(f"{name} BIGINT" for name in (*SUMS, "highest_seq", "first_ms", "last_ms", "taken_ms"))
)
"""By spool and rule: `rows` that are in the tables, rows that are `held` back by a check, `duplicates`,
`seen` (all but the duplicates: also those that came after their day was dropped), the highest sequence
number, the bounds of the windows, and the instant at which a run last took in a file: NULL after gateway or
rule were forgotten. `conflicting` rows have another content elsewhere (`identities`). Rows of earlier
versions lack these and the instant."""


def of_files(found: DataFrame, retained_from: str, taken_ms: int | None) -> DataFrame:
    """Files as rows of the table. `taken_ms`: when they were taken in, None if that is not known."""
    held = F.coalesce("held", F.lit(0))
    seen = F.when(F.col("day") < retained_from, F.col("rows")).otherwise(F.col("counted") + held)
    return found.select(
        *KEY,
        F.col("counted").alias("rows"),
        held.alias("held"),
        (F.col("rows") - seen).alias("duplicates"),
        seen.alias("seen"),
        "conflicting",
        F.col("last_seq").alias("highest_seq"),
        "first_ms",
        "last_ms",
        F.lit(taken_ms).cast("BIGINT").alias("taken_ms"),
    )


def summed(rows: DataFrame, *by: str) -> DataFrame:
    """Rows of the table added up by some columns of its key."""
    return rows.groupBy(*by).agg(
        *(F.sum(name).alias(name) for name in SUMS),
        F.max("highest_seq").alias("highest_seq"),
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
        F.max("taken_ms").alias("taken_ms"),
    )


def newest_ms() -> Column:
    """The end of the newest window, or the instant at which it was taken in, if that is before: the clock of
    the gateway is ahead then. Else it would look alive until the instants that it gave are past."""
    return F.least("last_ms", "taken_ms")


def forgotten(rows: DataFrame, is_gone: Column, *, keeps_records: bool) -> DataFrame:
    """The table after some spools and rules were forgotten: they have no instants, and no counts but `seen`
    if their records were taken out. `seen` and the highest sequence number stay, so files that come again are
    known."""
    gone: dict[str, int | None] = dict.fromkeys(("first_ms", "last_ms", "taken_ms"))
    if not keeps_records:
        gone |= dict.fromkeys(("rows", "held", "duplicates", "conflicting"), 0)
    return rows.withColumns(
        {name: F.when(is_gone, F.lit(value)).otherwise(F.col(name)) for name, value in gone.items()}
    )


def read(tables: Tables, version: Version) -> DataFrame:
    """The table; of a version that has none it is made of all files."""
    if version.spools:
        return tables.read(version.spools, SPOOLS)
    return summed(of_files(files.read(tables, version), version.retained_from, None), *KEY)
