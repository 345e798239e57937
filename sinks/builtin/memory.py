"""The `memory` sink: the results of one rule are the stream of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, field_validator

from rules.durations import DurationMs
from rules.secrets import reveal
from sinks.base import Message, Retry, SinkContext, register_sink
from sinks.dynamic import check_topic
from sinks.kuiper_keys import WITHOUT_EFFECT
from sinks.memory_bus import Subscriber
from sinks.settings import CACHE, SinkSettings, Text
from sql.rows import deletion

Row = Mapping[str, Any]


class MemorySettings(SinkSettings):
    """Pass rows to streams and lookup tables inside the process that read the same memory topic.

    A row whose `rowkindField` says delete removes the row of its KEY from the tables.
    """

    target: ClassVar[str | None] = "topic"
    encodes: ClassVar[bool] = False
    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"format", "schemaId", "delimiter", "hasHeader", "compression", "batchSize", "lingerInterval", *CACHE}
    )

    without_effect: ClassVar[Mapping[str, str]] = {
        **WITHOUT_EFFECT,
        "keyField": "the lookup table that reads the topic names its KEY",
    }

    topic: Text = Field(description="the memory topic, such as 'plant/{{.site}}/averages'")
    retry_interval: DurationMs = Field(
        10, ge=1, description="time until a full stream is tried again; doubles"
    )
    retry_max_interval: DurationMs = Field(1000, ge=1, description="the longest wait between retries")

    @field_validator("topic")
    @classmethod
    def _topic_is_one(cls, topic: object) -> Any:
        check_topic(reveal(topic))
        return topic


class MemorySink:
    """A sink that offers rows to all subscribers of the topic; each takes a message once, in order."""

    def __init__(self, settings: MemorySettings, context: SinkContext) -> None:
        self._bus = context.environment.memory
        self._rowkind_field = settings.rowkind_field
        self._head: Message | None = None
        self._served: list[Subscriber] = []

    def open(self) -> None:
        """Do nothing: the bus belongs to the process."""

    def send(self, messages: Sequence[Message]) -> None:
        """Offer each message; `Retry` when a subscriber is full. Subscribers that took it get it once."""
        for done, message in enumerate(messages):
            if message is not self._head:
                self._head, self._served = message, []
            for subscriber in self._bus.subscribers(message.target):
                if subscriber in self._served:
                    continue
                if not subscriber(message.target, self._with_kinds(message.rows), message.at_ms):
                    raise Retry(f"a stream that reads memory topic {message.target!r} is full", done=done)
                self._served.append(subscriber)

    def _with_kinds(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows; those whose kind is delete carry it in their metadata, which tables read."""
        field = self._rowkind_field
        if field is None:
            return rows
        return [deletion(row) if row.get(field) == "delete" else row for row in rows]

    def close(self) -> None:
        """Do nothing."""


register_sink("memory", MemorySettings, MemorySink)
