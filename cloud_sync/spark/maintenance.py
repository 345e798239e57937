"""`penstock cloud compact | retain | forget`: changes of the tables other than taking in files, one version
each."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from cloud_sync.names import utc_date
from cloud_sync.spark import fleet, heartbeats
from cloud_sync.spark.aggregate import Batch, records_key
from cloud_sync.spark.lease import held
from cloud_sync.spark.ledger import files as ledger
from cloud_sync.spark.ledger import spools
from cloud_sync.spark.quality import CHECKS
from cloud_sync.spark.storage import open_storage
from cloud_sync.spark.tables import Part, Tables, UnknownOrigin, Version, encode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REMEDY = "see gateways and rules with: penstock cloud report"
VersionChange = Callable[[Batch, Tables, Version], int]
"""VersionChange a version through a batch without files; the number of changes, 0 for none."""


def compact(spark: SparkSession, out: str, now_ms: Callable[[], int]) -> int:
    """Write every partition of records as one part, and delete the parts that killed runs have left; the
    number of partitions."""

    def change(batch: Batch, tables: Tables, version: Version) -> int:
        many = [key for key, paths in version.records.items() if len(paths) > 1]
        batch.rewrite_records(many, None)
        return len(many)

    return _changed(spark, out, now_ms, change, sweeps=True)


def retain(spark: SparkSession, out: str, days: int, now_ms: Callable[[], int]) -> int:
    """Keep the windows that begin on the last `days` days (UTC) and drop older ones, with their records; the
    number of partitions dropped. Records of dropped days that arrive later are counted as expired; a dropped
    window that goes on into a day that stays is not made again from the records of that day."""

    def change(batch: Batch, tables: Tables, version: Version) -> int:
        first = utc_date(max(0, now_ms() - (days - 1) * 86_400_000))
        version.retained_from = max(version.retained_from, first)
        dropped = 0
        for table in (version.records, version.fleet):
            for key in [key for key in table if key.rpartition("of_day=")[2] < version.retained_from]:
                del table[key]
                dropped += 1
        return dropped

    return _changed(spark, out, now_ms, change)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A gateway, a rule, or a rule of a gateway that the tables are to forget. `keeps_records`: its records
    and windows stay."""

    gateway: str | None = None
    rule: str | None = None
    keeps_records: bool = False

    def matches(self) -> Column:
        """True for a row, with gateway and rule, that is forgotten."""
        wanted = {"gateway": self.gateway, "rule": self.rule}
        conditions = [F.col(name) == value for name, value in wanted.items() if value is not None]
        return reduce(operator.and_, conditions)

    def __str__(self) -> str:
        named = {"gateway": self.gateway, "rule": self.rule}
        return " with ".join(f"a {kind} {name}" for kind, name in named.items() if name is not None)


def forget(spark: SparkSession, out: str, of: Forgotten, now_ms: Callable[[], int]) -> int:
    """Take a gateway, a rule, or a rule of a gateway out of the lists of what is expected: gateways, stale
    ones and the checks that rows broke, and unless `of` keeps them out of the records; windows that they were
    in are made anew. Gives the number of records that were taken out, or else that of spools and rules that
    left the lists. Raises UnknownOrigin if the tables hold nothing of it.

    Its files stay in the bucket and are not taken in again; delete them there too. What is uploaded later
    counts as ever.
    """

    def change(batch: Batch, tables: Tables, version: Version) -> int:
        is_gone, is_whole_gateway = of.matches(), of.rule is None
        files = ledger.read(tables, version).where(is_gone)
        beats = tables.read(version.heartbeats, heartbeats.HEARTBEATS)
        told_beats = beats.where(is_gone if is_whole_gateway else F.lit(False))
        if files.isEmpty() and told_beats.isEmpty():
            raise UnknownOrigin(f"{out} holds nothing of {of}; {_REMEDY} {out}")
        reached = spools.read(tables, version)
        checks = tables.read(version.checks, CHECKS)
        still = "last_ms IS NOT NULL" + ("" if of.keeps_records else " OR rows > 0")
        listed = reached.where(is_gone).where(still).count()
        if not listed and told_beats.isEmpty() and checks.where(is_gone).isEmpty():
            return 0  # it was forgotten before
        count = listed if of.keeps_records else _forget_records(batch, tables, version, files, is_gone)
        if is_whole_gateway:
            version.heartbeats = _rewritten(batch, tables, heartbeats.forgotten(beats, is_gone), "heartbeats")
        version.checks = _rewritten(batch, tables, checks.where(~is_gone), "checks")
        left = spools.forgotten(reached, is_gone, keeps_records=of.keeps_records)
        version.spools = _rewritten(batch, tables, left, "spools")
        return count

    return _changed(spark, out, now_ms, change)


def _forget_records(batch: Batch, tables: Tables, version: Version, files: DataFrame, is_gone: Column) -> int:
    """Take the records of some files' origins out of the tables and make the windows they were in anew; the
    number of records."""
    found = files.select("rule_id", "day").distinct().collect()
    keys = sorted({records_key(*row) for row in found} & version.records.keys())
    if not keys:
        return 0
    records = tables.read([path for key in keys for path in version.records[key]], fleet.RECORDS)
    gone = records.where(is_gone)
    dirty = batch.cached(batch.groups_of(gone).select(*fleet.GROUP).distinct())
    count = gone.count()
    batch.rewrite_records(keys, batch.cached(gone.select("gateway", "rule").distinct()))
    nothing = fleet.contributions(fleet.groups_of(gone.where("false")))
    batch.merge(nothing, set(), dirty, sketches=bool(version.sketched))
    return count


def _rewritten(batch: Batch, tables: Tables, rows: DataFrame, table: str) -> list[Part]:
    """A table that is a list of parts, written anew as one."""
    part = Part(f"{table}/run={batch.run}", rows.count())
    tables.write(rows.coalesce(1), part.path)
    return [part]


def _changed(
    spark: SparkSession, out: str, now_ms: Callable[[], int], change: VersionChange, *, sweeps: bool = False
) -> int:
    """Make one version by `change`, with the lease in hand. `sweeps` deletes parts that no version names."""
    storage = open_storage(spark, out)
    tables = Tables(spark, storage)
    run = uuid.uuid4().hex[:12]
    with held(storage, run, now_ms):
        version = tables.current().copy()
        if not version.number:
            return 0
        with closing(Batch(spark, storage, tables, version, run)) as batch:
            done = change(batch, tables, version)
        if sweeps or encode(version) != encode(tables.current()):
            version.number, version.run = version.number + 1, run
            tables.commit(version)
        if sweeps:
            tables.sweep()
        return done
