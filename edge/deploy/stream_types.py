"""The meaning of a stream's options: the source of its events, and their decoding.

TYPE="mqtt"     (default) DATASOURCE is a topic filter
TYPE="memory"   DATASOURCE is a filter of memory topics: the results of other rules
TYPE="file", "httppull", "httppush", "simulator": see `edge.intake.sources.registry`
"""

from __future__ import annotations

from collections.abc import Iterable

from edge.intake.codecs import META, CodecOptions, Decoder, decoder_for
from edge.intake.codecs.delimited import delimiter_of
from edge.intake.lessons import Lessons
from edge.intake.sources.registry import source_kinds
from sql.catalog.stores import STORES
from sql.catalog.streams import Stream
from sql.catalog.topics import topic_parts
from sql.catalog.validation import Validator, columns_read
from sql.plan.logical import Plan
from sql.record import replace
from sql.types import Type

MQTT, MEMORY, FILE = "mqtt", "memory", "file"

SHOWN_BYTES_MAX = 1_000_000
"""The longest payload that is decoded to be shown."""


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
    return stream.kind == "store" and stream_type(stream) in STORES


def lessons_of(stream: Stream, plans: Iterable[Plan]) -> Lessons:
    """The lessons for a stream, with the expected columns: those declared, and those that rules read."""
    read = columns_read(plans, stream.name)
    wanted = None if read is None else {*read} - topic_parts(stream).keys() - {META}
    return Lessons(stream.name, _in_payload(stream), wanted)


def validator_of(stream: Stream, plans: Iterable[Plan]) -> Validator:
    """Checks the columns of a stream that some rule reads; those that come from the topic fit."""
    read, parts = columns_read(plans, stream.name), topic_parts(stream)
    return Validator(
        stream,
        {column.name for column in stream.declared if read is None or column.name in read} - parts.keys(),
    )


def whole_decoder(stream: Stream) -> Decoder:
    """Decodes the messages of a stream whole, whatever rules read of them. Raises `CodecError`."""
    return decoder_for(stream.format, None, replace(codec_options(stream, SHOWN_BYTES_MAX), types={}))


def codec_options(stream: Stream, payload_bytes_max: int) -> CodecOptions:
    """The options for decoding the payloads of a stream."""
    columns = _in_payload(stream)
    return CodecOptions(
        bytes_max=min(payload_bytes_max, int(stream.options.get("PAYLOAD_BYTES_MAX", payload_bytes_max))),
        delimiter=delimiter_of(stream),
        schema=str(stream.options.get("SCHEMAID", "")),
        fields=tuple(columns),
        types={name: type_.value for name, type_ in columns.items()},
    )


def _in_payload(stream: Stream) -> dict[str, Type]:
    """The declared columns of a stream, without those that are parts of the topic."""
    parts = topic_parts(stream)
    return {name: type_ for name, type_ in (stream.columns or {}).items() if name not in parts}
