"""The model of inline tests: timed steps, and the rows that the rule must emit.

    tests:
      - name: alerts above 80
        events:
          - at: 1s
            send: {dev: a, temp: 81}
          - advance: 10s
        expect:
          - at: 1s
            rows: [{dev: a, temp: 81}]

Times are relative to `start`, which is 1970 unless given, or full instants. `rules.inline` runs them.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from rules.base import Model
from rules.durations import DurationMs, looks_like_instant, parse_duration, parse_instant
from sql.record import Record

_TIME_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}


class Moment(Record):
    """A time of a test: milliseconds after its start, or since the epoch if `absolute`."""

    ms: int
    absolute: bool = False

    def since_epoch(self, start_ms: int) -> int:
        """The instant, for a test that starts at `start_ms`."""
        return self.ms if self.absolute else start_ms + self.ms


def _moment(value: int | str) -> Moment:
    if looks_like_instant(value):
        return Moment(parse_instant(value), absolute=True)
    return Moment(parse_duration(value))


At = Annotated[Moment, PlainValidator(_moment), WithJsonSchema(_TIME_SCHEMA)]
Start = Annotated[
    int, BeforeValidator(parse_instant), WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]})
]


def _rows(value: int | str) -> Any:
    """A list of rows; a single row is put into one."""
    return [value] if isinstance(value, dict) else value


_ROW_SCHEMA = {"type": "object", "additionalProperties": True}
Rows = Annotated[
    list[dict[str, Any]],
    BeforeValidator(_rows),
    WithJsonSchema({"anyOf": [_ROW_SCHEMA, {"type": "array", "items": _ROW_SCHEMA}]}),
]
"""Rows: column to value. A single one needs no list."""


class Step(Model):
    """One step: events arrive, time passes, or the input ends."""

    at: At | None = Field(
        None, description="when: after the start (1s, 1m30s, milliseconds) or an instant; default: now"
    )
    stream: str | None = Field(
        None,
        description="where the events arrive; not needed when the rule reads one stream. If other rules make "
        "the rule's events of this stream (insert into), they run in the test too",
    )
    send: Rows | None = Field(None, description="the event, or a list of events that arrive together")
    meta: dict[str, Any] | None = Field(
        None, description="metadata of the messages, such as topic, for meta()"
    )
    advance: DurationMs | None = Field(None, description="let this much time pass")
    flush: bool = Field(False, description="end of the input: open windows close at their nominal instants")

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        things = (self.send is not None) + (self.advance is not None) + self.flush
        if things > 1 or (things == 0 and self.at is None):
            raise ValueError(
                "a step has exactly one of 'send', 'advance' and 'flush', or 'at' alone to let time pass"
            )
        if self.send is None and (self.stream or self.meta):
            raise ValueError("'stream' and 'meta' belong to a step with 'send'")
        if self.advance is not None and self.at is not None:
            raise ValueError(
                "'advance' counts from now; remove 'at', or write 'at' alone to go to an instant"
            )
        return self


class Expectation(Model):
    """The rows that the rule emits at one instant. Columns that are NULL may be left out."""

    at: At = Field(description="when: after the start, or an instant; of late events, their own time stamp")
    rows: Rows = Field(default_factory=list, description="rows of the result, in order")
    removed: Rows = Field(
        default_factory=list,
        description="rows that leave, in order (select irstream); with select rstream they stand in rows",
    )
    late: Rows = Field(default_factory=list, description="events refused as late")
    error: str | None = Field(None, min_length=1, description="part of the message of an error event")
    broken: list[str] = Field(
        default_factory=list,
        description="the columns of the checks (`expect` of the rule) that rows break, in order",
    )

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        if not (self.rows or self.removed or self.late or self.error or self.broken):
            raise ValueError(
                "an expectation needs 'rows', 'removed', 'late', 'error' or 'broken'; "
                "leave it out to expect nothing"
            )
        return self


class Test(Model):
    """A test on a virtual clock. A row that the rule emits and `expect` does not name is a failure."""

    __test__ = False

    name: str = Field(min_length=1, description="what the test shows, in words")
    rule: str | None = Field(None, description="id of the rule under test; not needed inside a rule")
    start: Start = Field(0, description="the instant the test starts at; default 1970-01-01T00:00:00Z")
    events: list[Step] = Field(description="what happens, in order of time")
    expect: list[Expectation] = Field(
        default_factory=list, description="all results, in order of time; none by default"
    )
