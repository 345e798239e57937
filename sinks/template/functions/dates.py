"""Dates: `now` is the instant of the result, so that a replay gives the same text.

Layouts are Go's: the reference time Mon Jan 2 15:04:05 MST 2006 written in the form of the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from sinks.template.functions.registry import Function
from sinks.template.values import kind_of
from sql.errors import DataError
from sql.functions.instants import zone_named

_PARTS: dict[str, Callable[[datetime], str]] = {
    "2006": lambda at: f"{at:%Y}", "06": lambda at: f"{at:%y}",
    "January": lambda at: f"{at:%B}", "Jan": lambda at: f"{at:%b}", "01": lambda at: f"{at:%m}",
    "Monday": lambda at: f"{at:%A}", "Mon": lambda at: f"{at:%a}",
    "02": lambda at: f"{at:%d}", "_2": lambda at: f"{at.day:2d}", "002": lambda at: f"{at:%j}",
    "15": lambda at: f"{at:%H}", "03": lambda at: f"{at:%I}", "3": lambda at: str(at.hour % 12 or 12),
    "04": lambda at: f"{at:%M}", "4": lambda at: str(at.minute), "05": lambda at: f"{at:%S}",
    "5": lambda at: str(at.second), "PM": lambda at: f"{at:%p}", "pm": lambda at: f"{at:%p}".lower(),
    "MST": lambda at: at.tzname() or "", "Z07:00": lambda at: _offset(at, ":", zulu=True),
    "Z0700": lambda at: _offset(at, "", zulu=True), "-07:00": lambda at: _offset(at, ":"),
    "-0700": lambda at: _offset(at, ""), "-07": lambda at: _offset(at, "")[:3],
    "1": lambda at: str(at.month), "2": lambda at: str(at.day),
}  # fmt: skip
_LAYOUT = re.compile(
    r"[.,](?:0+|9+)(?!\d)|" + "|".join(map(re.escape, sorted(_PARTS, key=len, reverse=True)))
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _offset(at: datetime, separator: str, *, zulu: bool = False) -> str:
    minutes = int((at.utcoffset() or timedelta()).total_seconds()) // 60
    if zulu and not minutes:
        return "Z"
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}{separator}{rest:02d}"


def _written(at: datetime, layout: str) -> str:
    def part(match: re.Match[str]) -> str:
        if match[0][0] not in ".,":
            return _PARTS[match[0]](at)
        digits = f"{at.microsecond:06d}000"[: len(match[0]) - 1]
        digits = digits.rstrip("0") if match[0][1] == "9" else digits
        return match[0][0] + digits if digits else ""

    return _LAYOUT.sub(part, layout)


def _moment(value: object, zone: tzinfo = UTC) -> datetime:
    """A moment, or a number of seconds since 1970."""
    if isinstance(value, datetime):
        return value.astimezone(zone)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"template: a time is a moment or seconds since 1970, not a {kind_of(value)}")
    try:
        return datetime.fromtimestamp(value, zone)
    except (OverflowError, ValueError, OSError):
        raise DataError(
            f"template: {value!r} seconds since 1970 is no date; divide milliseconds by 1000"
        ) from None


def _date_in_zone(layout: object, value: object, zone: object) -> str:
    return _written(_moment(value, zone_named(str(zone), UTC)), str(layout))


def _duration(text: object) -> timedelta:
    sign, rest = (-1, str(text)[1:]) if str(text).startswith("-") else (1, str(text).removeprefix("+"))
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", rest):
        raise DataError(f"template: {str(text)[:40]!r} is no duration such as -1h30m")
    return sign * timedelta(
        seconds=sum(float(count) * _SECONDS[unit] for count, unit in _DURATION.findall(rest))
    )


def _modified(duration: object, value: object) -> datetime:
    return _moment(value) + _duration(duration)


def _html_date_in_zone(value: object, zone: object) -> str:
    return _date_in_zone("2006-01-02", value, zone)


FUNCTIONS: dict[str, Function] = {
    "date": Function(lambda layout, value: _written(_moment(value), str(layout)), 2, 2),
    "dateInZone": Function(_date_in_zone, 3, 3),
    "date_in_zone": Function(_date_in_zone, 3, 3),
    "htmlDate": Function(lambda value: f"{_moment(value):%Y-%m-%d}", 1, 1),
    "unixEpoch": Function(lambda value: int(_moment(value).timestamp()), 1, 1),
    "htmlDateInZone": Function(_html_date_in_zone, 2, 2),
    **dict.fromkeys(
        ("dateModify", "date_modify", "mustDateModify", "must_date_modify"), Function(_modified, 2, 2)
    ),
}
