"""One batch of new files: from their names to the next version of the tables.

    listed files -> read and checked -> records, each identity once -> states of touched windows,
    merged into the fleet
                          |                       |
                          +-> quarantine          +-> which files were taken in

The cost of a batch follows its new rows: records become parts of their own, and of the fleet only the
partitions (rule, level, day) of touched windows are written again, from their states. Only files of one spool
and rule whose ranges of sequence numbers overlap can share an identity (`settle`); if none do, no earlier
record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cloud_sync.names import utc_date
from cloud_sync.spark import fleet, intake, quality
from cloud_sync.spark.ledger import spools
from cloud_sync.spark.ledger.files import FILES, SUMMARY, hour_of
from cloud_sync.spark.ledger.identities import settle
from cloud_sync.spark.ledger.metrics import Counts
from cloud_sync.spark.ledger.quarantine import QUARANTINE
from cloud_sync.spark.ledger.ranges import overlapping
from cloud_sync.spark.storage import Storage
from cloud_sync.spark.tables import Part, Tables, Version, local, nothing, values_in

RECORDS_PARTS_MAX = 50
"""A partition of records with more parts than this is written again as one part."""


class Batch:
    """One batch, which changes `version`. `run` is unique and names the folders of the written parts; `at_ms`
    is the instant of the run. Nothing counts before the version is committed. `close` frees what it has
    cached."""

    def __init__(
        self,
        spark: SparkSession,
        bucket: Storage,
        tables: Tables,
        version: Version,
        run: str,
        at_ms: int | None = None,
    ) -> None:
        self.counts = Counts()
        self._spark = spark
        self._bucket = bucket
        self._tables = tables
        self._version = version
        self.run = run
        self._at_ms = at_ms
        self._frames: list[DataFrame] = []

    def cached(self, frame: DataFrame) -> DataFrame:
        """A frame that Spark computes once for this batch."""
        self._frames.append(frame.persist())
        return frame

    def close(self) -> None:
        """Free the cached frames. Each write of a session looks through all files behind those that it still
        has, so they would make every later batch slower."""
        for frame in self._frames:
            frame.unpersist()
        self._frames = []

    def take(self, listed: Sequence[intake.Listed], keys: intake.Keys | None = None) -> Counts:
        """Take in the listed files; with `keys` only those that are signed."""
        read = self.cached(intake.read(self._spark, self._bucket, listed, keys))
        found = _summaries(read).collect() if listed else []
        places = {file.name: file.place for file in listed if file.length is not None}
        self._quarantine([row for row in found if row["reason"] is not None], places)
        good = [row for row in found if row["reason"] is None]
        if good:
            self._count(read.where("reason IS NULL"), good, places)
        return self.counts

    def _quarantine(self, bad: Sequence[Any], places: Mapping[str, str]) -> None:
        self.counts.quarantined = len(bad)
        if bad:
            rows = [
                (name, intake.data_name(name), row["reason"], self.run, places.get(name))
                for row in bad
                for name in [row["manifest"]]
            ]
            path = f"quarantine/run={self.run}"
            self._tables.write(local(self._spark, rows, QUARANTINE).coalesce(1), path)
            self._version.quarantine.append(Part(path, len(rows)))

    def _count(self, read: DataFrame, found: Sequence[Any], places: Mapping[str, str]) -> None:
        """Take in files that are as they were announced."""
        version = self._version
        older = overlapping(self._spark, self._tables, version, found)
        again = {row["again"] for row in older if row["again"]}
        counted: dict[str, tuple[int, int]] = {}
        if new := [row for row in found if row["manifest"] not in again]:
            old_keys = {records_key(row["rule_id"], row["day"]) for row in older} & version.records.keys()
            records = read.where(~F.col("manifest").isin(again)) if again else read
            counted = self._counted(records, new, sorted(old_keys))
        rows = []
        for row in found:
            name = row["manifest"]
            count, conflicting = counted.get(name, (0, 0))
            told = (0, 0, 0, 0) if name in again else (row["rows"], count, row["held"], conflicting)
            origin = (row[column] for column in names_of(SUMMARY))
            rows.append((*origin, *told, self.run, hour_of(places.get(name))))
        self.close()  # what follows does not read the records again
        self._note(local(self._spark, rows, FILES), len(rows))

    def _counted(
        self, read: DataFrame, files: Sequence[Any], old_keys: Sequence[str]
    ) -> dict[str, tuple[int, int]]:
        """Take in the records of new files; the numbers of those that count and of conflicting ones, by file.
        `old_keys` are the partitions that may hold some of them already."""
        counts, version = self.counts, self._version
        counts.files, counts.rows = len(files), sum(row["rows"] for row in files)
        kept = [row for row in files if row["day"] >= version.retained_from]
        counts.expired = counts.rows - sum(row["rows"] for row in kept)
        if not kept:
            return {}
        self._judge(read, kept)
        counts.held = sum(row["held"] for row in kept)
        records = (
            read.where((F.col("day") >= version.retained_from) & ~quality.is_held())
            .withColumns({"file": F.col("manifest"), "run": F.lit(self.run)})
            .select(*names_of(fleet.RECORDS))
        )
        if not old_keys and not _overlap(kept):
            self._write(records, self._dirty(records, None, kept), None, kept)
            return {row["manifest"]: (row["rows"] - row["held"], 0) for row in kept}
        offered = counts.rows - counts.expired - counts.held
        settled = settle(records, offered, self._records(old_keys), self.cached)
        counts.duplicates, counts.conflicting = settled.duplicates, sum(settled.conflicting.values())
        dirty = self._dirty(settled.new, settled.replaced, kept)
        self._write(settled.new, dirty, settled.replaced, kept)
        new = {row["file"]: row["count"] for row in settled.added.groupBy("file").count().collect()}
        other = settled.conflicting
        counts.copied = sorted({row["gateway"] for row in kept if other.get(row["manifest"])})
        return {name: (new.get(name, 0), other.get(name, 0)) for name in (row["manifest"] for row in kept)}

    def _note(self, files: DataFrame, count: int) -> None:
        """Add files (rows of FILES) to the table of them, and to what those of each spool add up to."""
        version = self._version
        before = spools.read(self._tables, version)
        path = f"files/run={self.run}"
        self._tables.write(files.coalesce(1), path)
        version.files.append(Part(path, count))
        both = before.unionByName(spools.of_files(files, version.retained_from, self._at_ms))
        path = f"spools/run={self.run}"
        self._tables.write(spools.summed(both, *spools.KEY).coalesce(1), path)
        version.spools = [Part(path)]

    def _judge(self, read: DataFrame, files: Sequence[Any]) -> None:
        """Note the schemas of the files, and the checks that their records break."""
        declared = {(row["first_ms"], row["rule"], row["schema"]) for row in files if row["schema"]}
        for _, rule, schema in sorted(declared):
            quality.keep_schema(self._bucket, self._tables, self._version, rule, schema)
        if any(row["broken"] for row in files):
            path = f"checks/run={self.run}"
            broken = self.cached(quality.broken(read, self.run))
            self._tables.write(broken.coalesce(1), path)
            self._version.checks.append(Part(path, broken.count()))
            self.counts.failed = quality.failures(broken)

    def _dirty(self, new: DataFrame, replaced: DataFrame | None, files: Sequence[Any]) -> DataFrame | None:
        """The groups that are made anew: those of replaced records, and those of rules that restate windows,
        where a record counts or not depending on others. None for none."""
        version = self._version
        version.restated = sorted({*version.restated, *(row["rule_id"] for row in files if row["restates"])})
        version.sketched = sorted({*version.sketched, *(row["rule_id"] for row in files if row["sketches"])})
        rules = sorted({row["rule_id"] for row in files} & set(version.restated))
        found = [new.where(F.col("rule_id").isin(rules))] if rules else []
        found += [] if replaced is None else [replaced]
        groups = [self.groups_of(records).select(*fleet.GROUP) for records in found]
        return self.cached(reduce(DataFrame.unionByName, groups).distinct()) if groups else None

    def groups_of(self, records: DataFrame) -> DataFrame:
        """One row per record and level, for the windows that the tables keep."""
        return fleet.groups_of(records, self._version.retained_from)

    def _records(self, keys: Iterable[str]) -> DataFrame | None:
        paths = [path for key in keys for path in self._version.records.get(key, ())]
        return self._tables.read(paths, fleet.RECORDS) if paths else None

    # --- writing --------------------------------------------------------------------------------------------

    def _write(
        self, new: DataFrame, dirty: DataFrame | None, replaced: DataFrame | None, files: Sequence[Any]
    ) -> None:
        """Write new records, take out those that they have replaced, and write the fleet windows that they
        touch; groups in `dirty` are made anew. `files` tell which partitions those are in."""
        keys = sorted({records_key(row["rule_id"], row["day"]) for row in files})
        columns = [F.col("rule_id").alias("of_rule"), F.col("day").alias("of_day")]
        stored = new.select(*names_of(fleet.RECORDS), *columns)
        path = f"records/run={self.run}"
        self._tables.write(stored.repartition("of_rule", "of_day"), path, "of_rule", "of_day")
        written = self._tables.written("records", self.run, keys)
        for key, part in written.items():
            self._version.records.setdefault(key, []).append(part)
        if replaced is not None and dirty is not None:
            self.rewrite_records(self._keys_of(dirty), replaced.select(*fleet.IDENTITY, "digest"))
        self.rewrite_records(
            [key for key in written if len(self._version.records[key]) > RECORDS_PARTS_MAX], None
        )
        touched = {"/".join((f"of_rule={row['rule_id']}", *spot)) for row in files for spot in _spots(row)}
        sketches = self._sketches({row["rule_id"] for row in files})
        cells = fleet.contributions(self.groups_of(new), sketches=sketches)
        self.merge(cells, touched, dirty, sketches=sketches)

    def _sketches(self, rules: set[str]) -> bool:
        """True if states of these rules may hold sketches."""
        return not rules.isdisjoint(self._version.sketched)

    def rewrite_records(self, keys: Iterable[str], without: DataFrame | None) -> None:
        """Write partitions of records anew as one part each; `without` holds columns and values of rows to
        leave out."""
        for key in sorted(keys):
            records = self._tables.read(self._version.records[key], fleet.RECORDS)
            if without is not None:
                records = records.join(without, without.columns, "left_anti")
                if records.isEmpty():
                    del self._version.records[key]
                    continue
            path = f"records/run={self.run}/whole/{key}"
            self._tables.write(records.coalesce(1), path)
            self._version.records[key] = [path]

    def _keys_of(self, dirty: DataFrame) -> list[str]:
        """The partitions that can hold records of these groups."""
        bounds = dirty.groupBy("rule_id").agg(F.min("start_ms"), F.max("end_ms")).collect()
        spans = {row[0]: (utc_date(row[1]), utc_date(row[2])) for row in bounds}
        found = []
        for key in self._version.records:
            rule_id, day = values_in(key)
            if rule_id in spans and spans[rule_id][0] <= day <= spans[rule_id][1]:
                found.append(key)
        return found

    def merge(
        self, cells: DataFrame, keys: set[str], dirty: DataFrame | None, *, sketches: bool = False
    ) -> None:
        """Merge new cells into the fleet partitions `keys` and write these again. Groups in `dirty` are made
        anew from the records. `sketches`: there may be some."""
        group = list(fleet.GROUP)
        fresh = self.cached(cells)
        touched = fresh.select(*group)
        if dirty is not None:
            touched = touched.unionByName(dirty.select(*group))
            keys = keys | self._fleet_keys(dirty)
        touched = touched.distinct()
        old = self._tables.read(
            [self._version.fleet[key] for key in keys if key in self._version.fleet], fleet.FLEET
        )
        both = fresh.unionByName(fleet.cells_of(old.join(touched, group, "left_semi")))
        if dirty is not None:
            both = both.join(dirty, group, "left_anti").unionByName(self._anew(dirty, sketches))
        rows = fleet.rows_of(fleet.merged(both, sketches=sketches), self.run)
        written = old.join(touched, group, "left_anti").unionByName(rows).withColumns(fleet.partition())
        self._tables.write(written.repartition(*fleet.PARTITION), f"fleet/run={self.run}", *fleet.PARTITION)
        for key in keys:
            self._version.fleet.pop(key, None)
        self._version.fleet |= self._tables.written("fleet", self.run, keys)

    def _fleet_keys(self, groups: DataFrame) -> set[str]:
        found = groups.select(*(column.alias(name) for name, column in fleet.partition().items())).distinct()
        return {"/".join(f"{name}={row[name]}" for name in fleet.PARTITION) for row in found.collect()}

    def _anew(self, dirty: DataFrame, sketches: bool) -> DataFrame:
        """The cells of these groups from all their records."""
        records = self._records(self._keys_of(dirty))
        records = nothing(self._spark, fleet.RECORDS) if records is None else records
        grouped = self.groups_of(records).join(dirty, list(fleet.GROUP), "left_semi")
        return fleet.contributions(fleet.current(grouped), sketches=sketches)


def _summaries(read: DataFrame) -> DataFrame:
    """One row per file: its entry of the ledger, or the reason why it does not count; and the days of its
    windows."""
    spots = F.transform(
        "windows",
        lambda span: F.struct(
            span["level"].alias("level"),
            F.date_format(F.timestamp_millis(span["start"]), "yyyy-MM-dd").alias("day"),
        ),
    )
    return read.groupBy("manifest", "reason", "rule_id", "day", "gateway", "spool", "rule").agg(
        F.min("seq").alias("first_seq"),
        F.max("seq").alias("last_seq"),
        F.count("*").alias("rows"),
        F.min("window_start").alias("first_ms"),
        F.max("window_end").alias("last_ms"),
        F.collect_set(spots).alias("spots"),
        (F.max("revision") > 0).alias("restates"),
        F.bool_or(F.exists("values", lambda value: value["type"] == "sketch")).alias("sketches"),
        F.max("schema").alias("schema"),
        F.count_if(F.size("broken") > 0).alias("broken"),
        F.count_if(quality.is_held()).alias("held"),
    )


def _spots(file: Any) -> set[tuple[str, str]]:
    """The fleet partitions below its rule that a file touches."""
    return {
        (f"of_level={spot['level']}", f"of_day={spot['day']}") for spots in file["spots"] for spot in spots
    }


def _overlap(files: Sequence[Any]) -> bool:
    """True if two files of one spool and rule have sequence numbers in the same range."""
    last: dict[tuple[str, str, str], int] = {}
    for row in sorted(files, key=lambda row: int(row["first_seq"])):
        origin = (row["gateway"], row["spool"], row["rule"])
        if row["first_seq"] <= last.get(origin, -1):
            return True
        last[origin] = row["last_seq"]
    return False


def records_key(rule_id: str, day: str) -> str:
    """The partition of the records of a rule and day."""
    return f"of_rule={rule_id}/of_day={day}"


def names_of(schema: str) -> list[str]:
    """The columns of a schema."""
    found = StructType.fromDDL(schema)
    assert isinstance(found, StructType)
    return found.names
