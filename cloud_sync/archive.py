"""The `archive` action: raw events go to the bucket in the order of their arrival, with the time of it.

`penstock cloud backfill` runs rules over them again, late events included.
An archiving rule takes whole events of one stream,
so that what is archived is what the stream's other rules read:

    sql: SELECT * FROM plant
    actions: [archive: {}]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

from pydantic import Field, PrivateAttr

from cloud_sync.declaration import CloudSettings
from cloud_sync.names import utc_date
from cloud_sync.records import Record
from cloud_sync.spool_sink import SpoolSink
from rules.model import ActionProblem
from sinks.base import Row, register_sink
from sinks.formats.json_text import json_bytes
from sinks.settings import SinkSettings
from sql import Plan
from sql.errors import did_you_mean
from sql.plan.event_keys import is_stream

ARCHIVE_RULE = "archive"
"""The rule under which the spool of archived events files all of them: one order, whatever rule sent them."""

WHOLE_EVENTS = "write SELECT * FROM stream, with WHERE at most, as a rule of its own"


class ArchiveSettings(SinkSettings):
    """Upload raw events in the order of their arrival, for `penstock cloud backfill`."""

    encodes: ClassVar[bool] = False
    unsupported: ClassVar[frozenset[str]] = CloudSettings.unsupported | {
        "fields",
        "excludeFields",
        "dataField",
        "dataTemplate",
    }

    send_single: bool = Field(True, description="each event is a record of its own")
    send_nil_field: bool = Field(True, description="an event keeps the columns that are null")

    secret: list[str] = Field(
        default_factory=list,
        description="columns that never leave the gateway; rules that read them cannot be repeated",
    )

    _stream: str = PrivateAttr("")

    @property
    def stream(self) -> str:
        """The stream whose events are archived; empty before `bind`."""
        return self._stream

    def of_stream(self, name: str) -> Self:
        """A copy of these settings for events of a stream."""
        copy = self.model_copy()
        copy._stream = name
        return copy


def bind(settings: ArchiveSettings, plan: Plan) -> tuple[ArchiveSettings, list[ActionProblem]]:
    """The settings with the stream of the query,
    and the reasons why its rows are not raw events as they came."""
    problems = [ActionProblem(reason, hint=hint) for reason, hint in _reasons(plan)]
    problems += _unknown(settings.secret, plan)
    return settings if problems else settings.of_stream(plan.sources[0].stream), problems


def _reasons(plan: Plan) -> Iterator[tuple[str, str]]:
    """Why the rows of a query are not the events of a stream in the order of their arrival,
    with the remedy."""
    if plan.mode != "delta" or len(plan.sources) != 1 or not is_stream(plan.sources[0]):
        yield "the rows of the query are not the events of one stream", WHOLE_EVENTS
    elif [(item.name, item.excluded) for item in plan.items] != [(None, ())]:
        yield "the query changes the events", WHOLE_EVENTS
    if plan.timestamp is not None:
        yield (
            "in event time events are put in order and late ones are left out",
            "set isEventTime: false for this rule; the others keep their time",
        )


def _unknown(secret: Sequence[str], plan: Plan) -> Iterator[ActionProblem]:
    """Secret columns that the stream's declaration lacks: a misspelt one would leave the gateway."""
    columns = plan.output_columns
    if columns is None:
        return
    for number, name in enumerate(secret):
        if name not in columns:
            hint = did_you_mean(name, columns) or f"it has {', '.join(columns)}"
            yield ActionProblem(f"the stream has no column '{name}'", ("secret", number), hint)


def archived(row: Row, settings: ArchiveSettings, at_ms: int) -> Record:
    """The record of an event that arrived at `at_ms`. Raises ValueError where no stream is known."""
    if not settings.stream:
        raise ValueError("archive takes the events of a query; write it under 'actions'")
    hidden = {"$meta", *settings.secret}
    event = {name: value for name, value in row.items() if name not in hidden}
    return Record(
        ARCHIVE_RULE, utc_date(at_ms), json_bytes({"at": at_ms, "stream": settings.stream, "event": event})
    )


register_sink("archive", ArchiveSettings, SpoolSink, bind)
