"""The tables in OUT: immutable Parquet parts, and versions that list the parts of each table.

    OUT/_versions/000000000012.json      the parts of the tables since run 12; created once, never changed
    OUT/<table>/run=<run>/...            parts; written before the version that names them, deleted long after

A run reads the newest version, writes its parts into folders of its own, and creates the next version. The
creation is atomic and fails if another run was faster; then nothing of this run counts, and nothing is lost:
the list of files taken in is itself a table of the same version. So a reader sees a whole version, a killed
run leaves only parts that no version names, and two runs at once cannot mix.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from cloud_sync.spark.session import TABLE_REMEDY
from cloud_sync.spark.storage import Storage, literal, open_storage, writing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

VERSIONS_FOLDER = "_versions"
KEPT_VERSIONS = 16
"""The number of versions whose parts are kept for readers that have begun with them."""
TIER = 8
"""The number of parts of about the same size that are merged into one."""
FORMAT = 1
ROWS_PER_BATCH = 4_096


class Overtaken(Exception):
    """Another run has created the version that this one was about to create."""


class UnknownVersion(Exception):
    """The newest version cannot be read: a newer penstock wrote it, or its file is damaged."""


class MissingPart(Exception):
    """A part of the tables has no file any more; the text names it, and the remedy."""


class UnknownOrigin(Exception):
    """The tables hold nothing of a gateway or rule; the text says where those are that they have."""


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of Parquet files, relative to OUT, and its rows if they were counted."""

    path: str
    rows: int = 0


@dataclass(slots=True)
class Version:
    """The parts that the tables consist of.

    `records` and `fleet` are partitioned: a key is a partition's path, `of_rule=…/of_day=…` and
    `of_rule=…/of_level=…/of_day=…`, and each partition is a list of parts (one, in `fleet`). The others are
    lists of parts. `retained_from`: records of earlier days are not taken in any more. `restated`: ids of
    rules with restated windows, `sketched`: of those with sketches. `heartbeats`: the newest of each spool.
    `spools`: what the files of each add up to; earlier versions have none.
    `checks`: the checks that records broke. `schemas`: those of each rule, by its id,
    in the order in which they appeared; their files are copied into OUT.
    `listed_ms`, `turn`: the last listing of the bucket of which all new files were taken in (`arrivals`).
    `looked_at`: the last file in quarantine that a run has looked at again, if there are others.
    """

    number: int = 0
    run: str = ""
    records: dict[str, list[str]] = field(default_factory=dict)
    fleet: dict[str, str] = field(default_factory=dict)
    files: list[Part] = field(default_factory=list)
    runs: list[Part] = field(default_factory=list)
    quarantine: list[Part] = field(default_factory=list)
    heartbeats: list[Part] = field(default_factory=list)
    spools: list[Part] = field(default_factory=list)
    retained_from: str = ""
    restated: list[str] = field(default_factory=list)
    sketched: list[str] = field(default_factory=list)
    checks: list[Part] = field(default_factory=list)
    schemas: dict[str, list[str]] = field(default_factory=dict)
    listed_ms: int = 0
    turn: str = ""
    looked_at: str = ""

    def paths(self) -> set[str]:
        """Every part of every table."""
        listed = {part.path for parts in self.lists().values() for part in parts}
        return listed | set(self.fleet.values()) | {path for paths in self.records.values() for path in paths}

    def lists(self) -> dict[str, list[Part]]:
        """The tables that are lists of parts, by name."""
        return {name: getattr(self, name) for name in LISTS}

    def copy(self) -> Version:
        """A version that can be changed."""
        return decode(encode(self))


LISTS = ("files", "runs", "quarantine", "heartbeats", "spools", "checks")
REQUIRED = ("number", "run", "records", "fleet", "retainedFrom")
"""The fields that every version has; the others came later."""


def _in_file(name: str) -> str:
    """The name of a field in the file.

    >>> _in_file("retained_from")
    'retainedFrom'
    """
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def encode(version: Version) -> bytes:
    """A version as its file."""
    lists = {name: [[part.path, part.rows] for part in parts] for name, parts in version.lists().items()}
    found = {_in_file(name): value for name, value in asdict(version).items()}
    return json.dumps({"format": FORMAT} | found | lists, sort_keys=True, separators=(",", ":")).encode()


