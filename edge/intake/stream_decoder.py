"""The rows of one stream's messages: its codec, the columns that are parts of the topic, metadata, a count.

A sample of the payloads shows where they deviate from the declaration (`edge.intake.lessons`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec import field

from edge.base.message import RETAINED, Message, message_id, qos_of
from edge.intake.broker_state import MAIN
from edge.intake.codecs import CodecOptions, decoder_for
from edge.intake.codecs.base import Bad, Row
from edge.intake.lessons import Lessons
from edge.intake.topic_columns import TopicColumns
from sql.record import Record

log = logging.getLogger("penstock.streams")

_topic, _payload = itemgetter(0), itemgetter(1)


class StreamSpec(Record):
    """The properties of a stream that its decoder and the table of streams need.

    topic     filter of the topics it reads
    connection  the connection to the broker that has them; that of a stream's own source does not matter
    columns   the columns that its rules read; None: everything
    parts     columns that are parts of the topic, by number
    lessons   the findings from its payloads; None: payloads are not sampled
    reader    (rule, table): the rows are those of a table, for one rule only
    """

    name: str
    topic: str
    format: str = "json"
    codec: CodecOptions = CodecOptions()
    columns: frozenset[str] | None = None
    wants_meta: bool = False
    reader: tuple[str, str] | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    lessons: Lessons | None = None
    connection: str = MAIN


class StreamDecoder:
    """Decodes the messages of one stream. Raises `CodecError` when made from a spec that makes no sense."""

    def __init__(self, spec: StreamSpec) -> None:
        self.received = 0
        """The number of its messages so far."""
        self.spec = spec
        decoder = decoder_for(spec.format, spec.columns, spec.codec)
        self._decode_many = decoder.decode_many
        self._with_topics = TopicColumns(decoder, spec.parts, spec.columns) if spec.parts else None
        self._lessons_told: set[str] = set()

    def take(self, messages: Sequence[Message]) -> tuple[list[Row], list[Bad]]:
        """The rows of messages that have just come, see `rows`. Counts the messages, and samples some."""
        found = self.rows(messages)
        self.received += len(messages)
        lessons = self.spec.lessons
        if lessons is not None and lessons.due_at < self.received:
            self._learn(lessons, messages[0][1])
        return found

    def rows(self, messages: Sequence[Message]) -> tuple[list[Row], list[Bad]]:
        """The rows of messages in order, and (index, reason) of those that cannot be read."""
        payloads = [*map(_payload, messages)]
        metas = [*map(meta_of, messages)] if self.spec.wants_meta else None
        if self._with_topics is None:
            return self._decode_many(payloads, metas)
        return self._with_topics.decode_many(payloads, [*map(_topic, messages)], metas)

    def _learn(self, lessons: Lessons, payload: bytes) -> None:
        """Sample a whole message; log deviations from the declaration, once for each column."""
        lessons.sample(payload)
        lessons.sampled_until(self.received)
        for column, text in lessons.texts().items():
            if column not in self._lessons_told:
                self._lessons_told.add(column)
                where = {"stream": self.spec.name, "column": column}
                log.warning("payload.unexpected", extra={**where, "note": text})


def meta_of(message: Message) -> Mapping[str, Any]:
    """The result of `meta()` for a message, under eKuiper's names.

    >>> meta_of(("plant/7", b"", 5, 0x03))
    {'topic': 'plant/7', 'qos': 1, 'messageid': 5, 'retained': True}
    """
    topic, _, _, flags = message
    return {
        "topic": topic,
        "qos": qos_of(flags),
        "messageid": message_id(message),
        "retained": bool(flags & RETAINED),
    }
