"""The engine over the files of gateways, in Spark's workers."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from cloud_sync.names import original
from cloud_sync.spark.backfill import handover
from cloud_sync.spark.backfill.handover import Handed
from cloud_sync.spark.backfill.row_writer import EMPTY, Found, RowWriter
from cloud_sync.spark.backfill.rules import Sources, compiled
from rules.collector import calm_collector
from rules.compiled import Compiled
from rules.drive import RUN_MAX, Run, drive, state_of
from sql import Emission, Engine, Plan

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 4_096


def run(
    sources: Sources,
    rules: Sequence[str],
    zone: str,
    schema: pa.Schema,
    is_open: bool,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows (FOUND) of files that come gateway by gateway; `is_open`: with the state of each at the end,
    whose windows stay open."""
    known = compiled(sources, zone)
    calm_collector()
    plans = {rule: known.rules[rule].plan for rule in rules}
    files = (file for batch in batches for file in batch.to_pylist())
    yield from batches_of(known, plans, files, schema, is_open=is_open)


def batches_of(
    known: Compiled,
    plans: Mapping[str, Plan],
    files: Iterable[dict[str, Any]],
    schema: pa.Schema,
    *,
    is_open: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows that the rules emit over files, which come gateway by gateway,
    each perhaps with its state first."""
    for folder, of_gateway in groupby(files, key=lambda file: str(file["gateway"])):
        yield from _of_gateway(known, plans, schema, folder, of_gateway, is_open)


def _of_gateway(
    known: Compiled,
    plans: Mapping[str, Plan],
    schema: pa.Schema,
    folder: str,
    files: Iterator[dict[str, Any]],
    is_open: bool,
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    engine = Engine(known.catalog.copied(), by_instants=True)
    reading, gateway = Reading(), original(folder)
    first = next(files)
    is_handed = handover.is_state(first)
    handed = handover.read(first["content"]) if is_handed else Handed()
    runs = runs_of(files if is_handed else chain([first], files), reading)
    number = handed.number
    emissions = drive(engine, plans, runs, known.tables, handed.state, is_open=is_open)
    for rows, is_over in _blocks_of_rows(emissions, plans, reading):
        yield in_columns(rows, schema, gateway, number, is_over)
        number += len(rows)
    others = []
    for reason in reading.bad:
        found = {"gateway": gateway, "number": number, "kind": "error", "reason": reason}
        others += [EMPTY | found | {"rule": rule} for rule in plans]
        number += 1
    if is_open:
        last = handover.name_of(reading.last) or handed.last
        state = Handed(state_of(engine, plans, known.tables), number, last)
        others.append(EMPTY | handover.row_of(folder, state, plans))
    if others:
        yield pa.RecordBatch.from_pylist(others, schema=schema)


def _blocks_of_rows(
    emissions: Iterable[Emission], plans: Mapping[str, Plan], reading: Reading
) -> Iterator[tuple[list[Found], bool]]:
    """The rows of emissions, many at a time; and whether the end of the events made them."""
    writers = {rule: RowWriter(rule, plan) for rule, plan in plans.items()}
    rows: list[Found] = []
    is_over = False
    for emission in emissions:
        if len(rows) >= ROWS_PER_BATCH or reading.is_over is not is_over:
            if rows:
                yield rows, is_over
            rows, is_over = [], reading.is_over
        if (writer := writers.get(emission.rule)) is not None:
            rows += writer.rows(emission)
    if rows:
        yield rows, is_over


def in_columns(
    rows: Sequence[Found], schema: pa.Schema, gateway: str, number: int, is_over: bool
) -> pa.RecordBatch:
    """Rows of a gateway as columns of a schema (FOUND)."""
    import pyarrow as pa

    rules, instants, kinds, reasons, hashes, texts = zip(*rows, strict=True)
    columns = {
        "rule": rules,
        "number": range(number, number + len(rows)),
        "at_ms": instants,
        "kind": kinds,
        "reason": reasons,
        "rule_hash": hashes,
        "row": texts,
    }
    same = {"gateway": pa.repeat(gateway, len(rows)), "is_open": pa.repeat(is_over, len(rows))}
    arrays = [
        same[field.name] if field.name in same else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class Reading:
    """Findings of the reading of a gateway's events: lines that are no events, the file read last (its path),
    and whether the end came."""

    bad: list[str] = field(default_factory=list)
    last: str = ""
    is_over: bool = False


class Line(msgspec.Struct):
    """A line of a file: an event with its stream and the time of its arrival."""

    at: int
    stream: str
    event: dict[str, Any]


_decode = msgspec.json.Decoder(Line).decode


def runs_of(files: Iterable[dict[str, Any]], reading: Reading) -> Iterator[Run]:
    """The events of files in their order, as runs of one stream."""
    for file in files:
        reading.last = path = file["path"]
        for before, lines in _blocks(path, file["content"], reading.bad):
            for stream, found in groupby(_events(path, before, lines, reading.bad), key=attrgetter("stream")):
                events = list(found)
                yield Run(stream, [line.event for line in events], [line.at for line in events])
    reading.is_over = True


def _blocks(path: str, content: bytes, bad: list[str]) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a file, many at a time, each block with the number of those before it.
    Of a torn file those before the tear."""
    file = io.BytesIO(content)
    lines = iter(gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file)
    before, block, is_torn = 0, [b""], False
    while block and not is_torn:
        block = []
        try:
            block.extend(islice(lines, RUN_MAX))
        except (OSError, EOFError) as error:  # the lines before it stay in `block`
            bad.append(f"{path}: torn after line {before + len(block)}: {error}")
            is_torn = True
        yield before, block
        before += len(block)


def _events(path: str, before: int, lines: list[bytes], bad: list[str]) -> list[Line]:
    """The events of some lines; the reasons of those that are none go to `bad`."""
    events: list[Line] = []
    waiting, place = iter(lines), 0
    while True:
        known = len(events)
        try:
            events.extend(map(_decode, waiting))
            return events
        except (ValueError, RecursionError):  # the events before it stay in `events`
            place += len(events) - known
        try:
            events.append(_odd_event(lines[place]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            bad.append(f"{path}:{before + place + 1}: {error}")
        place += 1


def _odd_event(text: bytes) -> Line:
    """The event of a line that the decoder refuses: archives hold NaN, infinities and lone surrogates.
    ValueError, KeyError, TypeError or RecursionError if it is none."""
    fields = json.loads(text)
    line = Line(fields["at"], fields["stream"], fields["event"])
    if not (isinstance(line.at, int) and isinstance(line.stream, str) and isinstance(line.event, dict)):
        raise TypeError("at, stream or event is of a wrong type")
    return line
