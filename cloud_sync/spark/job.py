"""`penstock cloud aggregate BUCKET OUT`: uploaded files in, fleet tables out, as often as you like.

    manifests --stream, availableNow--> verify files -> OUT/rows     every record that counts, by batch
                                             |          OUT/columns  which columns each rule needs
                                             |          OUT/fleet    one table per rule, touched days written anew
                                             +--------> OUT/quarantine  what does not count, and why

Nothing counts twice, on four grounds: the checkpoint remembers manifests; a batch that is repeated overwrites what it
wrote; records are de-duplicated by identity, over all batches, whatever file they came in; and a day of a fleet table
is always computed from all its rows. So neither a crash, a lost checkpoint nor a file uploaded twice changes a number.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from cloud_sync.errors import BadTarget, TargetError
from cloud_sync.layout import MANIFESTS
from cloud_sync.spark.java import JavaMissing, find_java, use_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cloud_sync.spark.bucket import Verified

OK, FAILED, QUARANTINED = 0, 1, 2
"""Exit codes."""

FILES_PER_BATCH = 500
SHOWN_ROWS = 20
MAX_FILE_AGE = "36500d"
"""Spark skips files that are older than this relative to the newest one: late files must never be."""


@dataclass(slots=True)
class Metrics:
    """What one run did. `conflicting` rows share an identity but differ: a gateway's disk was copied or set back."""

    batches: int = 0
    files: int = 0
    rows: int = 0
    quarantined: int = 0
    unlisted: int = 0
    conflicting: int = 0
    rules: dict[str, int] = field(default_factory=dict)
    """Rule to the number of days of its fleet table that were written."""


def main(
    bucket: str,
    out: str,
    *,
    checkpoint: str | None = None,
    master: str | None = None,
    show: bool = False,
    dry_run: bool = False,
    files_per_batch: int = FILES_PER_BATCH,
    metrics_file: str | None = None,
) -> int:
    """Run the job once and return the exit code: 0 ok, 2 something is in quarantine, 1 failed.

    `bucket` is a directory or an object store's URL (mirrored to OUT/_bucket first); `out` is a directory;
    `checkpoint` defaults to OUT/_checkpoint; `master` to Spark's own setting, else all local cores. `show` prints the
    fleet tables. `dry_run` verifies every file of the bucket and writes nothing. Metrics go to standard output (or to
    `metrics_file`) as one line of JSON.
    """
    try:
        metrics = run(
            bucket, Path(out), Path(checkpoint) if checkpoint else None, master, show, dry_run, files_per_batch
        )
    except (JobError, JavaMissing, BadTarget, TargetError, OSError) as error:
        print(f"penstock cloud aggregate: {error}", file=sys.stderr)
        return FAILED
    report = json.dumps(asdict(metrics), sort_keys=True)
    if metrics_file:
        Path(metrics_file).write_text(report + "\n", encoding="utf-8")
    else:
        print(report)
    return QUARANTINED if metrics.quarantined or metrics.unlisted else OK


class JobError(Exception):
    """The job cannot run or did not end well; the text says why."""


def run(
    bucket: str, out: Path, checkpoint: Path | None, master: str | None, show: bool, dry_run: bool, files_per_batch: int
) -> Metrics:
    """The job, without its exit code. Raises JobError, JavaMissing, BadTarget, TargetError or OSError."""
    source = _local_bucket(bucket, out)
    with session(master) as spark:
        from pyspark.errors import PySparkException

        try:
            job = Job(spark, source, out, checkpoint or out / "_checkpoint")
            if dry_run:
                job.verify_all()
            else:
                job.aggregate(files_per_batch)
            if show and not dry_run:
                job.show()
            return job.metrics
        except PySparkException as error:
            raise JobError(f"Spark failed: {str(error).strip().splitlines()[0]}") from error


@contextmanager
def session(master: str | None) -> Iterator[SparkSession]:
    """The running Spark session, or a new one that ends with the block."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise JobError("PySpark is not installed; install it with: pip install 'penstock[cloud]'") from None
    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    use_java(find_java())
    # Workers would start whatever `python3` is on the PATH, which may be another Python than the driver's.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("penstock cloud aggregate")
    for key, value in session_settings(master).items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    try:
        yield started
    finally:
        started.stop()


def session_settings(master: str | None) -> dict[str, str]:
    """Spark's settings for this job; for a local master also those that keep it small and on this machine."""
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.streaming.fileSource.cleaner.numThreads": "0",
    }
    if master is None and not os.environ.get("MASTER"):
        master = "local[*]"
    if master:
        settings["spark.master"] = master
    if master and master.startswith("local"):
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.showConsoleProgress": "false",
        }
    return settings


def _local_bucket(bucket: str, out: Path) -> Path:
    scheme = urlsplit(bucket).scheme if "://" in bucket else ""
    if scheme in ("", "file"):
        path = Path(unquote(urlsplit(bucket).path) if scheme else bucket)
        if not path.is_dir():
            raise JobError(f"there is no bucket directory {path}")
        return path.absolute()
    from cloud_sync.spark.bucket import mirror
    from cloud_sync.targets import open_target

    folder = (out / "_bucket").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    mirror(open_target(bucket), folder)
    return folder


