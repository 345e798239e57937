"""The job's view of the bucket: which files there are, which of them may count, and the list of those that may not.

A manifest announces a file. The file counts if it is there, has the announced size and SHA-256, and holds the announced
number of whole records; else it goes to the quarantine list with a reason, and counts as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from cloud_sync.layout import DATA, DATA_SUFFIX, MANIFESTS, manifest_name
from cloud_sync.spark.aggregate import RECORD_SCHEMA, is_damaged
from cloud_sync.targets.base import Target
from cloud_sync.targets.directory import DirectoryTarget


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file that does not count, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What one batch of manifests amounts to. `records` (None if there are none) is cached; unpersist it after use."""

    files: int
    records: DataFrame | None
    quarantined: tuple[Quarantined, ...]


def verify(spark: SparkSession, bucket: Path, manifests: Sequence[Row]) -> Verified:
    """Check the files that `manifests` (rows of MANIFEST_SCHEMA with their own `path`) announce."""
    bad: list[Quarantined] = []
    announced: dict[str, Row] = {}
    for manifest in manifests:
        reason = _manifest_problem(bucket, manifest)
        if reason:
            bad.append(Quarantined(manifest["name"] or manifest["path"], reason))
        else:
            announced[manifest["name"]] = manifest
    for name, digest in _digests(spark, bucket, announced).items():
        if digest != announced[name]["sha256"]:
            bad.append(Quarantined(name, f"sha256 is {digest}, the manifest says {announced[name]['sha256']}"))
            del announced[name]
    if not announced:
        return Verified(0, None, tuple(bad))
    records = _records(spark, bucket, announced).cache()
    torn = _torn(records, announced)
    bad += torn
    whole = records.where(~F.col("file").isin([file.name for file in torn])) if torn else records
    return Verified(len(announced) - len(torn), whole, tuple(bad))


def _manifest_problem(bucket: Path, manifest: Row) -> str | None:
    name = manifest["name"]
    if manifest["_corrupt_record"] is not None or None in (name, manifest["sha256"], manifest["rows"]):
        return "the manifest is no manifest"
    if manifest["version"] != 1:
        return f"the manifest has version {manifest['version']}, this job knows version 1"
    if not manifest["path"].endswith("/" + manifest_name(name)) or ".." in name.split("/"):
        return f"the manifest lies at {manifest['path']}, which is not its file's"
    try:
        size = (bucket / name).stat().st_size
    except OSError:
        return "the file is not there"
    return None if size == manifest["bytes"] else f"the file has {size} bytes, the manifest says {manifest['bytes']}"


def _digests(spark: SparkSession, bucket: Path, names: Iterable[str]) -> dict[str, str]:
    paths = [str(bucket / name) for name in names]
    if not paths:
        return {}
    found = spark.read.format("binaryFile").load(paths).select(_name("path"), F.sha2("content", 256))
    return {row[0]: row[1] for row in found.collect()}


def _records(spark: SparkSession, bucket: Path, names: Iterable[str]) -> DataFrame:
    lines = spark.read.schema(RECORD_SCHEMA).json([str(bucket / name) for name in names])
    return lines.withColumn("file", _name("_metadata.file_path"))


def _torn(records: DataFrame, announced: dict[str, Row]) -> list[Quarantined]:
    """The files with damaged records, of other origin, or with another number of records than announced."""
    counted = records.groupBy("file").agg(
        F.count("*").alias("rows"),
        F.count_if(is_damaged()).alias("damaged"),
        F.collect_set(F.struct("gateway", "spool", "rule")).alias("origins"),
    )
    found = {row["file"]: row for row in counted.collect()}
    torn = []
    for name, manifest in announced.items():
        row = found.get(name)
        origin = (manifest["gateway"], manifest["spool"], manifest["rule"])
        if row is None or row["rows"] != manifest["rows"]:
            torn.append(Quarantined(name, f"{row['rows'] if row else 0} records, the manifest says {manifest['rows']}"))
        elif row["damaged"]:
            torn.append(Quarantined(name, f"{row['damaged']} of {row['rows']} lines are no records of version 1"))
        elif [tuple(found_origin) for found_origin in row["origins"]] != [origin]:
            torn.append(Quarantined(name, "its records are of another gateway, spool or rule than the manifest says"))
    return torn


def _name(path_column: str) -> Column:
    """The name below the bucket from Spark's idea of a path."""
    return F.regexp_extract(path_column, f"({DATA}/gw=.*)$", 1)


def unlisted(bucket: Path) -> list[Quarantined]:
    """Data files without a manifest: an upload in progress, or one that was cut off and will be taken up again."""
    target = DirectoryTarget(bucket)
    manifests = set(target.names(MANIFESTS))
    return [
        Quarantined(name, "there is no manifest (yet); the gateway's next upload brings it")
        for name in sorted(target.names(DATA))
        if name.endswith(DATA_SUFFIX) and manifest_name(name) not in manifests
    ]


def write_listing(path: Path, entries: Sequence[Quarantined]) -> None:
    """Write a quarantine list as JSON lines, replacing an earlier one of the same batch; none if there is nothing."""
    if not entries:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    temporary.write_text("".join(json.dumps(asdict(entry)) + "\n" for entry in entries), encoding="utf-8")
    temporary.replace(path)


def mirror(source: Target, folder: Path) -> int:
    """Copy what `folder` does not have yet from an object store, data before manifests; returns the files copied.

    Names are never used twice, so a name that is here is the file that is there.
    """
    local = DirectoryTarget(folder)
    copied = 0
    for prefix in (DATA, MANIFESTS):
        for name in source.names(prefix):
            if local.size(name) is None and (content := source.get(name)) is not None:
                copied += local.put_if_absent(name, content)
    return copied
