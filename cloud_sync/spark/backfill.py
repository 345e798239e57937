"""`penstock cloud backfill RULES RAW OUT`: the rules of the gateways over raw events of the past, in Spark.

    RAW/gw=<gateway>/*.jsonl[.gz]     {"at": 1763683200000, "stream": "plant", "event": {…}}, a line per event

The engine itself runs in Spark's workers, one per gateway; it reads the files of its gateway by name, line by
line, so the lines stand in the order of arrival, and memory does not grow with history. The result is that of
`penstock replay`: rows with the gateway, the instant and the columns of the SELECT, typed by its plan.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from cloud_sync.declaration import rule_hash
from cloud_sync.names import original, safe
from cloud_sync.spark.storage import literal, open_storage
from cloud_sync.spark.tables import nothing
from rules.compile import Compiled, CompiledRule, compile_rules
from rules.drive import Arrival, drive
from rules.loader import load_text, unite
from rules.secrets import Secrets
from rules.source.yaml_source import kind_of
from sql import Emission, Engine, Plan
from sql.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

FOUND = (
    "rule STRING, gateway STRING, number BIGINT, at_ms BIGINT, kind STRING, reason STRING, is_open BOOLEAN, "
    "rule_hash STRING, row STRING"
)
"""The rows that a worker returns. `kind` is insert, remove, late or error; `number` counts the rows of a
gateway in their order; `reason` is that of an error, or the late event as JSON; `is_open`: the end of the raw
events made the row, which closes the windows that are open; `rule_hash` is that of the records that gateways
upload; `row` is JSON."""
ROWS_PER_BATCH = 4_096
FIXED = ("gateway", "number", "at_ms", "kind", "reason", "is_open", "rule_hash")
TYPES = {
    Type.INTEGER: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.STRING: "STRING",
    Type.BOOLEAN: "BOOLEAN",
    Type.BYTES: "BINARY",
}
"""Types that a column has in SQL too; JSON holds bytes as base64. Columns of other types hold JSON text."""

Sources = Sequence[tuple[str, str]]
"""Rule files: text and path."""


class BackfillError(Exception):
    """The backfill cannot run; the text says why."""


def compiled(sources: Sources, zone: str) -> Compiled:
    """The rules of some files."""
    import cloud_sync.sink  # noqa: F401  registers the cloud action; `sinks` registers the others

    secrets = Secrets(may_be_absent=True)
    files = (load_text(text, path, secrets=secrets, kind=kind_of(path)) for text, path in sources)
    return compile_rules(unite(files), zone=zone)


def backfill(
    spark: SparkSession, sources: Sources, rules: Sequence[str], raw: str, out: str, zone: str
) -> dict[str, int]:
    """Run the rules over the raw events and write one Parquet folder for each, `OUT/<rule>`; the number of
    rows of each rule.

    OUT must not exist. Raises BackfillError.
    """
    storage = open_storage(spark, out)
    if storage.is_folder(""):
        raise BackfillError(f"{out} exists; a backfill writes into a new folder")
    known = compiled(sources, zone)
    for rule in rules:
        _check_columns(known.rules[rule])
    found = rows(spark, sources, rules, raw, zone).persist()
    counts = {row["rule"]: row["count"] for row in found.groupBy("rule").count().collect()}
    for rule in rules:
        table = typed(found.where(F.col("rule") == rule), known.rules[rule].plan)
        table.orderBy("gateway", "number").write.parquet(f"{storage.root}/{safe(rule)}")
    found.unpersist()
    return {rule: counts.get(rule, 0) for rule in rules}


def _check_columns(rule: CompiledRule) -> None:
    """Raises BackfillError if the SELECT has a column that the table has beside it."""
    if taken := {*(rule.plan.output_columns or ())} & {*FIXED}:
        raise BackfillError(
            f"{rule.path}: rule {rule.id} has a column '{min(taken)}', which each row of a backfill has anyway; "
            "rename it with AS"
        )


def rows(spark: SparkSession, sources: Sources, rules: Sequence[str], raw: str, zone: str) -> DataFrame:
    """The rows of all rules (FOUND), by gateway."""
    storage = open_storage(spark, raw)
    if not storage.is_folder(""):
        raise BackfillError(f"there is no folder {raw}")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")  # a batch is one file
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(literal(storage.root))
    named = files.select(F.regexp_extract("path", "/gw=([^/]*)/", 1).alias("gateway"), "path", "content")
    by_gateway = named.repartition("gateway").sortWithinPartitions("gateway", "path")
    schema = to_arrow_schema(nothing(spark, FOUND).schema)
    return by_gateway.mapInArrow(partial(_run, tuple(sources), tuple(rules), zone, schema), FOUND)


def typed(found: DataFrame, plan: Plan) -> DataFrame:
    """The rows of one rule with the columns of its SELECT; one column `row` of JSON if the messages decide
    the columns."""
    if plan.columns_with_states is None:
        return found.drop("rule")
    columns = plan.columns_with_states.items()
    schema = ", ".join(f"`{name.replace('`', '``')}` {TYPES.get(kind, 'STRING')}" for name, kind in columns)
    return found.select(*FIXED, F.from_json("row", schema).alias("row")).select(*FIXED, "row.*")


# --- in the workers -----------------------------------------------------------------------------------------


def _run(
    sources: Sources, rules: Sequence[str], zone: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    known = compiled(sources, zone)
    plans = {rule: known.rules[rule].plan for rule in rules}
    waiting: list[dict[str, Any]] = []
    for row in _rows(known, plans, (file for batch in batches for file in batch.to_pylist())):
        waiting.append(row)
        if len(waiting) == ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(waiting, schema=schema)
            waiting = []
    yield pa.RecordBatch.from_pylist(waiting, schema=schema)


def _rows(
    known: Compiled, plans: Mapping[str, Plan], files: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The rows that the rules emit over files, which come gateway by gateway."""
    from itertools import groupby

    from rules.catalog import copy_of

    hashes = {rule: rule_hash(plan.text) for rule, plan in plans.items()}
    for folder, of_gateway in groupby(files, key=lambda file: str(file["gateway"])):
        reading, number, gateway = Reading(), 0, original(folder)
        for emission in drive(
            Engine(copy_of(known.catalog)), plans, _arrivals(of_gateway, reading), known.tables
        ):
            plan = plans.get(emission.rule)
            for kind, row in _kinds(emission) if plan else ():
                place = {"gateway": gateway, "number": number, "rule_hash": hashes[emission.rule]}
                yield place | {"is_open": reading.is_over} | _row(emission, kind, row, plan)
                number += 1
        for reason in reading.bad:
            for rule in plans:
                yield {"rule": rule, "gateway": gateway, "number": number, "kind": "error", "reason": reason}
            number += 1


