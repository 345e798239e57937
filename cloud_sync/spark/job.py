"""`penstock cloud aggregate BUCKET OUT`: uploaded files in, fleet tables out, as often as you like.

    bucket -> files that the tables do not know -> batches (`aggregate`) -> versions (`tables`)

The list of files that were taken in is a table beside the fleet, in the same version. So there is no
checkpoint that could be lost or disagree: a run that is killed at any instant is as if it had not begun, or
as if it had ended. Every run looks again at files that do not count, so one that was restored, or that came
after its manifest, counts in the next.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.names import is_of_uploads
from cloud_sync.spark import delta, heartbeats, intake, maintenance, quality, view
from cloud_sync.spark.aggregate import Batch
from cloud_sync.spark.arrivals import LOOKBACK_MS, Listing, recent
from cloud_sync.spark.java import JavaMissing
from cloud_sync.spark.lease import LeaseHeld, held
from cloud_sync.spark.ledger import files, quarantine, runs
from cloud_sync.spark.ledger.metrics import Metrics, noteworthy, write
from cloud_sync.spark.session import (
    SparkEnded,
    SparkMissing,
    errors_of_spark,
    failure_in_words,
    remedied,
    session,
)
from cloud_sync.spark.storage import Storage, StorageMissing, open_storage
from cloud_sync.spark.tables import (
    MissingPart,
    Overtaken,
    Part,
    Tables,
    UnknownOrigin,
    UnknownVersion,
    Version,
    local,
    open_tables,
)
from rules.problems import in_words

OK, FAILED, QUARANTINED, BROKEN = 0, 1, 2, 3
"""Exit codes. BROKEN: everything is committed, and a check of a rule says that the run has failed."""

FILES_PER_BATCH = 2_000
"""The number of files of one version, whose names the driver holds in memory."""
_IN_WORDS = (
    JavaMissing,
    SparkEnded,
    SparkMissing,
    StorageMissing,
    LeaseHeld,
    Overtaken,
    MissingPart,
    UnknownOrigin,
    UnknownVersion,
)


class JobError(Exception):
    """The job cannot run or did not end well; the text says why."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run. `now_ms` is the wall clock, for the lease and for checks of freshness. `keys` of
    gateways: only manifests that they signed count. `retain_days`: afterwards older days are dropped.
    `lookback_ms`: how far from the last listing an hour of the bucket is listed again; `everything`: the
    whole bucket is listed."""

    now_ms: Callable[[], int]
    master: str | None = None
    show: bool = False
    dry_run: bool = False
    files_per_batch: int = FILES_PER_BATCH
    metrics_file: str | None = None
    delta: bool = False
    keys: Mapping[str, str] | None = field(default=None, repr=False)
    retain_days: int | None = None
    lookback_ms: int = LOOKBACK_MS
    everything: bool = False


def main(bucket: str, out: str, options: Options) -> int:
    """Run the job once and return the exit code: 0 ok, 2 something is in quarantine or conflicts,
    3 a check that fails the run is broken, 1 failed.

    `bucket` and `out` are paths that Spark can read. `show` prints the fleet tables, `dry_run` checks every
    new file and writes nothing, `delta` keeps the fleet as a Delta table too. Metrics go to standard output
    (or to `metrics_file`) as one line of JSON.
    """
    try:
        with opened(options.master, delta=options.delta) as spark:
            metrics = aggregate(spark, bucket, out, options)
            if options.retain_days is not None and not options.dry_run:
                maintenance.retain(spark, out, options.retain_days, options.now_ms)
            if options.show and not options.dry_run:
                view.show(spark, out)
    except JobError as error:
        print(f"penstock cloud aggregate: {error}", file=sys.stderr)
        return FAILED
    is_written = write(metrics, options.metrics_file)
    for sentence in (*metrics.failed, *noteworthy(metrics, out, options.dry_run)):
        print(f"penstock cloud aggregate: {sentence}", file=sys.stderr)
    if metrics.failed:
        return BROKEN
    if not is_written:
        return FAILED
    return QUARANTINED if metrics.quarantined or metrics.held or metrics.conflicting else OK


@contextmanager
def opened(master: str | None, *, delta: bool = False) -> Iterator[SparkSession]:
    """The job's session; every failure that a user can cause leaves the block as JobError."""
    try:
        with session(master, delta=delta) as spark:
            yield spark
    except OSError as error:
        raise JobError(remedied(in_words(error), error.errno)) from error
    except _IN_WORDS as error:
        raise JobError(str(error)) from error
    except errors_of_spark() as error:
        raise JobError(f"Spark failed: {failure_in_words(error)}") from error


@contextmanager
def leased(spark: SparkSession, out: str, now_ms: Callable[[], int]) -> Iterator[None]:
    """The lease of OUT for the length of the block: a second run is refused. Raises LeaseHeld."""
    with held(open_storage(spark, out), uuid.uuid4().hex[:12], now_ms):
        yield


