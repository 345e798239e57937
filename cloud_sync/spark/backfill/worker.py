"""The engine over the files of gateways, in Spark's workers."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cloud_sync.declaration import rule_hash
from cloud_sync.names import original
from cloud_sync.spark.backfill import handover
from cloud_sync.spark.backfill.handover import Handed
from cloud_sync.spark.backfill.rules import Sources, compiled
from rules.compile import Compiled
from rules.drive import Arrival, drive, state_of
from sql import Emission, Engine, Plan
from sql.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

FOUND = (
    "rule STRING, gateway STRING, number BIGINT, at_ms BIGINT, kind STRING, reason STRING, is_open BOOLEAN, "
    "rule_hash STRING, row STRING"
)
"""The rows that a worker returns. `kind` is insert, remove, late or error, or state (`handover`), which belongs
to no rule; `number` counts the rows of a
gateway in their order; `reason` is that of an error, or the late event as JSON; `is_open`: the end of the raw
events made the row, which closes the windows that are open; `rule_hash` is that of the records that gateways
upload; `row` is JSON."""
ROWS_PER_BATCH = 4_096
TYPES = {
    Type.INTEGER: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.STRING: "STRING",
    Type.BOOLEAN: "BOOLEAN",
    Type.BYTES: "BINARY",
}
"""Types that a column has in SQL too; JSON holds bytes as base64. Columns of other types hold JSON text."""


def run(
    sources: Sources,
    rules: Sequence[str],
    zone: str,
    schema: pa.Schema,
    is_open: bool,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows (FOUND) of files that come gateway by gateway; `is_open`: with the state of each at the end, whose
    windows stay open."""
    import pyarrow as pa

    known = compiled(sources, zone)
    plans = {rule: known.rules[rule].plan for rule in rules}
    waiting: list[dict[str, Any]] = []
    files = (file for batch in batches for file in batch.to_pylist())
    for row in rows_of(known, plans, files, is_open=is_open):
        waiting.append(row)
        if len(waiting) == ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(waiting, schema=schema)
            waiting = []
    yield pa.RecordBatch.from_pylist(waiting, schema=schema)


def rows_of(
    known: Compiled, plans: Mapping[str, Plan], files: Iterable[dict[str, Any]], *, is_open: bool = False
) -> Iterator[dict[str, Any]]:
    """The rows that the rules emit over files, which come gateway by gateway, each perhaps with its state first."""
    from itertools import groupby

    for folder, of_gateway in groupby(files, key=lambda file: str(file["gateway"])):
        yield from _rows_of_gateway(known, plans, folder, of_gateway, is_open)


def _rows_of_gateway(
    known: Compiled, plans: Mapping[str, Plan], folder: str, files: Iterator[dict[str, Any]], is_open: bool
) -> Iterator[dict[str, Any]]:
    from itertools import chain

    from rules.catalog import copy_of

    engine, reading, gateway = Engine(copy_of(known.catalog)), Reading(), original(folder)
    first = next(files)
    is_handed = handover.is_state(first)
    handed = handover.read(first["content"]) if is_handed else Handed()
    arrivals = arrivals_of(files if is_handed else chain([first], files), reading)
    number = handed.number
    for row in emitted(drive(engine, plans, arrivals, known.tables, handed.state, is_open=is_open), plans):
        yield {"gateway": gateway, "number": number, "is_open": reading.is_over} | row
        number += 1
    for reason in reading.bad:
        for rule in plans:
            yield {"rule": rule, "gateway": gateway, "number": number, "kind": "error", "reason": reason}
        number += 1
    if is_open:
        last = handover.name_of(reading.last) or handed.last
        state = Handed(state_of(engine, plans, known.tables), number, last)
        yield handover.row_of(folder, state, plans)


def emitted(emissions: Iterable[Emission], plans: Mapping[str, Plan]) -> Iterator[dict[str, Any]]:
    """The rows of what these rules emit: the fields that the engine decides, and the hash of the rule."""
    hashes = {rule: rule_hash(plan.text) for rule, plan in plans.items()}
    for emission in emissions:
        plan = plans.get(emission.rule)
        for kind, row in _kinds(emission) if plan else ():
            yield {"rule_hash": hashes[emission.rule]} | _row(emission, kind, row, plan)


@dataclass(slots=True)
class Reading:
    """Findings of the reading of a gateway's events: lines that are no events, the file read last (its path), and
    whether the end came."""

    bad: list[str] = field(default_factory=list)
    last: str = ""
    is_over: bool = False


def arrivals_of(files: Iterable[dict[str, Any]], reading: Reading) -> Iterator[Arrival]:
    """The events of files, in their order."""
    bad = reading.bad
    for file in files:
        content = io.BytesIO(file["content"])
        lines = gzip.GzipFile(fileobj=content) if file["path"].endswith(".gz") else content
        number, reading.last = 0, file["path"]
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
