"""The instants of events: by a column of their own, and the events of each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from sql.errors import DataError
from sql.plan.logical import Plan
from sql.rows import attribute_name

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, where all calendars end."""


def time_stamp(plan: Plan, stream: str, row: object, zone: ZoneInfo) -> int:
    """The instant of an event by its own column, in ms; DataError where that holds none.

    A number behind the year 9999 is none: it is in microseconds or nanoseconds, or damaged, and would make
    all later events late.
    """
    column, pattern = plan.timestamps.get(stream, (plan.timestamp or "", None))
    value = row.get(column) if row.__class__ is dict else getattr(row, attribute_name(column), None)
    if value.__class__ is int or value.__class__ is float:
        if value <= LAST_MS:
            return int(value)
        why = "is no instant: time stamps are milliseconds since 1970, up to the year 9999"
        raise DataError(f"the timestamp column '{column}' holds {value!r}, which {why}")
    if value.__class__ is str:
        return _parsed(value, pattern, zone)
    if value is None:
        raise DataError(f"the timestamp column '{column}' is missing or NULL")
    raise DataError(f"the timestamp column '{column}' holds {value!r}, which is no instant")


def by_instant(rows: Sequence[Any], instants: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
    """The events of each instant, which never decreases."""
    first = 0
    while first < len(rows):
        last = bisect_right(instants, instants[first], first)
        yield instants[first], rows[first:last]
        first = last


def _parsed(text: str, pattern: str | None, zone: ZoneInfo) -> int:
    from sql.functions.instants import epoch_ms, instant_ms
    from sql.functions.notations.time_pattern import parse_moment

    return instant_ms(text, zone) if pattern is None else epoch_ms(parse_moment(text, pattern, zone))