def check_made(spark: SparkSession, out: str) -> None:
    """Raises JobError where no job has made the fleet tables of OUT: its name may be mistyped."""
    if not open_tables(spark, out).current().number:
        raise JobError(f"{out} holds no fleet tables; penstock cloud aggregate makes them")


def aggregate(spark: SparkSession, bucket: str, out: str, options: Options) -> Metrics:
    """Take in every file that the tables do not know."""
    source, storage = open_storage(spark, bucket), open_storage(spark, out)
    if not any(map(is_of_uploads, source.names(""))):
        found = "holds no uploads" if source.is_folder("") else "is no folder"
        raise JobError(f"{bucket} {found}; give the path to which gateways upload (cloud.target)")
    tables = Tables(spark, storage)
    run = uuid.uuid4().hex[:12]
    if options.dry_run:
        return _checked(spark, source, tables, options)
    with held(storage, run, options.now_ms) as lease:
        metrics = _Run(spark, source, tables, run, lease.renew, options).all()
        _note_freshness(spark, tables, metrics, options.now_ms())
        if options.delta:
            lease.renew()
            delta.publish(spark, tables)
        return metrics


def _note_freshness(spark: SparkSession, tables: Tables, metrics: Metrics, now_ms: int) -> None:
    """Name the gateways whose rows are older than their rule allows."""
    stale = quality.freshness(spark, tables, now_ms).persist()
    named = stale.orderBy("rule", "gateway").limit(quality.NAMED_MAX).collect()
    metrics.stale = [f"{row['gateway']} {row['rule']}" for row in named]
    failing = stale.where(stale["outcome"] == quality.FAIL).groupBy("rule").count().orderBy("rule").collect()
    metrics.failed += [f"rule {row['rule']}: {row['count']} gateways are behind" for row in failing]
    stale.unpersist()


def _checked(spark: SparkSession, bucket: Storage, tables: Tables, options: Options) -> Metrics:
    """Read every new file and count what would be refused; write nothing."""
    current = tables.current()
    found = _found(spark, bucket, tables, _listing(bucket, current, options).folders)
    metrics = Metrics(version=current.number, quarantined=found.others.count() if found.others else 0)
    with closing(_batches(found.new, options.files_per_batch)) as batches:
        for named in filter(None, batches):
            listed = intake.measured(bucket, named)
            read = intake.read(spark, bucket, listed, options.keys).persist()
            bad = read.where("reason IS NOT NULL").count()
            metrics.rows += read.count() - bad
            metrics.quarantined += bad
            metrics.files += len(listed) - bad
            metrics.batches += 1
            read.unpersist()
    return metrics


def _listing(bucket: Storage, current: Version, options: Options) -> Listing:
    """The listing of this run."""
    at_ms = options.now_ms()
    if options.everything or not current.listed_ms:
        return Listing(None, at_ms, current.turn)
    return recent(bucket, Listing([], current.listed_ms, current.turn), at_ms, options.lookback_ms)


@dataclass(frozen=True, slots=True)
class _Found:
    """The files that a run looks at: `new` ones (rows of `intake.NAMES`), with those in quarantine whose turn
    it is. `others` stay there until it is theirs (None: there are none); `looked_at` is as in `Version`."""

    new: DataFrame
    others: DataFrame | None
    looked_at: str


def _found(spark: SparkSession, bucket: Storage, tables: Tables, folders: list[str] | None) -> _Found:
    """The files in some folders of arrivals that the tables do not know, and those in quarantine."""
    current = tables.current()
    bad = quarantine.read(tables, current)
    again, looked_at = quarantine.due(bad, current.looked_at) if current.quarantine else ([], "")
    # A file that a killed run has taken in out of quarantine is found again by its numbers (`ranges`).
    known = files.known(tables, current, folders)
    found = intake.listing(spark, bucket, folders).unionByName(
        local(spark, again, "name STRING, place STRING"), allowMissingColumns=True
    )
    # Of several places the first one that was seen now, else the one where it was found before.
    best = F.min(F.struct(F.isnull("length").alias("1"), F.isnull("place").alias("2"), "place", "length"))
    each = found.groupBy("name").agg(best.alias("best")).select("name", "best.place", "best.length")
    others = bad.join(found, bad["manifest"] == found["name"], "left_anti").dropDuplicates(["manifest"])
    return _Found(each.join(known, "name", "left_anti"), others if looked_at else None, looked_at)


