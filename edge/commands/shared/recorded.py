"""Recorded events: lines of JSON with a time, as `replay` and `explain --timeline` read them.

The time is taken from the named column, else the stream's timestamp, else `at`, `at_ms`, `ts` or `timestamp`;
it is milliseconds since the epoch or ISO text.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from edge.base.errors import UsageError
from edge.commands.shared.event_files import Columns, event_of, events_of
from rules.durations import parse_instant

TIME_COLUMNS = ("at", "at_ms", "ts", "timestamp")

SAMPLES = 20
"""Lines of the first batch that are samples."""

BATCH_BYTES = 131_072
"""So much of a file is decoded at once."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which stream the events belong to, and where their time stands."""
    parser.add_argument(
        "--stream", metavar="NAME", help="stream of the events; needed if the rule reads several"
    )
    parser.add_argument(
        "--time-column", metavar="NAME", help="column with the time at which the event arrived"
    )


def chosen_stream(streams: tuple[str, ...], asked: str | None) -> str:
    """The stream that events go to. Raises UsageError when it is not clear."""
    if asked is None and len(streams) == 1:
        return streams[0]
    if asked is None:
        raise UsageError(f"choose a stream with --stream: the rule reads {', '.join(streams)}")
    if asked not in streams:
        from sql.errors import did_you_mean

        hint = did_you_mean(asked, streams) or f"it reads {', '.join(streams)}"
        raise UsageError(f"--stream: the rule reads no stream '{asked}'; {hint}")
    return asked


def read_events(
    path: str, column: str | None, timestamp: str | None, columns: Columns | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(time in ms, event) of each line. Raises UsageError with the place of a line without event."""
    for where, row in events_of(path, columns):
        if column is None:
            column = time_column(row, timestamp, where)
        yield instant_ms(row.get(column), f"{where}: column '{column}'"), row


class RecordedEvents(NamedTuple):
    """Events in order of arrival with their instants, which never decrease; `read` bytes
    of the file lie behind."""

    rows: list[Any]
    instants: list[int]
    read: int


class Recording:
    """A file of events, read in batches.

    columns   what the rule reads: rows are structs of these columns;
              None: rows are dicts of the whole message
    """

    def __init__(
        self, path: str, columns: frozenset[str] | None, column: str | None, timestamp: str | None
    ) -> None:
        self.path = path
        self.columns = columns
        self.column = column
        self.timestamp = timestamp
        self.lines = 0
        """Lines read so far."""
        self.samples: list[bytes] = []
        """Sample lines: some of the first batch and one of each later one, for the findings from
        payloads."""

    def __iter__(self) -> Iterator[RecordedEvents]:
        newest_ms: int | None = None
        is_input = self.path == "-"
        with contextlib.nullcontext(sys.stdin.buffer) if is_input else Path(self.path).open("rb") as file:
            read = 0
            while block := file.readlines(BATCH_BYTES):
                self.samples = block[: SAMPLES if not read else 1]
                read += sum(map(len, block))
                rows, instants = self._decoded(block)
                if rows:
                    # An event that was recorded late arrives now, whatever its time stamp.
                    instants = list(accumulate(instants, max, initial=newest_ms))[newest_ms is not None :]
                    newest_ms = instants[-1]
                    yield RecordedEvents(rows, instants, read)

    def _decoded(self, block: list[bytes]) -> tuple[list[Any], list[int]]:
        first, self.lines = self.lines + 1, self.lines + len(block)
        numbered = [(number, line) for number, line in enumerate(block, first) if line.strip()]
        if not numbered:
            return [], []
        if self.column is None:
            number, line = numbered[0]
            self.column = time_column(
                event_of(line, f"{self.path}:{number}"), self.timestamp, f"{self.path}:{number}"
            )
        rows, bad = self._decoder.decode_many([line for _, line in numbered])
        if bad or len(rows) != len(numbered):
            make = self._make_row()
            rows = [make(event_of(line, f"{self.path}:{number}")) for number, line in numbered]
        values = list(map(self._time(), rows))
        if set(map(type, values)) == {int} and max(values) < 2**53 and min(values) > -(2**53):
            return rows, values
        places = (f"{self.path}:{number}: column '{self.column}'" for number, _ in numbered)
        return rows, [instant_ms(value, place) for value, place in zip(values, places, strict=True)]

    @cached_property
    def _decoder(self) -> Any:
        from edge.intake.codecs.json_codec import JsonDecoder

        return JsonDecoder(self._columns())

    def _columns(self) -> frozenset[str] | None:
        assert self.column is not None
        return None if self.columns is None else self.columns | {self.column}

    def _make_row(self) -> Callable[[dict[str, Any]], Any]:
        from edge.deploy.row_shapes import struct_maker

        columns = self._columns()
        return dict if columns is None else struct_maker(columns)

    def _time(self) -> Callable[[Any], Any]:
        from sql.rows import attribute_name

        column = self.column
        assert column is not None
        return (lambda row: row.get(column)) if self.columns is None else attrgetter(attribute_name(column))


def samples(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """The columns of the events in each `STREAM=FILE`, by stream. Raises UsageError."""
    found: dict[str, set[str]] = {}
    for stream, path in map(stream_and_file, texts):
        columns = found.setdefault(stream, set())
        for _, row in events_of(path):
            columns |= row.keys()
    return {stream: frozenset(columns) for stream, columns in found.items()}


def stream_and_file(text: str) -> tuple[str, str]:
    """The parts of `STREAM=FILE`. Raises UsageError for another form, and for a file that is not there."""
    stream, sign, path = text.partition("=")
    if not sign or not stream or not path:
        raise UsageError(f"{text}: expected STREAM=FILE")
    if path != "-" and not Path(path).exists():
        raise UsageError(f"{text}: there is no file '{path}'")
    if Path(path).is_dir():
        raise UsageError(f"{text}: '{path}' is a directory")
    return stream, path


def time_column(row: dict[str, Any], timestamp: str | None, where: str) -> str:
    """The column with the time, where the user has named none."""
    column = next((name for name in (timestamp, *TIME_COLUMNS) if name and name in row), None)
    if column is None:
        raise UsageError(f"{where}: no time found; name its column with --time-column")
    return column


def instant_ms(value: object, where: str) -> int:
    """Milliseconds since the epoch of a number of them or an ISO text; text without a zone is UTC.

    >>> instant_ms("1970-01-01T00:00:01.001Z", "x"), instant_ms(1500, "x")
    (1001, 1500)
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53:
        return int(value)
    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            return parse_instant(value)
    raise UsageError(
        f"{where}: {value!r} is no time; expected milliseconds or a text such as 2026-01-01T00:00:00Z"
    )