def decode(content: bytes) -> Version:
    """The version in a file. Raises UnknownVersion for one of a newer penstock, for a damaged one any other
    error."""
    found = json.loads(content)
    if found["format"] > FORMAT:
        raise UnknownVersion(f"has format {found['format']}, this job knows {FORMAT}; update penstock")
    if absent := [name for name in REQUIRED if name not in found]:
        raise LookupError(f"without {absent}")
    given = {field.name: found[name] for field in fields(Version) if (name := _in_file(field.name)) in found}
    return Version(**given | {name: [Part(*part) for part in found.get(name, ())] for name in LISTS})


def nothing(spark: SparkSession, schema: str) -> DataFrame:
    """A frame without rows, which the optimizer knows to be empty."""
    from pyspark.sql import functions as F

    row = F.from_json(F.lit("{}"), schema)
    return spark.range(1).where("false").select(row.alias("row")).select("row.*")


def local(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """A frame of a few rows of the driver, which needs no Python worker to be read."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    empty = nothing(spark, schema)
    if not rows:  # Spark Connect makes no frame of an Arrow table without rows
        return empty
    columns = to_arrow_schema(empty.schema)
    listed = [dict(zip(columns.names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(listed, schema=columns))


def in_batches(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows that a worker gives back, many at a time."""
    import pyarrow as pa

    waiting = iter(rows)
    while part := list(islice(waiting, ROWS_PER_BATCH)):
        yield pa.RecordBatch.from_pylist(part, schema=schema)


class Tables:
    """The tables of one OUT."""

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark = spark
        self.storage = storage
        root = storage.root
        self._folder = urlsplit(root).path if "://" in root else root
        """The folder as it stands in the addresses of its files."""

    def current(self) -> Version:
        """The newest version; an empty one if there is none. Raises UnknownVersion."""
        names = self._names()
        return (names and _version_in(self.storage, names[-1])) or Version()

    def _names(self) -> list[str]:
        """The files of the versions that are kept, in their order."""
        return sorted(
            f"{VERSIONS_FOLDER}/{name}"
            for name in self.storage.names(VERSIONS_FOLDER)
            if name.endswith(".json")
        )

    def commit(self, version: Version) -> None:
        """Make `version` (whose number is one above the one it was made from) the current one. Raises
        Overtaken."""
        if not self.storage.create(_name(version.number), encode(version)):
            raise Overtaken(
                f"another run has written version {version.number} of {self.storage.root} meanwhile"
            )
        self._drop(version.number - KEPT_VERSIONS)

    def _drop(self, number: int) -> None:
        """Forget a version, with the parts that its successor had already replaced. A damaged one stays until
        somebody deletes it, and `sweep` then deletes its parts."""
        with suppress(UnknownVersion):
            old, successor = (version_at(self.storage, at) for at in (number, number + 1))
            if old is None:
                return
            if successor is not None:
                for path in old.paths() - successor.paths():
                    self.storage.delete(path)
            self.storage.delete(_name(number))

    def read(self, parts: Iterable[Part | str], schema: str) -> DataFrame:
        """The rows of some parts, given as such or by their paths; none of none. Raises MissingPart, where
        Spark would read a folder without a file as one without rows."""
        from pyspark.errors import AnalysisException

        listed = sorted(part.path if isinstance(part, Part) else part for part in parts)
        if not listed:
            return nothing(self._spark, schema)
        try:
            found = self._spark.read.schema(schema).parquet(
                *(literal(f"{self.storage.root}/{path}") for path in listed)
            )
            files = found.inputFiles()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                self._check(listed, ())
            raise
        self._check(listed, files)
        return found

    def _check(self, paths: Iterable[str], files: Iterable[str]) -> None:
        """Raises MissingPart for a part of which Spark has found no file, and the storage has none."""
        parents = {unquote(urlsplit(file).path).rpartition("/")[0] for file in files}
        for path in paths:
            if f"{self._folder}/{path}" in parents:
                continue
            if not any(name.endswith(".parquet") for name in self.storage.names(path)):
                raise MissingPart(f"{self.storage.root}/{path} has no file any more; {TABLE_REMEDY}")

    def write(self, frame: DataFrame, path: str, *partitions: str) -> None:
        """Write a part, or one below a folder for each value of the partition columns. `frame` has the rows
        of each in one of its partitions, so that a part is one file."""
        writer = frame.write.mode("overwrite")
        if partitions:
            writer = writer.partitionBy(*partitions)
        with writing(self.storage, path) as folder:
            writer.parquet(folder)

    def written(self, table: str, run: str, keys: Iterable[str]) -> dict[str, str]:
        """The partitions (key to path) of which a run has written a part."""
        paths = {key: f"{table}/run={run}/{key}" for key in keys}
        return {key: path for key, path in paths.items() if self.storage.is_folder(path)}

    def merged(
        self, parts: list[Part], run: str, table: str, schema: str, order: Sequence[str] = ()
    ) -> list[Part]:
        """A list of parts in which few have about the same size: `TIER` of them become one, sorted by
        `order`. Each row is written again at most once per tier, so the cost of a run follows the number of
        new rows."""
        tier = full_tier(parts)
        if not tier:
            return parts
        path = f"{table}/run={run}/tier={tier_of(tier[0])}"
        rows = self.read(tier, schema).coalesce(1)
        self.write(rows.sortWithinPartitions(*order) if order else rows, path)
        return [*(part for part in parts if part not in tier), Part(path, sum(part.rows for part in tier))]

    def sweep(self) -> None:
        """Delete what killed runs have left. For a run that has committed a version: one that lost its lease
        and still writes cannot commit after it."""
        for path in self._orphans():
            self.storage.delete(path)

    def _orphans(self) -> list[str]:
        """Folders of runs that no kept version names."""
        versions = (_version_in(self.storage, name) or Version() for name in self._names())
        kept = {path.split("/")[1].removeprefix("run=") for version in versions for path in version.paths()}
        return [
            f"{table}/{folder}"
            for table in ("records", "fleet", *LISTS)
            for folder in self.storage.names(table)
            if folder.startswith("run=") and folder.removeprefix("run=") not in kept
        ]


def open_tables(spark: SparkSession, out: str) -> Tables:
    """The tables in OUT, a path or a URL."""
    return Tables(spark, open_storage(spark, out))


def values_in(key: str) -> list[str]:
    """The values of a partition's key.

    >>> values_in("of_rule=hot/of_level=1m/of_day=2025-11-21")
    ['hot', '1m', '2025-11-21']
    """
    return [part.partition("=")[2] for part in key.split("/")]


def tier_of(part: Part) -> int:
    """Parts of one tier have about the same size."""
    return int(math.log(part.rows + 1, TIER))


def full_tier(parts: Iterable[Part]) -> list[Part]:
    """The parts of a tier that has `TIER` of them; none if no tier is full."""
    tiers: dict[int, list[Part]] = {}
    for part in parts:
        tiers.setdefault(tier_of(part), []).append(part)
    return next((tier for tier in tiers.values() if len(tier) >= TIER), [])


def version_at(storage: Storage, number: int) -> Version | None:
    """A version that is kept; None of another. Raises UnknownVersion."""
    return _version_in(storage, _name(number))


def _version_in(storage: Storage, name: str) -> Version | None:
    """The version in a file; None if it is not there. Raises UnknownVersion with its name and the remedy."""
    content = storage.read(name)
    if content is None:
        return None
    try:
        return decode(content)
    except UnknownVersion as unknown:
        raise UnknownVersion(f"{storage.root}/{name} {unknown}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UnknownVersion(
            f"{storage.root}/{name} is damaged; delete it, then the newest version that is left counts "
            "and the next run takes in what came after that"
        ) from None


def _name(number: int) -> str:
    return f"{VERSIONS_FOLDER}/{number:012}.json"
