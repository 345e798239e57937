"""The meaning of a stream's options: the source of its events, and their decoding.

TYPE="mqtt"     (default) DATASOURCE is a topic filter
TYPE="memory"   DATASOURCE is a filter of memory topics: the results of other rules
TYPE="file", "httppull", "httppush", "simulator": see `edge.intake.sources.registry`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edge.intake.codecs import META, CodecError, CodecOptions, decoder_for
from edge.intake.lessons import Lessons
from edge.intake.lookups.kinds import kinds
from edge.intake.router import BadTopicFilter, check_filter
from edge.intake.sources.known import source_kind, source_kinds
from edge.intake.sources.registry import BadSource, SourceKind, settings_of
from rules.compiled import Compiled
from rules.problems import FileProblem
from sql.catalog.stores import STORES
from sql.catalog.streams import Stream
from sql.catalog.topics import topic_parts
from sql.engine.validation import Validator, columns_read
from sql.errors import Problem, Span, did_you_mean
from sql.plan.logical import Plan

MQTT, MEMORY, FILE = "mqtt", "memory", "file"


def stream_types() -> tuple[str, ...]:
    """The valid values of TYPE of a stream."""
    return (MQTT, MEMORY, *(kind.name for kind in source_kinds()))


def stream_type(stream: Stream) -> str:
    """The kind of source a stream reads from; empty for one that only `insert into` feeds."""
    if not stream.options:
        return ""
    return str(stream.options.get("TYPE", MQTT)).lower()


def is_store(stream: Stream) -> bool:
    """True if it is a table whose rows come from an external store."""
    return stream.kind == "asked" and stream_type(stream) in STORES


def stream_problems(compiled: Compiled) -> list[FileProblem]:
    """Streams that this gateway cannot feed, with the place of their definition."""
    found = []
    for file in compiled.loaded.files:
        for loaded in file.streams:
            stream = compiled.catalog.streams.get(loaded.name)
            for message, hint in _all_complaints(stream) if stream is not None and loaded.usable else ():
                spans = {option.key.upper(): option.span for option in loaded.statement.options}
                found.append(loaded.problem(Problem("E101", message, _first(spans, message), hint)))
    return found


def _first(spans: Mapping[str, Span], message: str) -> Span:
    """The option a message is about: the first it names."""
    named = [key for key in spans if key in message]
    return spans[named[0]] if named else Span(0, 1)


def _all_complaints(stream: Stream) -> Iterable[tuple[str, str | None]]:
    return _store_complaints(stream, stream_type(stream)) if is_store(stream) else _complaints(stream)


def _complaints(stream: Stream) -> Iterable[tuple[str, str | None]]:
    kind = stream_type(stream)
    if not kind:
        return
    found = source_kind(kind)
    if found is None and kind not in (MQTT, MEMORY):
        known = did_you_mean(kind, stream_types()) or f"this gateway has {', '.join(stream_types())}"
        yield f"TYPE '{kind}' of stream '{stream.name}' is no source of this gateway", known
        return
    try:
        parts = topic_parts(stream)
    except ValueError as error:
        yield str(error), None
        return
    if parts and kind != MQTT:
        yield (
            f"stream '{stream.name}' of TYPE {kind} has no topics to take columns from",
            "write topic(n) for mqtt only",
        )
        return
    if found is not None:
        yield from _source_complaints(stream, found)
        return
    datasource = stream.options.get("DATASOURCE")
    if not datasource:
        yield f"stream '{stream.name}' has no DATASOURCE", 'write DATASOURCE="topic/filter"'
        return
    try:
        check_filter(str(datasource))
        decoder_for(str(stream.options.get("FORMAT", "json")), None, codec_options(stream, 1_000_000))
    except BadTopicFilter as error:
        yield f"DATASOURCE of stream '{stream.name}': {error}", None
    except CodecError as error:
        yield f"FORMAT of stream '{stream.name}': {error}", None


def _store_complaints(stream: Stream, kind: str) -> Iterable[tuple[str, str | None]]:
    """The complaints about a store that need no configuration of the gateway."""
    if kind != "http" and not stream.options.get("DATASOURCE"):
        what = "the table of the database" if kind == "sql" else "the number of the database"
        yield f"table '{stream.name}' has no DATASOURCE", f"write {what}"
        return
    try:
        settings_of(kinds()[kind], stream)
    except BadSource as error:
        yield f"{error.option} of table '{stream.name}' {error}", None


def _source_complaints(stream: Stream, kind: SourceKind) -> Iterable[tuple[str, str | None]]:
    """The complaints about a source that need no configuration of the gateway."""
    if kind.name != "simulator" and not stream.options.get("DATASOURCE"):
        yield (
            f"{_word(stream)} '{stream.name}' has no DATASOURCE",
            "write the file's name, or the path of the address",
        )
    try:
        settings = settings_of(kind, stream)
        if stream.kind == "scan" and kind.name == FILE:
            from edge.intake.sources.file import check_table

            check_table(settings)
        text_format = kind.row_format(settings) or str(stream.options.get("FORMAT", "json"))
        decoder_for(text_format, None, codec_options(stream, 1_000_000))
    except BadSource as error:
        yield f"{error.option} of {_word(stream)} '{stream.name}' {error}", None
    except CodecError as error:
        yield f"FORMAT of {_word(stream)} '{stream.name}': {error}", None


def _word(stream: Stream) -> str:
    return "stream" if stream.kind == "stream" else "table"


def lessons_of(stream: Stream, plans: Iterable[Plan]) -> Lessons:
    """The lessons for a stream, with the expected columns: those declared, and those that rules read."""
    parts = topic_parts(stream)
    declared = {name: type_ for name, type_ in (stream.columns or {}).items() if name not in parts}
    read = columns_read(plans, stream.name)
    return Lessons(stream.name, declared, None if read is None else {*read} - parts.keys() - {META})


def validator_of(stream: Stream, plans: Iterable[Plan]) -> Validator:
    """Checks the columns of a stream that some rule reads; those that come from the topic fit."""
    read, parts = columns_read(plans, stream.name), topic_parts(stream)
    return Validator(
        stream,
        {column.name for column in stream.declared if read is None or column.name in read} - parts.keys(),
    )


def codec_options(stream: Stream, payload_bytes_max: int) -> CodecOptions:
    """The options for decoding the payloads of a stream."""
    parts = topic_parts(stream)
    columns = {name: type_ for name, type_ in (stream.columns or {}).items() if name not in parts}
    return CodecOptions(
        bytes_max=min(payload_bytes_max, int(stream.options.get("PAYLOAD_BYTES_MAX", payload_bytes_max))),
        delimiter=str(stream.options.get("DELIMITER", ",")),
        schema=str(stream.options.get("SCHEMAID", "")),
        fields=tuple(columns),
        types={name: type_.value for name, type_ in columns.items()},
    )
