"""Instants on the grid of the rule's calendar, and whole months away from another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sql.calendar.period import Period
from sql.errors import DataError
from sql.functions.definition import Context
from sql.functions.instants import Time, epoch_ms, instant_ms, moment
from sql.functions.registry import Parameter, function
from sql.types import Type

UNITS = {
    **dict.fromkeys(("msec", "millisecond", "milliseconds"), "millisecond"),
    **dict.fromkeys(("sec", "second", "seconds"), "second"),
    **dict.fromkeys(("min", "minute", "minutes"), "minute"),
    **dict.fromkeys(("hour", "hours"), "hour"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("year", "years"), "year"),
}
"""The words for a unit."""

_LENGTHS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000}

_CUTS: dict[str, Callable[[datetime], datetime]] = {
    "millisecond": lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000),
    "second": lambda t: t.replace(microsecond=0),
    "minute": lambda t: t.replace(second=0, microsecond=0),
    "hour": lambda t: t.replace(minute=0, second=0, microsecond=0),
    "day": lambda t: t.replace(hour=0, minute=0, second=0, microsecond=0),
    "month": lambda t: t.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
    "year": lambda t: t.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
}

_NEXT: dict[str, Callable[[datetime], datetime]] = {
    "day": lambda t: t + timedelta(days=1),
    "month": lambda t: t.replace(year=t.year + t.month // 12, month=t.month % 12 + 1),
    "year": lambda t: t.replace(year=t.year + 1),
}
"""The next beginning of a unit whose length the calendar decides."""


def unit_named(name: str) -> str:
    """The unit of a word."""
    unit = UNITS.get(name.lower())
    if unit is None:
        raise DataError(f"'{name[:40]}' is no unit; take one of {', '.join(_CUTS)}")
    return unit


TIME = Parameter("time", Type.DATETIME)
UNIT = Parameter("unit", Type.STRING, check=unit_named)


@function(
    "time_floor",
    category="datetime",
    returns=Type.INTEGER,
    context=True,
    parameters=(TIME, UNIT),
    examples=(
        ("time_floor('2024-03-31 23:59:58', 'hour')", 1711926000000),
        ("time_floor(1711929598123, 'month')", 1709251200000),
    ),
)
def time_floor(context: Context, value: Time, unit: str) -> int:
    """The beginning of the millisecond, second, minute, hour, day, month or year that a time lies in, by the
    rule's calendar, in epoch milliseconds."""
    return epoch_ms(_CUTS[unit_named(unit)](moment(value, context.zone)))


@function(
    "time_ceil",
    category="datetime",
    returns=Type.INTEGER,
    context=True,
    parameters=(TIME, UNIT),
    examples=(
        ("time_ceil('2024-03-31 22:59:58', 'hour')", 1711926000000),
        ("time_ceil('2024-12-01', 'month')", 1733011200000),
        ("time_ceil('2024-12-01 00:00:01', 'month')", 1735689600000),
    ),
)
def time_ceil(context: Context, value: Time, unit: str) -> int:
    """The same as time_floor() where a time lies at the beginning of a unit, else the beginning of the next
    one."""
    found, unit = moment(value, context.zone), unit_named(unit)
    cut = _CUTS[unit](found)
    if cut == found:
        return epoch_ms(cut)
    return epoch_ms(_NEXT[unit](cut)) if unit in _NEXT else epoch_ms(cut) + _LENGTHS[unit]


@function(
    "add_months",
    category="datetime",
    returns=Type.INTEGER,
    context=True,
    parameters=(TIME, Parameter("months", Type.INTEGER)),
    examples=(
        ("add_months('2024-01-31', 1)", 1709164800000),
        ("add_months('2024-03-31 12:00:00', -1)", 1709208000000),
    ),
)
def add_months(context: Context, value: Time, months: int) -> int:
    """The time so many months later, negative: earlier, in epoch milliseconds; a day that the month does not
    have becomes its last."""
    period, at = Period(months=abs(months)), instant_ms(value, context.zone)
    return period.add(at, context.zone) if months >= 0 else period.subtract(at, context.zone)