@dataclass(slots=True)
class Reading:
    """Findings of the reading of a gateway's events: lines that are no events, and whether the end came."""

    bad: list[str] = field(default_factory=list)
    is_over: bool = False


def _arrivals(files: Iterable[dict[str, Any]], reading: Reading) -> Iterator[Arrival]:
    """The events of files, in their order."""
    bad = reading.bad
    for file in files:
        content = io.BytesIO(file["content"])
        lines = gzip.GzipFile(fileobj=content) if file["path"].endswith(".gz") else content
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                try:
                    fields = json.loads(line)
                    at_ms, stream, event = fields["at"], fields["stream"], fields["event"]
                    if (
                        not isinstance(at_ms, int)
                        or not isinstance(stream, str)
                        or not isinstance(event, dict)
                    ):
                        raise TypeError("at, stream or event is of a wrong type")
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    bad.append(f"{file['path']}:{number}: {error}")
                    continue
                yield at_ms, stream, event
        except (OSError, EOFError) as error:
            bad.append(f"{file['path']}: torn after line {number}: {error}")
    reading.is_over = True


def _kinds(emission: Emission) -> Iterator[tuple[str, dict[str, Any]]]:
    inserted = "insert" if emission.kind == "rows" else str(emission.kind)
    yield from (
        (inserted, row) for row in emission.with_states() or ([{}] if emission.kind == "error" else ())
    )
    yield from (("remove", row) for row in emission.removed)


def _row(emission: Emission, kind: str, row: dict[str, Any], plan: Plan | None) -> dict[str, Any]:
    """The fields of a row that the engine decides."""
    found = {"rule": emission.rule, "at_ms": emission.at_ms, "kind": kind, "reason": emission.error}
    columns = plan.columns_with_states if plan and kind in ("insert", "remove") else None
    shown = {name: value for name, value in row.items() if value is not None and name != "$meta"}
    if kind == "late":
        return found | {"reason": _json(shown)}
    if columns is None:
        return found | {"row": _json(shown)}
    cells = {}
    for name, value in shown.items():
        kind_of = columns.get(name, Type.ANY)
        if not _fits(value, kind_of):
            reason = f"column '{name}' holds {str(value)[:40]!r}, the plan says {kind_of.value}"
            return found | {"kind": "error", "reason": reason, "row": None}
        cells[name] = value if kind_of in TYPES else _json(value)
    return found | {"row": _json(cells)}


def _fits(value: object, kind: Type) -> bool:
    """True if a value fits a column of its type."""
    if kind is Type.INTEGER:
        return value.__class__ is int and -(2**63) <= value < 2**63
    if kind is Type.FLOAT:
        return value.__class__ in (int, float)
    if kind is Type.STRING:
        return isinstance(value, str)
    if kind is Type.BYTES:
        return isinstance(value, bytes)
    return kind is not Type.BOOLEAN or isinstance(value, bool)


def _json(value: object) -> str:
    """JSON text; NaN and infinities are null as in the sinks, bytes are base64."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_told, allow_nan=False)
    except ValueError:
        from sinks.json_text import json_text

        return json_text(value)


def _told(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
