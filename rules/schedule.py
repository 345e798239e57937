"""The schedule of a rule: `cron` with `duration`, and `cronDatetimeRange`.

A crontab has five fields (minute, hour, day of month, month, day of week), or is `@daily`, `@hourly` and the
like. With both day fields set, a day matches if either field matches. The rule runs from each time of the
crontab for `duration`, and only within the ranges if there are any; without a crontab, it runs in the ranges.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from rules.base import Model
from sql.calendar.crontab import Crontab, Days
from sql.calendar.zones import instant
from sql.errors import DataError
from sql.record import Record

_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM = re.compile(r"(?P<first>\*|\?|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\d{1,4}))?")


class DatetimeRange(Model):
    """A span of time in which a scheduled rule may run: from its begin on, and before its end."""

    begin: str | None = Field(None, description="'2026-01-31 08:00:00' in the rule's zone")
    end: str | None = Field(None, description="'2026-01-31 16:00:00' in the rule's zone")
    begin_timestamp: int | None = Field(
        None, ge=0, description="milliseconds since the epoch, instead of begin"
    )
    end_timestamp: int | None = Field(None, ge=0, description="milliseconds since the epoch, instead of end")

    @model_validator(mode="after")
    def _is_a_span(self) -> Self:
        begin_ms, end_ms = self.bounds(ZoneInfo("UTC"))
        if begin_ms >= end_ms:
            raise ValueError("a range ends after it begins")
        return self

    def bounds(self, zone: ZoneInfo) -> tuple[int, int]:
        """Begin and end in ms since the epoch."""
        return _point(self.begin, self.begin_timestamp, zone), _point(self.end, self.end_timestamp, zone)


def _point(text: str | None, at_ms: int | None, zone: ZoneInfo) -> int:
    if at_ms:
        return at_ms
    if not text:
        raise ValueError("a range needs begin and end, or beginTimestamp and endTimestamp")
    try:
        date = datetime.strptime(text, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - the rule's zone is added below
    except ValueError:
        raise ValueError(f"'{text}' is no time; write it like '2026-01-31 08:00:00'") from None
    return instant(date, zone)


def parse_cron(text: str, zone: ZoneInfo) -> Crontab:
    """The crontab of a text. Raises ValueError with the reason."""
    if text.startswith("@") and text not in _SHORT:
        raise ValueError(f"'{text}' is not known; write five fields, or {', '.join(sorted(_SHORT))}")
    fields = _SHORT.get(text, text).split()
    if len(fields) != 5:
        raise ValueError(
            f"a crontab has five fields (minute, hour, day of month, month, day of week), not {len(fields)}"
        )
    minute, hour, day, month, weekday = fields
    found = Crontab(
        months=_numbers(month, "month", 1, 12, _MONTHS),
        days=_days(day, "day of the month", 1, 31),
        weekdays=_days(weekday, "day of the week", 0, 6, _DAYS),
        times=(
            tuple(sorted(_numbers(hour, "hour", 0, 23))),
            tuple(sorted(_numbers(minute, "minute", 0, 59))),
            (0,),
            (0,),
        ),
        zone=zone,
    )
    try:
        found.next_after(0)
    except DataError:
        raise ValueError(f"no day ever matches '{text}'") from None
    return found


def _days(text: str, name: str, least: int, most: int, names: Sequence[str] = ()) -> Days:
    return Days() if text in ("*", "?", "*/1") else Days(_numbers(text, name, least, most, names))


def _numbers(text: str, name: str, least: int, most: int, names: Sequence[str] = ()) -> frozenset[int]:
    """The numbers of a field: items of `*`, `a`, `a-b`, each with `/step`, joined by commas."""
    found: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"'{item}' is no {name}: write *, 5, 1-5, */15, or several joined by commas")
        step = int(match["step"] or 1)
        if match["first"] in "*?":
            first, last = least, most
        else:
            first = _number(match["first"], name, least, most, names)
            last = (
                _number(match["last"], name, least, most, names)
                if match["last"]
                else most
                if match["step"]
                else first
            )
        if step == 0 or first > last or (match["first"] in "*?" and match["last"]):
            raise ValueError(f"'{item}' means no {name}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, name: str, least: int, most: int, names: Sequence[str]) -> int:
    number = (
        names.index(text.lower()) + least if text.lower() in names else int(text) if text.isdecimal() else -1
    )
    if not least <= number <= most:
        raise ValueError(f"{name} '{text}' is not between {least} and {most}")
    return number


class Schedule(Record):
    """The times at which a rule runs. Instants are ms since the epoch."""

    cron: Crontab | None
    duration_ms: int
    ranges: tuple[tuple[int, int], ...]

    def is_on(self, at_ms: int) -> bool:
        """True if the rule runs at an instant."""
        if self.ranges and not any(begin <= at_ms < end for begin, end in self.ranges):
            return False
        if self.cron is None:
            return True
        begin_ms = self._next(at_ms - self.duration_ms)
        return begin_ms is not None and begin_ms <= at_ms

    def next_on(self, at_ms: int) -> int | None:
        """The next instant at which the rule runs, if it does not run now; None: never again."""
        for _ in range(len(self.ranges) * 2 + 2):
            found = self.look_again(at_ms)
            if found is None or self.is_on(found):
                return found
            at_ms = found
        return found

    def look_again(self, at_ms: int) -> int | None:
        """The next instant at which `is_on` may change; None: it never does."""
        instants = [instant_ms for bounds in self.ranges for instant_ms in bounds if instant_ms > at_ms]
        if self.cron is not None:
            begin_ms = self._next(at_ms)
            running_ms = self._next(at_ms - self.duration_ms)
            instants += [begin_ms] if begin_ms is not None else []
            instants += (
                [running_ms + self.duration_ms] if running_ms is not None and running_ms <= at_ms else []
            )
        return min(instants, default=None)

    def _next(self, after_ms: int) -> int | None:
        assert self.cron is not None
        try:
            return self.cron.next_after(after_ms)
        except DataError:
            return None