def _batches(new: DataFrame, size: int) -> Generator[list[Any]]:
    """The rows of `new` in lists of `size`, ordered by name; the last one is shorter."""
    named = new.persist()
    last, batch = "", None
    try:
        while batch is None or len(batch) == size:
            batch = named.where(named["name"] > last).orderBy("name").limit(size).collect()
            yield batch
            last = batch[-1]["name"] if batch else last
    finally:  # else the next run of this process, whose plan is the same, would be given this list
        named.unpersist()


class _Run:
    """One run over one bucket, with the lease in hand."""

    def __init__(
        self,
        spark: SparkSession,
        bucket: Storage,
        tables: Tables,
        run: str,
        renew: Callable[[], None],
        options: Options,
    ) -> None:
        self._spark = spark
        self._bucket = bucket
        self._tables = tables
        self._run = run
        self._renew = renew
        self._options = options
        current = tables.current()
        self._is_first = not current.number
        self._metrics = Metrics(run=run, version=current.number)
        self._quarantine: list[Part] = []
        self._looked_at = ""
        self._quarantine_before = current.quarantine
        self._heartbeats = current.heartbeats
        self._listing = _listing(bucket, current, options)

    def all(self) -> Metrics:
        """Take in all new files in batches; each is a version. The first one holds the new heartbeats."""
        self._heartbeats = self._newest_heartbeats()
        found = _found(self._spark, self._bucket, self._tables, self._listing.folders)
        self._keep(found)
        with closing(_batches(found.new, self._options.files_per_batch)) as batches:
            for number, named in enumerate(batches):
                self._renew()
                self._batch(named, f"{self._run}-{number}")
        if self._is_first and self._metrics.version:
            self._tables.sweep()
        if self._metrics.files:
            self._metrics.twins = view.twins(self._tables)
        return self._metrics

    def _keep(self, found: _Found) -> None:
        """Let the files stay in quarantine that this run does not look at."""
        self._looked_at = found.looked_at
        if found.others is not None:
            path = f"quarantine/run={self._run}-others"
            self._tables.write(found.others.coalesce(1), path)
            self._quarantine = [Part(path, self._tables.read([path], quarantine.QUARANTINE).count())]
            self._metrics.quarantined = self._quarantine[0].rows

    def _batch(self, named: list[Any], run: str) -> None:
        version = self._tables.current().copy()
        version.number, version.run = version.number + 1, run
        is_last = len(named) < self._options.files_per_batch
        if is_last:  # all that was listed is taken in
            version.listed_ms, version.turn = self._listing.at_ms, self._listing.turn
            version.looked_at = self._looked_at
        listed = intake.measured(self._bucket, named)
        self._metrics.batches += bool(listed)
        # In the end the table holds what this run has found, and the files that it did not look at. Until
        # then those of the last run stay: were this one killed, the next would know where to look.
        version.quarantine = list(self._quarantine)
        version.heartbeats = self._heartbeats
        at_ms = self._listing.at_ms
        with closing(Batch(self._spark, self._bucket, self._tables, version, run, at_ms)) as batch:
            counts = batch.take(listed, self._options.keys)
        if is_last and not counts.files and _same(self._tables, version):
            self._metrics.add(counts)
            return
        self._quarantine = version.quarantine
        if not is_last:
            version.quarantine = [*self._quarantine_before, *self._quarantine]
        version.files = self._tables.merged(version.files, run, "files", files.FILES, files.ORDER)
        version.checks = self._tables.merged(version.checks, run, "checks", quality.CHECKS)
        version.runs.append(runs.note(self._spark, self._tables, run, version.number, asdict(counts)))
        version.runs = self._tables.merged(version.runs, run, "runs", runs.RUNS)
        self._tables.commit(version)
        self._metrics.add(counts)
        self._metrics.version = version.number

    def _newest_heartbeats(self) -> list[Part]:
        """The table of heartbeats, written anew if one is new: a row for each spool."""
        parts = self._tables.current().heartbeats
        known = self._tables.read(parts, heartbeats.HEARTBEATS)
        path = f"heartbeats/run={self._run}-0"
        new = heartbeats.new(self._spark, self._bucket, known).persist()
        try:
            if new.isEmpty():
                return parts
            self._tables.write(heartbeats.newest(known, new).coalesce(1), path)
        finally:
            new.unpersist()
        return [Part(path)]


def _same(tables: Tables, version: Version) -> bool:
    """True if a version without new files equals the current one: the same heartbeats and turn,
    and in quarantine the same files for the same reasons."""
    current = tables.current()
    if version.heartbeats != current.heartbeats:
        return False
    if (version.turn, version.looked_at) != (current.turn, current.looked_at):
        return False
    if not (version.quarantine and current.quarantine):
        return not (version.quarantine or current.quarantine)
    before, after = (
        tables.read(parts, quarantine.QUARANTINE).select("manifest", "reason")
        for parts in (current.quarantine, version.quarantine)
    )
    return before.exceptAll(after).isEmpty() and after.exceptAll(before).isEmpty()
