"""List the uploaded files, and read and check their records in the workers, not in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from cloud_sync.names import (
    ARRIVALS_FOLDER,
    DATA_SUFFIX,
    MANIFEST_SUFFIX,
    SCHEMAS_FOLDER,
    VERSIONS_READ,
    data_folder,
    manifest_folder,
    safe,
)
from cloud_sync.spark.contract.declared import check_in_words
from cloud_sync.spark.contract.fields import Bad
from cloud_sync.spark.contract.uploaded_file import (
    FILE_BYTES_MAX,
    MANIFEST_BYTES_MAX,
    Manifest,
    UploadedRecord,
    read_file,
)
from cloud_sync.spark.contract.values import UploadedValue
from cloud_sync.spark.fleet import RECORD_VALUES, SPANS
from cloud_sync.spark.storage import Storage, literal
from cloud_sync.spark.tables import in_batches, local, nothing

if TYPE_CHECKING:
    import pyarrow as pa


class Listed(NamedTuple):
    """A file that the tables do not know: its name (that of its manifest), where its manifest lies,
    and the lengths of manifest and file; None for one that is not there."""

    name: str
    place: str
    length: int | None
    data_length: int | None


Keys = Mapping[str, str]
"""The key that signs the manifests of a gateway, by gateway."""
NAMES = "name STRING, place STRING, length BIGINT"
LISTED = "file STRING, manifest STRING, place STRING, length BIGINT, data_length BIGINT"
READ = (
    "manifest STRING, reason STRING, rule_id STRING, day STRING, gateway STRING, spool STRING, rule STRING, "
    f"seq BIGINT, window_start BIGINT, window_end BIGINT, windows {SPANS}, keys STRING, "
    f"`values` {RECORD_VALUES}, digest STRING, revision BIGINT, retracted BOOLEAN, rule_hash STRING, "
    "schema STRING, broken ARRAY<STRUCT<check: STRING, outcome: STRING>>"
)
"""The rows read from files: one row per record, or one with the reason why the file does not count.
`schema`, of a file that names one, is the hash of its rule and its id;
`broken` are the checks of the schema that the record breaks, with what follows: warn, quarantine or fail."""


def listing(spark: SparkSession, bucket: Storage, folders: Sequence[str] | None) -> DataFrame:
    """The manifests in these folders of arrivals (None: everywhere, and data files without one), and those
    that do not lie by hours. `name` is the one by which the job knows a file; `place` and `length` are the
    path and the length of its manifest, NULL if there is none. Nothing is opened."""
    by_hour = [ARRIVALS_FOLDER] if folders is None else [f"{ARRIVALS_FOLDER}/{folder}" for folder in folders]
    found = nothing(spark, NAMES)
    for folder in (*by_hour, *map(manifest_folder, VERSIONS_READ)):
        # A folder is a listing of its own: object stores then list it in one go, not folder by folder.
        if (places := _files(spark, bucket, folder, MANIFEST_SUFFIX)) is not None:
            known_as = F.regexp_replace("name", f"^{ARRIVALS_FOLDER}/[^/]*/[^/]*/", f"{manifest_folder()}/")
            found = found.unionByName(
                places.select(known_as.alias("name"), F.col("name").alias("place"), "length")
            )
    for version in VERSIONS_READ if folders is None else ():
        if (data := _files(spark, bucket, data_folder(version), DATA_SUFFIX)) is not None:
            names = data.select(_manifest_of("name", version).alias("name"))
            found = found.unionByName(names, allowMissingColumns=True)
    return found


def _files(spark: SparkSession, bucket: Storage, folder: str, suffix: str) -> DataFrame | None:
    """Name below the bucket and length of each file in a folder; None if there is no such folder."""
    if not bucket.is_folder(folder):
        return None
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    paths = files.load(literal(f"{bucket.root}/{folder}"))
    # The name below the bucket: the last place where the folder begins, in case the
    # bucket's own path has one too.
    names = paths.select(F.regexp_extract("path", f".*/({folder}/.*)$", 1).alias("name"), "length")
    return names.where(F.col("name").endswith(suffix))


def _manifest_of(column: str, version: int) -> Any:
    """`names.manifest_name` as an expression."""
    inner = F.regexp_extract(column, f"^{data_folder(version)}/(.*){DATA_SUFFIX.replace('.', '[.]')}$", 1)
    return F.concat(F.lit(f"{manifest_folder(version)}/"), inner, F.lit(MANIFEST_SUFFIX))


def data_name(manifest: str) -> str:
    """The data file that a manifest of this name announces.

    >>> data_name("v2-manifests/gw=a/x.json")
    'v2/gw=a/x.jsonl.gz'
    """
    version, _, rest = manifest.partition("-manifests/")
    return f"{version}/{rest.removesuffix(MANIFEST_SUFFIX)}{DATA_SUFFIX}"


def measured(bucket: Storage, named: Sequence[Any]) -> list[Listed]:
    """The lengths of some files (rows of NAMES); those that have left the bucket are left out."""
    places = [row["place"] or row["name"] for row in named]
    unseen = [place for row, place in zip(named, places, strict=True) if row["length"] is None]
    lengths = bucket.lengths([*unseen, *(data_name(row["name"]) for row in named)])
    found = [
        Listed(row["name"], place, lengths.get(place, row["length"]), lengths.get(data_name(row["name"])))
        for row, place in zip(named, places, strict=True)
    ]
    return [file for file in found if file.length is not None or file.data_length is not None]


def read(
    spark: SparkSession, bucket: Storage, listed: Sequence[Listed], keys: Keys | None = None
) -> DataFrame:
    """The records of the listed files, and the reasons of those that do not count.
    `keys` of gateways: only what they signed counts."""
    announced = [file for file in listed if _is_within(file.length, MANIFEST_BYTES_MAX)]
    manifests = [file.place for file in announced]
    data = [data_name(file.name) for file in listed if _is_within(file.data_length, FILE_BYTES_MAX)]
    named = [(data_name(file.name), *file) for file in listed]
    names = local(spark, named, LISTED)
    found = (
        names.join(_contents(spark, bucket, manifests, "place", "announcement"), "place", "left")
        .join(_contents(spark, bucket, data, "file", "content"), "file", "left")
        .withColumn("schema", _schema_of("manifest", "announcement"))
        .join(F.broadcast(_schemas(spark, bucket, [file.name for file in announced])), "schema", "left")
        .select("manifest", "length", "data_length", "announcement", "content", "declaration")
    )
    schema = to_arrow_schema(nothing(spark, READ).schema)
    return found.mapInArrow(partial(_read_batches, schema, keys), READ)


def _schemas(spark: SparkSession, bucket: Storage, manifests: Sequence[str]) -> DataFrame:
    """The schemas of the rules of some manifests, by name."""
    rules = {name.split("/")[2] for name in manifests if name.count("/") > 2}
    there = sorted(rules.intersection(bucket.names(SCHEMAS_FOLDER)))
    return _contents(spark, bucket, [f"{SCHEMAS_FOLDER}/{rule}" for rule in there], "schema", "declaration")


def _schema_of(manifest: str, announcement: str) -> Any:
    """`names.schema_name` of the schema that a manifest names, as an expression; NULL if it names none."""
    told = F.col(announcement).cast("STRING")
    rule = F.regexp_extract(manifest, "/(rule=[^/]*)/", 1)
    parts = [F.get_json_object(told, f"$.{name}") for name in ("rule_hash", "schema")]
    return F.concat(
        F.lit(f"{SCHEMAS_FOLDER}/"), rule, F.lit("/"), parts[0], F.lit("-"), parts[1], F.lit(MANIFEST_SUFFIX)
    )


def _is_within(length: int | None, most: int) -> bool:
    return length is not None and length <= most


def _contents(spark: SparkSession, bucket: Storage, names: list[str], key: str, content: str) -> DataFrame:
    if not names:
        return nothing(spark, f"{key} STRING, {content} BINARY")
    # A file that is deleted while Spark reads counts as missing. One that is gone before ends the run with
    # PATH_NOT_FOUND, and the next run counts without it.
    files = spark.read.format("binaryFile").option("ignoreMissingFiles", "true")
    loaded = files.load([literal(f"{bucket.root}/{name}") for name in names])
    name = F.regexp_extract("path", r".*/(v\d+(?:-[a-z]+)?/(?:gw|rule|day)=.*)$", 1)
    return loaded.select(name.alias(key), F.col("content").alias(content))


def _read_batches(
    schema: pa.Schema, keys: Keys | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records of files, batch by batch; runs in Spark's workers."""
    for batch in batches:
        for file in batch.to_pylist():
            yield from in_batches(_rows(file, keys), schema)


