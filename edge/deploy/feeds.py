"""The feeds of the streams that some rule reads: their sources, and the decoding of messages into rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge.deploy.stream_types import (
    FILE,
    MEMORY,
    codec_options,
    is_store,
    lessons_of,
    stream_type,
    validator_of,
)
from edge.intake.sources.registry import BadSource, Configured, SourceKind, settings_of, source_kind, topic_of
from edge.intake.stream_decoder import StreamSpec
from sql.catalog.streams import Catalog, Stream
from sql.catalog.topics import topic_parts
from sql.catalog.validation import readers_of
from sql.plan.logical import Plan
from sql.record import Record, replace


class SourceFeed(Record):
    """A source of its own for a stream, or for a table of one rule.

    stream    with the name under which the source delivers
    reader    of a table: the rule, and the table's name
    version   the computation of a table's rule; another one begins with an empty table
    """

    stream: Stream
    settings: Any
    reader: tuple[str, str] | None = None
    version: str = ""


@dataclass(slots=True)
class Feeds:
    """The feeds of the streams that some rule reads.

    decoded   specs by which messages of MQTT and of other sources become rows
    memory    (name, topic filter) of the streams of memory topics
    meta      streams whose rows carry metadata
    sources   the sources of single streams and tables
    stores    the tables of stores
    failed    streams whose source cannot fulfil their options, and why
    keys      field that identifies a message, by stream
    latencies_ms  longest wait of messages, of each stream; None: the limit of the gateway's configuration
    checked   streams whose messages are checked against their declared types as they are decoded
    """

    decoded: list[StreamSpec] = field(default_factory=list)
    memory: list[tuple[str, str]] = field(default_factory=list)
    meta: set[str] = field(default_factory=set)
    sources: list[SourceFeed] = field(default_factory=list)
    stores: list[Stream] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    latencies_ms: list[int | None] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)

    def note(self, name: str, options: Mapping[str, Any]) -> None:
        """Note a stream's options for its messages."""
        if "MESSAGE_KEY" in options:
            self.keys[name] = str(options["MESSAGE_KEY"])
        latency = options.get("LATENCY_MS")
        self.latencies_ms.append(None if latency is None else int(latency))

    @property
    def filters(self) -> dict[str, list[str]]:
        """The topics to subscribe to, by the connection to their broker."""
        own = {topic_of(source.stream.name) for source in self.sources}
        found: dict[str, list[str]] = {}
        for spec in self.decoded:
            if spec.topic not in own:
                found.setdefault(spec.connection, []).append(spec.topic)
        return found


def feeds(
    catalog: Catalog,
    plans: Iterable[Plan],
    payload_bytes_max: int,
    meta: Iterable[str] = (),
    structs: Mapping[str, frozenset[str]] | None = None,
    configured: Configured | None = None,
) -> Feeds:
    """The feeds that these plans need, and no others.

    `meta` names streams that must carry metadata, beside those whose rules use it; `structs` the columns of
    those streams whose messages become structs; `configured` the settings of sources in the gateway's
    configuration.
    """
    plans = list(plans)
    wants_meta = {*meta, *(stream for plan in plans if plan.uses_meta for stream in plan.streams)}
    readers = readers_of(plans)
    feeder = _Feeder(readers, payload_bytes_max, wants_meta, structs or {}, configured or Configured())
    for name in readers:
        stream = catalog.streams.get(name)
        if stream is not None and (kind := stream_type(stream)):
            feeder.add(stream, kind)
    return feeder.found


class _Feeder:
    """Finds the feeds of streams, one after the other."""

    def __init__(
        self,
        readers: Mapping[str, list[Plan]],
        payload_bytes_max: int,
        meta: set[str],
        structs: Mapping[str, frozenset[str]],
        configured: Configured,
    ) -> None:
        self.readers = readers
        self.payload_bytes_max = payload_bytes_max
        self.structs = structs
        self.configured = configured
        self.found = Feeds(meta=meta)

    def add(self, stream: Stream, kind: str) -> None:
        """The stream's store, memory topic, source or topic at the broker."""
        if is_store(stream):
            self.found.stores.append(stream)
        elif kind == MEMORY:
            self.found.memory.append((stream.name, stream.datasource))
        elif (source := source_kind(kind)) is not None:
            self._add_source(stream, kind, source)
        else:
            spec = self._spec(stream, stream.name, stream.datasource, stream.format)
            if stream.format.lower() == "json":
                spec = replace(spec, lessons=lessons_of(stream, self.readers[stream.name]))
            connection = self.configured.brokers.of_stream(stream.options)
            self.found.decoded.append(replace(spec, parts=topic_parts(stream), connection=connection))

    def _add_source(self, stream: Stream, kind: str, source: SourceKind) -> None:
        try:
            settings = settings_of(source, stream, self.configured)
        except BadSource as error:
            self.found.failed[stream.name] = f"{error.option} {error}"
            return
        text_format = source.row_format(settings) or stream.format
        for feed in _source_feeds(stream, kind, settings, self.readers[stream.name]):
            self.found.sources.append(feed)
            name = feed.stream.name
            spec = self._spec(stream, name, topic_of(name), text_format)
            # Its messages have a topic for the router only.
            self.found.decoded.append(replace(spec, reader=feed.reader, wants_meta=False))

    def _spec(self, stream: Stream, name: str, topic: str, text_format: str) -> StreamSpec:
        """The spec by which messages of a topic become rows; `name`: the stream that the rows go to."""
        self.found.note(name, stream.options)
        options = codec_options(stream, self.payload_bytes_max)
        if stream.validation == "intake":
            options = replace(options, validator=validator_of(stream, self.readers[stream.name]))
            self.found.checked.add(stream.name)
        columns = self.structs.get(stream.name)
        return StreamSpec(name, topic, text_format, options, columns, stream.name in self.found.meta)


def _source_feeds(stream: Stream, kind: str, settings: object, readers: Iterable[Plan]) -> list[SourceFeed]:
    """The source of a stream; of a table in a file, one for each rule, which reads it when it begins."""
    if stream.kind != "scan" or kind != FILE:
        return [SourceFeed(stream, settings)]
    versions = {plan.options.rule_id: plan.fingerprint for plan in readers}
    return [
        SourceFeed(replace(stream, name=f"{stream.name}@{rule}"), settings, (rule, stream.name), version)
        for rule, version in versions.items()
    ]
