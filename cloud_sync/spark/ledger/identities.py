"""Each identity once: of records that share one, that with the smallest digest counts, whatever came first.

Records of one identity that differ are conflicting: a disk was copied, or restored from an older copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cloud_sync.spark.fleet import IDENTITY, deduplicated


@dataclass(frozen=True, slots=True)
class Settled:
    """The records of a batch that count (`new`), those of them with an identity that the tables did not have
    (`added`), and the number of `duplicates`, which repeat another one. `conflicting`: by file, how many of
    its identities have another content elsewhere. `replaced`: records of the tables that no longer count."""

    new: DataFrame
    added: DataFrame
    duplicates: int = 0
    conflicting: Mapping[str, int] = field(default_factory=dict)
    replaced: DataFrame | None = None


def settle(
    records: DataFrame, rows: int, old: DataFrame | None, cached: Callable[[DataFrame], DataFrame]
) -> Settled:
    """Settle `rows` records with each other and with those of the tables (`old`; None if these can have none
    of them). `cached` makes a frame that Spark computes once."""
    identity = list(IDENTITY)
    unique = cached(deduplicated(records))
    kept, other = unique.agg(F.count("*"), F.sum("conflicting")).collect()[0]
    duplicates = rows - kept - (other or 0)
    differing = unique.where("conflicting > 0").select("file", "conflicting")
    unique = unique.drop("conflicting")
    if old is None:
        return Settled(unique, unique, duplicates, _by_file(differing) if other else {})
    before = old.select(*identity, F.col("digest").alias("old_digest"), F.struct("*").alias("old"))
    known = cached(before.join(unique.select(*identity, "digest", "file"), identity))
    same, others = known.agg(
        *(F.count_if(F.expr(f"digest {sign} old_digest")) for sign in ("=", "<>"))
    ).collect()[0]
    differing = differing.unionByName(
        known.where("digest <> old_digest").selectExpr("file", "1L AS conflicting")
    )
    conflicting = _by_file(differing) if other or others else {}
    new = unique.join(known.where("digest >= old_digest").select(*identity), identity, "left_anti")
    added = unique.join(known.select(*identity), identity, "left_anti")
    replaced = known.where("digest < old_digest").select("old.*") if others else None
    if replaced is None or replaced.isEmpty():
        return Settled(new, added, duplicates + same, conflicting)
    return Settled(new, added, duplicates + same, conflicting, cached(replaced))


def _by_file(differing: DataFrame) -> dict[str, int]:
    found = differing.groupBy("file").agg(F.sum("conflicting"))
    return {row[0]: int(row[1]) for row in found.collect()}
