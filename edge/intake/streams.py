"""From messages to rows: the streams that read a topic, and one decoding per stream for all its rules.

A `StreamTable` is made anew whenever rules change, from the columns that the rules read, and replaced
as a whole; it is used by the gateway loop only. A message whose stream needs metadata (`meta()`,
`sendMetaToSink`) carries it as column `$meta`.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from edge.base.message import BadMessage, Message
from edge.intake.broker_state import MAIN
from edge.intake.lanes import lanes
from edge.intake.lessons import Lessons
from edge.intake.origins import Origins
from edge.intake.router import TopicRouter
from edge.intake.stream_decoder import StreamDecoder, StreamSpec

log = logging.getLogger("penstock.streams")

_topic = itemgetter(0)


class ChainedRows(NamedTuple):
    """Rows of a memory topic: one rule's result is another's stream."""

    stream: str
    rows: list[dict[str, Any]]


class RefusedMessage(NamedTuple):
    """A message that some streams cannot read, however many one dead letter, with the reason of the first."""

    message: BadMessage
    streams: list[str]


class Decoded(msgspec.Struct):
    """The result of a batch of messages: rows by stream, in order, and the messages that are dead letters.

    origins   by stream: the origins of its rows
    each      the rows of each message, one message after the other,
              of streams whose order with others matters
    """

    rows: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    bad: list[RefusedMessage] = msgspec.field(default_factory=list)
    origins: dict[str, Origins] = msgspec.field(default_factory=dict)
    each: dict[str, Iterator[list[Any]]] = msgspec.field(default_factory=dict)


class StreamTable:
    """Routes and decodes. Raises `BadTopicFilter` and `CodecError` when made from
    specs that make no sense."""

    def __init__(
        self,
        specs: Sequence[StreamSpec],
        groups: Mapping[str, str] | None = None,
        lasting: frozenset[str] = frozenset(),
        timed: Collection[str] = (),
    ) -> None:
        """`groups`: a name that those streams have in common whose events must keep their order.

        `lasting`: streams whose messages have effects that must outlast a crash. `timed`: streams that rules
        read in event time. Their topics share a lane: in turn, a busy topic would fall behind the others of
        its stream, whose time stamps would make its events late.
        """
        self.lasting = lasting | {spec.name for spec in specs if spec.reader is not None}
        named = Counter((groups or {}).get(spec.name) for spec in specs)
        self._groups = {name: group for name, group in (groups or {}).items() if named[group] > 1}
        alone = {spec.name: spec.name for spec in specs if spec.name in timed}
        self._lanes = lanes(specs, alone | self._groups)
        self._routers: defaultdict[str, TopicRouter] = defaultdict(TopicRouter)
        """The streams by the topics of each connection."""
        self.decoders: dict[str, StreamDecoder] = {}
        """By stream."""
        self.readers = {spec.name: spec.reader for spec in specs if spec.reader is not None}
        """The rule and the table of each spec that is for one rule only."""
        self._connections = {spec.name: spec.connection for spec in specs}
        for spec in specs:
            self._routers[spec.connection].add(spec.topic, spec.name)
            self.decoders[spec.name] = StreamDecoder(spec)
        self.unrouted = 0
        self._is_told = False

    def go_on_from(self, former: StreamTable) -> None:
        """Go on with the counts of the table before this one."""
        self.unrouted = former.unrouted
        for name, decoder in self.decoders.items():
            if name in former.decoders:
                decoder.received = former.decoders[name].received

    @property
    def received(self) -> dict[str, int]:
        """The messages so far, by stream."""
        return {name: decoder.received for name, decoder in self.decoders.items()}

    @property
    def lessons(self) -> dict[str, Lessons]:
        """The findings from payloads, by stream, of those whose payloads are sampled."""
        found = ((name, decoder.spec.lessons) for name, decoder in self.decoders.items())
        return {name: lessons for name, lessons in found if lessons is not None}

    def _note_unrouted(self, topic: str) -> None:
        """A subscription that has just been given up, or one that the broker kept of an earlier run, still
        delivers."""
        self.unrouted += 1
        if not self._is_told:
            self._is_told = True
            log.warning("message.unrouted", extra={"topic": topic, "note": "no running rule reads it"})

    def connections(self, streams: Iterable[str]) -> set[str]:
        """The connections that these streams are read from."""
        return {self._connections[name] for name in streams if name in self._connections}

    def router(self, connection: str) -> TopicRouter:
        """The streams by the topics of a connection."""
        return self._routers[connection]

    def groups_of(self, topic: str, connection: str = MAIN) -> list[tuple[str, str]]:
        """The streams of a topic whose events must keep their order with those of
        others, and their groups."""
        streams = self.router(connection).match(topic)
        return [(name, self._groups[name]) for name in streams if name in self._groups]

    def lane_of(self, topic: str, connection: str = MAIN) -> str:
        """The topic; for those whose events must keep their order with those of others,
        the lane of all of them."""
        streams = self.router(connection).match(topic) if self._lanes else ()
        return next((self._lanes[name] for name in streams if name in self._lanes), topic)

    def in_order(
        self, messages: Sequence[Message], decoded: Decoded, connection: str = MAIN
    ) -> Iterable[tuple[str, list[Any]]]:
        """The rows of decoded messages by stream, cut where another stream begins whose order with the one
        before matters; message by message where they enter two such streams each."""
        if not decoded.each:
            return decoded.rows.items()
        return self._pieces(messages, decoded, connection)

    def _pieces(
        self, messages: Sequence[Message], decoded: Decoded, connection: str
    ) -> Iterator[tuple[str, list[Any]]]:
        yield from ((stream, rows) for stream, rows in decoded.rows.items() if stream not in decoded.each)
        groups = {topic: self.groups_of(topic, connection) for topic in {message[0] for message in messages}}
        for streams, run in groupby(messages, key=lambda message: groups[message[0]]):
            if len({group for _, group in streams}) < len(streams):
                pieces = [(name, next(decoded.each[name])) for _ in run for name, _ in streams]
            else:
                count = len(list(run))
                pieces = [(name, [*chain(*islice(decoded.each[name], count))]) for name, _ in streams]
            yield from ((name, rows) for name, rows in pieces if rows)

    def decode(self, messages: Sequence[Message], connection: str = MAIN) -> Decoded:
        """All rows of a batch; a message that several streams read is decoded for each, for
        they differ in columns."""
        decoded = Decoded()
        refused: dict[int, RefusedMessage] = {}
        for stream, found in self._by_stream(messages, connection).items():
            rows, bad = self.decoders[stream].take(found)
            if rows:
                decoded.rows[stream] = rows
                decoded.origins[stream] = Origins(_without(found, bad) if bad else found, rows)
            if stream in self._groups and len(messages) > 1:
                decoded.each[stream] = self._each(stream, found, rows, {at for at, _ in bad})
            for at, reason in bad:
                topic, payload, token, _ = found[at]
                first = RefusedMessage((topic, payload, token, reason), [])
                refused.setdefault(id(found[at]), first).streams.append(stream)
        if refused:
            decoded.bad += refused.values()
        return decoded

    def _each(
        self, stream: str, messages: Sequence[Message], rows: list[Any], bad: set[int]
    ) -> Iterator[list[Any]]:
        """The rows of each message. Where some hold arrays, each is decoded by itself,
        for its number of rows."""
        is_one = len(rows) + len(bad) == len(messages) and not any(map(_may_be_array, messages))
        if is_one and not bad:
            return ([row] for row in rows)
        if is_one:
            found = iter(rows)
            return ([] if at in bad else [next(found)] for at in range(len(messages)))
        return (self.decoders[stream].rows([message])[0] for message in messages)

    def _by_stream(self, messages: Sequence[Message], connection: str) -> Mapping[str, Sequence[Message]]:
        """The messages by the streams that read them."""
        match = self._routers[connection].match
        topics = set(map(_topic, messages))
        different = set(map(match, topics))
        if len(different) == 1 and (streams := different.pop()):
            return dict.fromkeys(streams, messages)
        streams_of = {topic: match(topic) for topic in topics}
        found: dict[str, list[Message]] = {}
        for message in messages:
            streams = streams_of[message[0]]
            for stream in streams:
                found.setdefault(stream, []).append(message)
            if not streams:
                self._note_unrouted(message[0])
        return found


def _without(messages: Sequence[Message], bad: list[tuple[int, str]]) -> Sequence[Message]:
    """The messages that gave rows."""
    refused = {at for at, _ in bad}
    return [message for at, message in enumerate(messages) if at not in refused]


def _may_be_array(message: Message) -> bool:
    return message[1].lstrip()[:1] == b"["
