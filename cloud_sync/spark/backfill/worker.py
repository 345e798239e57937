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
from cloud_sync.spark.backfill.row_writer import FOUND, RowWriter
from cloud_sync.spark.backfill.rules import Sources, compiled_once
from cloud_sync.spark.backfill.slots import arrow_schema, definitions
from rules.collector import calm_collector
from rules.compiled import Compiled
from rules.drive import RUN_MAX, Run, at_end, driven, state_of
from sql import Emission, Engine, Plan

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 2_048


def schema_of(plans: Iterable[Plan]) -> pa.Schema:
    """The columns of the rows of rules."""
    return arrow_schema(FOUND + definitions(plans))


def run(
    sources: Sources,
    rules: Sequence[str],
    zone: str,
    is_open: bool,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows (FOUND, with the columns of `slots`) of files that come gateway by gateway;
    `is_open`: with the state of each at the end, whose windows stay open."""
    known = compiled_once(tuple(sources), zone)
    calm_collector()
    plans = {rule: known.rules[rule].plan for rule in rules}
    files = (file for batch in batches for file in batch.to_pylist())
    yield from batches_of(known, plans, files, is_open=is_open)


def batches_of(
    known: Compiled,
    plans: Mapping[str, Plan],
    files: Iterable[dict[str, Any]],
    *,
    is_open: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows that the rules emit over files, which come gateway by gateway,
    each perhaps with its state first."""
    schema = schema_of(plans.values())
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
    table = GatewayRows(schema, gateway, plans, handed.number)
    emitted = driven(engine, plans, runs, known.tables, handed.state)
    yield from table.batches(emitted, is_open=False)
    if not is_open:
        yield from table.batches([at_end(engine)], is_open=True)
    number = table.number
    others = []
    for reason in reading.bad:
        found = {"gateway": gateway, "number": number, "kind": "error", "reason": reason}
        others += [found | {"rule": rule} for rule in plans]
        number += 1
    if is_open:
        last = handover.name_of(reading.last) or handed.last
        state = Handed(state_of(engine, plans, known.tables), number, last)
        others.append(handover.row_of(folder, state, plans))
    if others:
        yield pa.RecordBatch.from_pylist(others, schema=schema)


class GatewayRows:
    """The rows of a gateway as batches of a schema (FOUND). `number` is that of the next row."""

    def __init__(self, schema: pa.Schema, gateway: str, plans: Mapping[str, Plan], number: int) -> None:
        self.number = number
        self._schema = schema
        self._gateway = gateway
        self._writers = {rule: RowWriter(plan) for rule, plan in plans.items()}

    def batches(self, emitted: Iterable[Iterable[Emission]], *, is_open: bool) -> Iterator[pa.RecordBatch]:
        """The rows of emissions, many at a time; `is_open`: the end of the events made them."""
        begun = self.number
        for _ in map(self._take, emitted):  # so nothing holds the rows of a run while the next one is made
            if self.number - begun >= ROWS_PER_BATCH:
                yield self._batch(is_open)
                begun = self.number
        if self.number > begun:
            yield self._batch(is_open)

    def _take(self, emissions: Iterable[Emission]) -> None:
        for rule, of_rule in groupby(emissions, key=attrgetter("rule")):
            # Tables' own statements emit too.
            if (writer := self._writers.get(rule)) is not None:
                self.number = writer.add(of_rule, self.number)

    def _batch(self, is_open: bool) -> pa.RecordBatch:
        """The rows that were taken, those of each rule together."""
        import pyarrow as pa

        parts = []
        for rule, writer in self._writers.items():
            if columns := writer.write():
                same = {"rule": rule, "gateway": self._gateway, "is_open": is_open}
                parts.append(self._filled(columns, same))
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def _filled(self, columns: dict[str, pa.Array], same: dict[str, Any]) -> pa.RecordBatch:
        """A batch of these columns, and of those that have the same value in all rows, or none."""
        import pyarrow as pa

        count = len(columns["number"])
        for name, kind in zip(self._schema.names, self._schema.types, strict=True):
            if name not in columns:
                columns[name] = pa.repeat(pa.scalar(same.get(name), kind), count)
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)


@dataclass(slots=True)
class Reading:
    """Findings of the reading of a gateway's events: lines that are no events,
    and the file read last (its path)."""

    bad: list[str] = field(default_factory=list)
    last: str = ""


class Line(msgspec.Struct, gc=False):
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
    """The events of some lines; the reasons of lines that are no events go to `bad`."""
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