def _rows(file: dict[str, Any], keys: Keys | None) -> Iterator[dict[str, Any]]:
    path = file["manifest"]
    try:
        _check_whole("manifest", file["length"], file["announcement"], MANIFEST_BYTES_MAX)
        _check_whole("file", file["data_length"], file["content"], FILE_BYTES_MAX)
        # Spark reads no empty files.
        announcement = b"" if file["length"] == 0 else file["announcement"]
        content = b"" if file["data_length"] == 0 else file["content"]
        manifest, records = read_file(path, announcement, content, keys, file["declaration"])
    except Bad as bad:
        yield {"manifest": path, "reason": str(bad)}
        return
    for record in records:
        yield row_of(path, manifest, record)


def _check_whole(what: str, length: int | None, content: bytes | None, most: int) -> None:
    """Raises Bad for a file that is there and was not read."""
    if length and length > most:
        raise Bad(f"a file of {length} bytes is beyond the bound of {most}")
    if length and content is None:
        raise Bad(f"the {what} is there and cannot be read; give the user of this job the right to read it")


def row_of(path: str, manifest: Manifest, record: UploadedRecord) -> dict[str, Any]:
    """A record as a row of `READ`."""
    return {
        **record._asdict(),
        "manifest": path,
        "rule_id": safe(manifest.rule),
        "day": manifest.date,
        "gateway": manifest.gateway,
        "spool": manifest.spool,
        "rule": manifest.rule,
        "windows": [span._asdict() for span in record.windows],
        "values": [_value(value) for value in record.values],
        "schema": f"{manifest.rule_hash}-{manifest.schema}" if manifest.schema else None,
        "broken": [{"check": check_in_words(check), "outcome": check.then} for check in record.broken],
    }


def _value(value: UploadedValue) -> dict[str, Any]:
    parts = [{"bin": number, "units": count} for number, count in value.squares or ()]
    return value._asdict() | {"squares": parts or None}
