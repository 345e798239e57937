"""Recordings of other forms than one file of plain events: several streams, topics, CSV. All become arrivals.

{"at": …, "stream": "m", "topic": …, "event": {…}}        `penstock record`
{"tst": …, "topic": "plant/7", "payload": "…"}            `mosquitto_sub -F %j` and `%J`
at,dev,temp                                               CSV with a header
{"at": …, "dev": "a", "temp": 81.5}                       plain events, of the stream named in STREAM=FILE
"""

from __future__ import annotations

import base64
import heapq
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from edge.base.errors import UsageError
from edge.commands.shared import recorded
from edge.commands.shared.event_files import is_csv, json_lines
from edge.commands.shared.progress import Progress
from edge.deploy.stream_types import codec_options
from edge.intake.codecs import Decoder, decoder_for
from rules.drive import Arrival
from sinks.memory_bus import topic_matches
from sql.catalog.streams import Stream
from sql.types import Type

PAYLOAD_BYTES_MAX = 100_000_000


@dataclass(slots=True)
class Mixed:
    """Files, and the streams their events may belong to."""

    files: Sequence[str]
    streams: Mapping[str, Stream]
    column: str | None
    progress: Progress
    rejected: list[str] = field(default_factory=list)
    """Messages that could not be decoded, with their place."""
    _decoders: dict[str, Decoder] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Arrival]:
        yield from heapq.merge(*map(self._arrivals, self.files), key=itemgetter(0))

    def _arrivals(self, text: str) -> Iterator[Arrival]:
        """The arrivals of one file, or of STREAM=FILE; late ones arrive at the time of the newest before."""
        stream, sign, path = text.partition("=")
        if not sign or stream not in self.streams:
            stream, path = "", text
        newest_ms = None
        for at_ms, name, row in self._of_file(path, stream):
            newest_ms = at_ms if newest_ms is None else max(newest_ms, at_ms)
            self.progress.add(1, 0)
            yield newest_ms, name, row

    def _of_file(self, path: str, stream: str) -> Iterator[Arrival]:
        first = first_line(path)
        if "event" in first and "stream" in first:
            yield from self._of_recording(path)
        elif "tst" in first and "topic" in first:
            yield from self._of_messages(path)
        else:
            name = self._only(stream, path)
            declared = self.streams[name]
            found = recorded.read_events(path, self.column, declared.timestamp, declared.columns)
            yield from ((at_ms, name, row) for at_ms, row in found)

    def _only(self, stream: str, path: str) -> str:
        """The stream of a file that names none."""
        if not stream and len(self.streams) != 1:
            raise UsageError(
                f"say whose events {path} holds: STREAM={path}, with one of {', '.join(self.streams)}"
            )
        return stream or next(iter(self.streams))

    def _of_recording(self, path: str) -> Iterator[Arrival]:
        for where, line in json_lines(path):
            name, event = line.get("stream"), line.get("event")
            if name in self.streams and isinstance(event, dict):
                yield (
                    recorded.instant_ms(line.get("at"), where),
                    str(name),
                    self._with_bytes(str(name), event, where),
                )

    def _with_bytes(self, name: str, event: dict[str, Any], where: str) -> dict[str, Any]:
        """An event as it was decoded: a recording has bytes as base64."""
        stream = self.streams[name]
        columns = {column for column, kind in (stream.columns or {}).items() if kind is Type.BYTES}
        if stream.format.lower() == "binary":
            columns.add("self")
        texts = {column: event[column] for column in columns & event.keys() if isinstance(event[column], str)}
        try:
            return event | {column: base64.b64decode(text) for column, text in texts.items()}
        except ValueError as error:
            raise UsageError(f"{where}: columns {', '.join(sorted(texts))} are not base64: {error}") from None

    def _of_messages(self, path: str) -> Iterator[Arrival]:
        for where, line in json_lines(path):
            topic, payload = str(line.get("topic", "")), line.get("payload", "")
            at_ms = recorded.instant_ms(line.get("tst"), f"{where}: column 'tst'")
            data = payload.encode() if isinstance(payload, str) else json.dumps(payload).encode()
            for name, stream in self.streams.items():
                if topic_matches(stream.datasource, topic):
                    rows, bad = self._decoder(name).decode_many([data])
                    self.rejected += [f"{where}: {reason}" for _, reason in bad]
                    yield from ((at_ms, name, row) for row in rows)

    def _decoder(self, name: str) -> Decoder:
        if name not in self._decoders:
            stream = self.streams[name]
            options = codec_options(stream, PAYLOAD_BYTES_MAX)
            self._decoders[name] = decoder_for(stream.format, None, options)
        return self._decoders[name]


def is_mixed(files: Sequence[str], streams: Sequence[str], *, is_named: bool = False) -> bool:
    """True if files hold more than the plain events of one stream. `is_named`: the user
    names the stream."""
    if len(files) != 1 or files[0].partition("=")[0] in streams or is_csv(files[0]):
        return True
    if files[0] == "-" or is_named:
        return False
    first = first_line(files[0])
    return ("event" in first and "stream" in first) or ("tst" in first and "topic" in first)


def first_line(path: str) -> dict[str, Any]:
    """The first line that is not blank; empty if it is no JSON object, which the reader of
    the file reports."""
    if path == "-":
        return {}
    with Path(path).open("rb") as file:
        line = next((line for line in file if line.strip()), b"{}")
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def print_rejected(rejected: Sequence[str]) -> int:
    """Print the lines that could not be decoded; returns their number."""
    for text in rejected[:10]:
        print(f"rejected {text}", file=sys.stderr)
    if len(rejected) > 10:
        print(f"rejected {len(rejected) - 10} more", file=sys.stderr)
    return len(rejected)
