"""Dates and times. An argument is epoch milliseconds or text; parts are those of the rule's zone (see
`instants`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sql.errors import DataError
from sql.functions.definition import Context
from sql.functions.instants import (
    DAYS,
    EPOCH,
    MONTHS,
    Time,
    as_text,
    check_digits,
    epoch_ms,
    moment,
    now,
    rfc3339,
    zone_named,
)
from sql.functions.notations.time_pattern import fields_of, format_moment
from sql.functions.registry import Parameter, function
from sql.types import Type

TIME = Parameter("time", Type.DATETIME)
DIGITS = Parameter("digits", Type.INTEGER, optional=True, check=check_digits)


# --- now ----------------------------------------------------------------------------------------------------


@function(
    "now",
    category="datetime",
    returns=Type.STRING,
    context=True,
    parameters=(DIGITS,),
    aliases=("current_timestamp", "local_time", "local_timestamp"),
    examples=(("now()", "2024-01-02 03:04:05"), ("now(3)", "2024-01-02 03:04:05.678")),
)
def now_text(context: Context, digits: int = 0) -> str:
    """The current time as text `YYYY-MM-DD HH:mm:ss` in the rule's zone, with 0 to 6 fraction digits."""
    return as_text(now(context), digits)


@function(
    "cur_date",
    category="datetime",
    returns=Type.STRING,
    context=True,
    aliases=("current_date",),
    examples=(("cur_date()", "2024-01-02"),),
)
def cur_date(context: Context) -> str:
    """Today as text `YYYY-MM-DD` in the rule's zone."""
    return now(context).date().isoformat()


@function(
    "cur_time",
    category="datetime",
    returns=Type.STRING,
    context=True,
    parameters=(DIGITS,),
    aliases=("current_time",),
    examples=(("cur_time()", "03:04:05"), ("cur_time(1)", "03:04:05.6")),
)
def cur_time(context: Context, digits: int = 0) -> str:
    """The time of day as text `HH:mm:ss` in the rule's zone, with 0 to 6 fraction digits."""
    return as_text(now(context), digits)[11:]


@function(
    "tstamp", category="datetime", returns=Type.INTEGER, context=True, examples=(("tstamp()", 1704164645678),)
)
def tstamp(context: Context) -> int:
    """The current time in epoch milliseconds."""
    return context.now_ms


# --- parts --------------------------------------------------------------------------------------------------


def _part(
    name: str, part: Callable[[datetime], int | str], doc: str, example: int | str, *aliases: str
) -> None:
    def evaluate(context: Context, value: Time) -> int | str:
        return part(moment(value, context.zone))

    evaluate.__doc__ = doc
    returns = Type.STRING if isinstance(example, str) else Type.INTEGER
    function(
        name,
        category="datetime",
        returns=returns,
        context=True,
        parameters=(TIME,),
        aliases=aliases,
        examples=((f"{name}('2024-03-31 23:59:58.123')", example),),
    )(evaluate)


_part("year", lambda t: t.year, "The year.", 2024)
_part("quarter", lambda t: (t.month + 2) // 3, "The quarter of the year, 1 to 4.", 1)
_part("month", lambda t: t.month, "The month, 1 to 12.", 3)
_part("week", lambda t: t.isocalendar().week, "The ISO week, 1 to 53; weeks begin on Monday.", 13)
_part("day_of_month", lambda t: t.day, "The day of the month, 1 to 31.", 31, "day")
_part("day_of_year", lambda t: t.timetuple().tm_yday, "The day of the year, 1 to 366.", 91)
_part("day_of_week", lambda t: t.isoweekday() % 7 + 1, "The day of the week: Sunday is 1, Saturday 7.", 1)
_part("hour", lambda t: t.hour, "The hour, 0 to 23.", 23)
_part("minute", lambda t: t.minute, "The minute, 0 to 59.", 59)
_part("second", lambda t: t.second, "The second, 0 to 59.", 58)
_part(
    "microsecond", lambda t: t.microsecond, "The fraction of the second in microseconds, 0 to 999999.", 123000
)
_part("day_name", lambda t: DAYS[t.weekday()], "The English name of the day.", "Sunday")
_part("month_name", lambda t: MONTHS[t.month - 1], "The English name of the month.", "March")


# --- calculation --------------------------------------------------------------------------------------------


_NANOSECONDS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1000,
    "µs": 1000,
    "ns": 1,
}
_DURATION = re.compile(r"(\d{1,15})(?:\.(\d{1,9}))?(h|ms|m|s|us|µs|ns)")


