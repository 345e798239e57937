"""Streams and tables that no gateway could feed, whatever its configuration: errors, with their place."""

from __future__ import annotations

from collections.abc import Iterator

from edge.deploy.stream_types import (
    FILE,
    MEMORY,
    MQTT,
    codec_options,
    is_store,
    stream_type,
    stream_types,
)
from edge.intake.codecs import CodecError, decoder_for
from edge.intake.lookups.kinds import kinds
from edge.intake.router import BadTopicFilter, check_filter
from edge.intake.sources.registry import BadSource, SourceKind, settings_of, source_kind
from rules.compiled import Compiled
from rules.problems import FileProblem
from sql.catalog.stores import STORES
from sql.catalog.streams import Stream
from sql.catalog.topics import OPTION, topic_parts
from sql.errors import Problem, did_you_mean

Complaint = tuple[str, Problem]
"""An option of a stream or table, and what is wrong with it."""


WITHOUT_DATASOURCE = ("simulator", "httppull")
"""Types whose settings say enough; those of httppull may stand in the gateway's configuration."""


def stream_problems(compiled: Compiled) -> list[FileProblem]:
    """The problems of streams and tables that need no configuration of a gateway."""
    return [
        loaded.option_problem(*complaint)
        for loaded, stream in compiled.streams
        if loaded.usable
        for complaint in _complaints(stream)
    ]


def _complaints(stream: Stream) -> Iterator[Complaint]:
    name = stream_type(stream)
    if is_store(stream):
        yield from _of_store(stream, name)
        return
    if not name:
        return
    kind = source_kind(name)
    if kind is None and name not in (MQTT, MEMORY):
        types = (*stream_types(), *(STORES if stream.kind == "lookup" else ()))
        message = f"TYPE '{name}' of {_called(stream)} is no source of this gateway"
        yield "TYPE", _error(message, did_you_mean(name, types) or f"this gateway has {', '.join(types)}")
        return
    try:
        parts = topic_parts(stream)
    except ValueError as error:
        yield OPTION, _error(str(error))
        return
    if parts and name != MQTT:
        message = f"stream '{stream.name}' of TYPE {name} has no topics to take columns from"
        yield "TYPE", _error(message, "write topic(n) for mqtt only")
    elif kind is not None:
        yield from _of_source(stream, kind)
    else:
        yield from _of_topic(stream)


def _called(stream: Stream) -> str:
    return f"{'stream' if stream.kind == 'stream' else 'table'} '{stream.name}'"


def _error(message: str, hint: str | None = None) -> Problem:
    return Problem("E101", message, hint=hint)


def _of_topic(stream: Stream) -> Iterator[Complaint]:
    if not stream.datasource:
        message = f"stream '{stream.name}' has no DATASOURCE"
        hint = "name its topics: 'datasource: plant/+/temp', in CREATE STREAM 'DATASOURCE=\"plant/+/temp\"'"
        yield "DATASOURCE", _error(message, hint)
        return
    try:
        check_filter(stream.datasource)
        decoder_for(stream.format, None, codec_options(stream, 1_000_000))
    except BadTopicFilter as error:
        yield "DATASOURCE", _error(f"DATASOURCE of stream '{stream.name}': {error}")
    except CodecError as error:
        yield "FORMAT", _error(f"FORMAT of stream '{stream.name}': {error}")


def _of_store(stream: Stream, name: str) -> Iterator[Complaint]:
    if name != "http" and not stream.datasource:
        what = "the table of the database" if name == "sql" else "the number of the database"
        yield "DATASOURCE", _error(f"table '{stream.name}' has no DATASOURCE", f"write {what}")
        return
    try:
        settings_of(kinds()[name], stream)
    except BadSource as error:
        yield error.option, _error(f"{error.option} of table '{stream.name}' {error}")


def _of_source(stream: Stream, kind: SourceKind) -> Iterator[Complaint]:
    called = _called(stream)
    if kind.name not in WITHOUT_DATASOURCE and not stream.datasource:
        hint = "write the file's name, or the path of the address"
        yield "DATASOURCE", _error(f"{called} has no DATASOURCE", hint)
    try:
        settings = settings_of(kind, stream)
        if kind.name == FILE and stream.datasource:
            from edge.intake.sources.files.settings import check_file

            check_file(stream, settings)
        text_format = kind.row_format(settings) or stream.format
        decoder_for(text_format, None, codec_options(stream, 1_000_000))
    except BadSource as error:
        yield error.option, _error(f"{error.option} of {called} {error}")
    except CodecError as error:
        yield "FORMAT", _error(f"FORMAT of {called}: {error}")