class Job:
    """One run over one bucket, in a given session."""

    def __init__(self, spark: SparkSession, bucket: Path, out: Path, checkpoint: Path) -> None:
        self.metrics = Metrics()
        self._spark = spark
        self._bucket = bucket
        self._out = out.absolute()
        self._checkpoint = checkpoint.absolute()
        self._fleet = self._out / "fleet"

    def aggregate(self, files_per_batch: int) -> None:
        """Take in every manifest that the checkpoint does not know, and bring the fleet tables up to date."""
        from cloud_sync.spark.aggregate import MANIFEST_SCHEMA
        from cloud_sync.spark.bucket import unlisted, write_listing

        manifests = self._bucket / MANIFESTS
        if manifests.is_dir():
            stream = (
                self._spark.readStream.schema(MANIFEST_SCHEMA)
                .option("recursiveFileLookup", "true")
                .option("maxFileAge", MAX_FILE_AGE)
                .option("maxFilesPerTrigger", files_per_batch)
                .json(str(manifests))
                .selectExpr("*", "_metadata.file_path AS path")
            )
            query = (
                stream.writeStream.foreachBatch(self._batch)
                .option("checkpointLocation", str(self._checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        missing = unlisted(self._bucket)
        self.metrics.unlisted = len(missing)
        write_listing(self._out / "quarantine" / "unlisted.jsonl", missing)

    def verify_all(self) -> None:
        """Check every file of the bucket and count; write nothing."""
        from cloud_sync.spark.aggregate import MANIFEST_SCHEMA
        from cloud_sync.spark.bucket import unlisted, verify

        manifests = self._bucket / MANIFESTS
        if manifests.is_dir():
            found = self._spark.read.schema(MANIFEST_SCHEMA).option("recursiveFileLookup", "true").json(str(manifests))
            self._count(
                verify(self._spark, self._bucket, found.selectExpr("*", "_metadata.file_path AS path").collect())
            )
        self.metrics.unlisted = len(unlisted(self._bucket))

    def _batch(self, manifests: DataFrame, batch_id: int) -> None:
        """One batch of manifests. May be called again for the same batch after a crash: everything it writes is named
        after the batch, or computed from all that was written."""
        from cloud_sync.spark import aggregate
        from cloud_sync.spark.bucket import verify, write_listing

        verified = verify(self._spark, self._bucket, manifests.collect())
        name = f"batch={self._query_id()}-{batch_id:06d}"
        write_listing(self._out / "quarantine" / f"{name}.jsonl", verified.quarantined)
        self.metrics.batches += 1
        rows_before = self.metrics.rows
        self._count(verified)
        if verified.records is None or self.metrics.rows == rows_before:
            return
        rows = aggregate.placed(verified.records).select(*aggregate.IDENTITY, *aggregate.PAYLOAD, "fleet_start", "date")
        # The rule is a folder as well as part of the identity, so it is stored as the partition column only.
        rows.write.mode("overwrite").partitionBy("rule", "date").parquet(str(self._out / "rows" / name))
        aggregate.parts(rows).coalesce(1).write.mode("overwrite").parquet(str(self._out / "columns" / name))
        touched = sorted((row["rule"], row["date"]) for row in rows.select("rule", "date").distinct().collect())
        verified.records.unpersist()
        for rule in sorted({rule for rule, _ in touched}):
            self._refresh(rule, [date for touched_rule, date in touched if touched_rule == rule])

    def _count(self, verified: Verified) -> None:
        self.metrics.files += verified.files
        self.metrics.quarantined += len(verified.quarantined)
        if verified.records is not None:
            self.metrics.rows += verified.records.count()

    def _refresh(self, rule: str, dates: list[str]) -> None:
        """Write the given days of a rule's fleet table anew, from all its rows."""
        from pyspark.sql import functions as F

        from cloud_sync.spark import aggregate

        columns = self._spark.read.parquet(str(self._out / "columns")).where(F.col("rule") == rule)
        found = [aggregate.Part(*row) for row in columns.select("name", "merge", "type").distinct().collect()]
        rows = self._spark.read.parquet(str(self._out / "rows")).where(F.col("rule") == rule)
        if not aggregate.is_ambiguous(found):
            rows = rows.where(F.col("date").isin(dates))
        single = aggregate.deduplicated(rows).cache()
        self.metrics.conflicting += single.where("conflicting").count()
        table = aggregate.fleet(single, found)
        table.repartition("date").write.mode("overwrite").partitionBy("date").parquet(str(self._table(rule)))
        single.unpersist()
        self.metrics.rules[rule] = self.metrics.rules.get(rule, 0) + len(dates)

    def _table(self, rule: str) -> Path:
        from cloud_sync.layout import safe

        return self._fleet / f"rule={safe(rule)}"

    def _query_id(self) -> str:
        """The checkpoint's own id. After a lost checkpoint batch numbers begin again: the id keeps them apart, so that
        rows of files which have been deleted from the bucket since are not overwritten."""
        metadata: dict[str, Any] = json.loads(
            (self._checkpoint / "metadata").read_text(encoding="utf-8").splitlines()[0]
        )
        return str(metadata["id"])[:8]

    def show(self) -> None:
        """Print the newest rows of every fleet table."""
        for folder in sorted(self._fleet.glob("rule=*")):
            table = self._spark.read.option("mergeSchema", "true").parquet(str(folder)).drop("keys", "date")
            print(f"\nfleet table {folder}")
            newest = table.orderBy("window_start", ascending=False).limit(SHOWN_ROWS)
            newest.orderBy("window_start", *[name for name in table.columns if name != "window_start"]).show(
                SHOWN_ROWS, truncate=False
            )