def _duration_ms(text: str) -> int:
    """Milliseconds, cut towards zero, of a duration such as `1h30m`, `-1.5s`."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if not rest or not re.fullmatch(f"(?:{_DURATION.pattern})+", rest):
        raise DataError(f"'{text[:40]}' is not a duration; write it like '1h30m', '-2s', '250ms'")
    nanoseconds = 0
    for whole, fraction, unit in _DURATION.findall(rest):
        nanoseconds += int(whole) * _NANOSECONDS[unit]
        nanoseconds += int(f"{fraction:0<9}") * _NANOSECONDS[unit] // 1_000_000_000
    return sign * (nanoseconds // 1_000_000)


@function(
    "date_calc",
    category="datetime",
    returns=Type.STRING,
    context=True,
    parameters=(TIME, Parameter("duration", Type.STRING, check=_duration_ms)),
    examples=(
        ("date_calc('2019-01-01', '1h')", "2019-01-01 01:00:00"),
        ("date_calc('2019-01-01', '-1h30m')", "2018-12-31 22:30:00"),
    ),
)
def date_calc(context: Context, value: Time, duration: str) -> str:
    """The time a duration later, as text to the second; units are h m s ms us ns, a leading minus goes
    back. Hours are elapsed."""
    found = moment(value, context.zone)
    # Through UTC: adding to local time would add wall-clock hours, which differ from elapsed
    # ones at a clock change.
    return as_text(moment(epoch_ms(found) + _duration_ms(duration), found.tzinfo or context.zone), 0)


@function(
    "date_diff",
    category="datetime",
    returns=Type.INTEGER,
    context=True,
    parameters=(Parameter("from", Type.DATETIME), Parameter("to", Type.DATETIME)),
    examples=(
        ("date_diff('2024-02-28', '2024-03-01')", 2),
        ("date_diff('2024-01-02 00:00:00', '2024-01-01 12:00:00')", 0),
    ),
)
def date_diff(context: Context, start: Time, end: Time) -> int:
    """The whole days from one time to another by the rule's calendar; negative if the second is earlier."""
    first, last = (
        moment(value, context.zone).astimezone(context.zone).replace(tzinfo=None) for value in (start, end)
    )
    day = timedelta(days=1)
    return (last - first) // day if last >= first else -((first - last) // day)


@function(
    "last_day",
    category="datetime",
    returns=Type.STRING,
    context=True,
    parameters=(TIME,),
    examples=(("last_day('2024-02-10')", "2024-02-29"),),
)
def last_day(context: Context, value: Time) -> str:
    """The last date of the month, as text `YYYY-MM-DD`."""
    first = moment(value, context.zone).date().replace(day=1)
    days = 31 if first.month == 12 else (first.replace(month=first.month + 1) - first).days
    return first.replace(day=days).isoformat()


@function(
    "from_days",
    category="datetime",
    returns=Type.STRING,
    parameters=(Parameter("days", Type.INTEGER),),
    examples=(("from_days(1)", "1970-01-01"), ("from_days(0)", "1969-12-31")),
)
def from_days(days: int) -> str:
    """The date of a day number as text `YYYY-MM-DD`; day 1 is 1970-01-01."""
    return (EPOCH + timedelta(days=days - 1)).date().isoformat()


@function(
    "from_unix_time",
    category="datetime",
    returns=Type.STRING,
    context=True,
    parameters=(Parameter("seconds", Type.NUMBER),),
    examples=(("from_unix_time(0)", "1970-01-01 00:00:00"), ("from_unix_time(1)", "1970-01-01 00:00:01")),
)
def from_unix_time(context: Context, seconds: float) -> str:
    """The time of a number of seconds since 1970 as text in the rule's zone."""
    return as_text(moment(int(seconds * 1000), context.zone))


@function(
    "to_seconds",
    category="datetime",
    returns=Type.INTEGER,
    context=True,
    parameters=(TIME,),
    examples=(("to_seconds('1970-01-01 00:01:00')", 60), ("to_seconds(1999)", 1)),
)
def to_seconds(context: Context, value: Time) -> int:
    """Whole seconds since 1970."""
    return epoch_ms(moment(value, context.zone)) // 1000


@function(
    "format_time",
    category="datetime",
    returns=Type.STRING,
    context=True,
    parameters=(TIME, Parameter("pattern", Type.STRING, check=fields_of)),
    examples=(
        ("format_time(0, 'YYYY-MM-ddTHH:mm:ss.SSSXXX')", "1970-01-01T00:00:00.000+00:00"),
        ("format_time('2024-01-02 15:04:05', 'E d MMM yyyy, h a')", "Tue 2 Jan 2024, 3 PM"),
    ),
)
def format_time(context: Context, value: Time, pattern: str) -> str:
    """The time written by a pattern of the letters Y G M d E H h a m s S z Z X.

    Other characters stand for themselves; `\\` takes the next as it is, and single quotes all between them.
    """
    return format_moment(moment(value, context.zone), pattern)


@function("convert_tz", category="datetime", returns=Type.STRING, context=True,
          parameters=(TIME, Parameter("zone", Type.STRING, optional=True,
                                      check=lambda name: zone_named(name, UTC))),
          examples=(("convert_tz(0, 'Asia/Tokyo')", "1970-01-01T09:00:00+09:00"),
                    ("convert_tz(120)", "1970-01-01T00:00:00.12Z")))  # fmt: skip
def convert_tz(context: Context, value: Time, zone: str = "UTC") -> str:
    """The time in another zone (an IANA name, `UTC` or `Local`), as RFC 3339 text that carries its offset.

    UTC is `Z`; the fraction of a second is included if there is one.
    """
    return rfc3339(moment(value, context.zone).astimezone(zone_named(zone, context.zone)))
