"""Crontabs in EPL's form: (minute, hour, day of month, month, day of week[, second[, zone[, msec[, usec]]]]).

A field is `*`, a number, a range `a:b`, a step `*/n` (the multiples of n), or a list `[1,15,20:25]`. Further
in days of the month `last`, `lastweekday` and `15 weekday` (the weekday nearest to the 15th), in days of the
week `last` (Saturday) and `5 last` (the month's last Friday). Days of the week count from Sunday, 0. A day
matches if both day fields are `*`, if the one that is set matches, or, with both set, if *either* does.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import date, timedelta, timezone, tzinfo
from typing import Final

from sql.calendar.zones import DAY_MS, EPOCH, stretch_around, zone_of
from sql.errors import DataError
from sql.record import Record

YEARS_MAX: Final = 30
"""The horizon of the search for a next time: a crontab without one by then (30 February) never has any."""

_EPOCH_DAY = EPOCH.toordinal()
_UNITS_MS = (3_600_000, 60_000, 1000, 1)
_SATURDAY = 6


class Days(Record):
    """A day field: the numbers it lists, or a rule that selects one day of a month; neither for `*`."""

    numbers: frozenset[int] | None = None
    rule: Callable[[int, int], int | None] | None = None

    @property
    def any(self) -> bool:
        """True if the field is `*`."""
        return self.numbers is None and self.rule is None

    def match(self, number: int, day: date) -> bool:
        """True if a date matches; `number` is its number in this field's counting."""
        if self.rule is not None:
            return self.rule(day.year, day.month) == day.day
        return self.numbers is not None and number in self.numbers


class Crontab(Record):
    """A set of wall-clock times in a zone.

    If the clock jumps forward over such times, the jump counts as one of them. If it is set back, times of a
    crontab for every hour come in both passes, others only in the first.
    """

    months: frozenset[int]
    days: Days
    weekdays: Days
    times: tuple[tuple[int, ...], ...]
    """Hours, minutes, seconds, milliseconds, each ascending."""
    zone: tzinfo

    @classmethod
    def parse(cls, fields: Sequence[str], zone: tzinfo) -> Crontab:
        """The crontab of five to nine fields; `zone` applies unless the seventh field names another.

        Raises ValueError for a field that is invalid or out of range, and for a crontab without any time.
        """
        if not 5 <= len(fields) <= 9:
            raise ValueError(f"it has 5 to 9 fields, not {len(fields)}")
        minute, hour, day, month, weekday, second, where, msec, usec = (
            " ".join(text.split()).lower() if place != 6 else text.strip()
            for place, text in enumerate([*fields, *("0", "*", "0", "0")[len(fields) - 5 :]])
        )
        days, weekdays = _days(day), _weekdays(weekday)
        if days.rule and weekdays.rule:
            raise ValueError(
                f"'{day}' and '{weekday}' cannot stand together: only one day field may have such a rule"
            )
        if usec not in ("0", "*"):
            raise ValueError(f"microseconds can only be 0, not '{usec}': the clock counts milliseconds")
        ranges = (
            (hour, "hour", 23),
            (minute, "minute", 59),
            (second, "second", 59),
            (msec, "millisecond", 999),
        )
        times = tuple(tuple(sorted(_numbers(text, name, 0, most))) for text, name, most in ranges)
        found = cls(_numbers(month, "month", 1, 12), days, weekdays, times, _zone(where, zone))
        if found._first_from(0) is None:
            raise ValueError(f"no day ever matches day '{day}' of month '{month}'")
        return found

    def next_after(self, t_ms: int) -> int:
        """The first of its times strictly after an instant; DataError if there is none within 30 years."""
        horizon_ms = t_ms + YEARS_MAX * 366 * DAY_MS
        t_ms += 1
        while t_ms < horizon_ms:
            here = stretch_around(t_ms, self.zone)
            offset, jump = here.offset_ms, here.jump_ms
            if t_ms == here.start_ms and jump > 0 and self._between(t_ms + offset - jump, t_ms + offset):
                return t_ms
            wall_ms = t_ms + offset
            if jump < 0 and len(self.times[0]) < 24:
                wall_ms = max(wall_ms, here.start_ms + offset - jump)
            found_ms = self._first_from(wall_ms)
            if found_ms is None:
                break
            if found_ms < here.end_ms + offset:
                return found_ms - offset
            # Go on near the time found: no zone's clock is ever moved by as much as two days.
            t_ms = max(here.end_ms, found_ms - offset - 2 * DAY_MS)
        raise DataError(f"the crontab has no time within {YEARS_MAX} years")

    # --- on the wall clock, in ms since its own epoch ---

    def _between(self, low: int, high: int) -> bool:
        found = self._first_from(low)
        return found is not None and found < high

    def _first_from(self, wall_ms: int) -> int | None:
        """The first time on the wall clock that is not before `wall_ms`."""
        days, rest_ms = divmod(wall_ms, DAY_MS)
        try:
            day = date.fromordinal(_EPOCH_DAY + days)
            if self._day_matches(day):
                time_ms = self._time_from(rest_ms)
                if time_ms is not None:
                    return wall_ms - rest_ms + time_ms
            day = self._next_day(day)
        except (OverflowError, ValueError):  # the calendar ends with the year 9999
            return None
        if not self._day_matches(day):
            return None
        midnight_ms = (day.toordinal() - _EPOCH_DAY) * DAY_MS
        return midnight_ms + sum(unit * values[0] for unit, values in zip(_UNITS_MS, self.times, strict=True))

    def _next_day(self, day: date) -> date:
        """The next day that matches, or some day past the horizon."""
        horizon = day.year + YEARS_MAX
        day += timedelta(days=1)
        while not self._day_matches(day) and day.year <= horizon:
            if day.month in self.months:
                day += timedelta(days=1)
            else:
                day = day.replace(day=1) + timedelta(days=monthrange(day.year, day.month)[1])
        return day

    def _day_matches(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        if self.days.any and self.weekdays.any:
            return True
        return self.days.match(day.day, day) or self.weekdays.match(day.isoweekday() % 7, day)

    def _time_from(self, rest_ms: int) -> int | None:
        """The first time of day that is not before `rest_ms`."""
        wanted: list[int] = []
        for unit in _UNITS_MS:
            value, rest_ms = divmod(rest_ms, unit)
            wanted.append(value)
        for place, values in enumerate(self.times):
            if values[min(bisect_left(values, wanted[place]), len(values) - 1)] != wanted[place]:
                break
        else:
            return _time(wanted)
        # The exact time is not listed: raise the last part that can be raised; those after it
        # start at their lowest.
        for raised in range(place, -1, -1):
            index = bisect_right(self.times[raised], wanted[raised])
            if index < len(self.times[raised]):
                lowest = [values[0] for values in self.times[raised + 1 :]]
                return _time([*wanted[:raised], self.times[raised][index], *lowest])
        return None


def _time(parts: Sequence[int]) -> int:
    return sum(unit * part for unit, part in zip(_UNITS_MS, parts, strict=True))


# --- fields -------------------------------------------------------------------------------------------------


def _numbers(text: str, name: str, least: int, most: int) -> frozenset[int]:
    """The numbers of a field."""
    items = text[1:-1].split(",") if text.startswith("[") and text.endswith("]") else [text]
    return frozenset(number for item in items for number in _item(item.strip(), name, least, most))


def _item(text: str, name: str, least: int, most: int) -> range:
    if text == "*":
        return range(least, most + 1)
    if match := re.fullmatch(r"\* ?/ ?(\d+)", text):
        step = _number(match[1], name, 1, most)
        return range(-(-least // step) * step, most + 1, step)
    if match := re.fullmatch(r"(\d+) ?: ?(\d+)", text):
        first, last = _number(match[1], name, least, most), _number(match[2], name, least, most)
        if first > last:
            raise ValueError(f"the {name}s {text} end before they begin")
        return range(first, last + 1)
    if re.fullmatch(r"\d+", text):
        number = _number(text, name, least, most)
        return range(number, number + 1)
    raise ValueError(f"'{text}' is no {name}: write *, a number, a:b, */n or a list [..]")


def _number(text: str, name: str, least: int, most: int) -> int:
    number = int(text) if len(text) < 9 else most + 1
    if not least <= number <= most:
        raise ValueError(f"{name} {text} is not between {least} and {most}")
    return number


def _days(text: str) -> Days:
    """The field for days of the month."""
    if text == "*":
        return Days()
    if text == "last":
        return Days(rule=_last_day)
    if text in ("lastweekday", "last weekday"):
        return Days(rule=lambda year, month: _nearest_weekday(year, month, _last_day(year, month)))
    if match := re.fullmatch(r"(\d+) weekday", text):
        wanted = _number(match[1], "day of the month", 1, 31)
        return Days(rule=lambda year, month: _nearest_weekday(year, month, wanted))
    return Days(_numbers(text, "day of the month", 1, 31))


def _weekdays(text: str) -> Days:
    """The field for days of the week."""
    if text == "*":
        return Days()
    if text == "last":
        return Days(frozenset({_SATURDAY}))
    if match := re.fullmatch(r"(\d+) last", text):
        wanted = _number(match[1], "day of the week", 0, 6)
        return Days(rule=lambda year, month: _last_of(year, month, wanted))
    return Days(_numbers(text, "day of the week", 0, 6))


def _last_day(year: int, month: int) -> int:
    return monthrange(year, month)[1]


def _last_of(year: int, month: int, weekday: int) -> int:
    """The last Sunday, Monday … of a month."""
    last = _last_day(year, month)
    return last - (date(year, month, last).isoweekday() - weekday) % 7


def _nearest_weekday(year: int, month: int, day: int) -> int | None:
    """The day from Monday to Friday nearest to a day, in the same month; None if the
    month has no such day."""
    last = _last_day(year, month)
    if day > last:
        return None
    weekday = date(year, month, day).isoweekday()
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 7:
        return day + 1 if day < last else day - 2
    return day


def _zone(text: str, default: tzinfo) -> tzinfo:
    """The zone of a name: `*` the default, `GMT+5:30` an offset, else a name of the time zone database."""
    if text == "*":
        return default
    if match := re.fullmatch(r"(?:GMT|UTC)([+-])(\d{1,2})(?::?([0-5]\d))?", text):
        hours, minutes = int(match[2]), int(match[3] or 0)
        if hours < 24:
            return timezone(timedelta(hours=hours, minutes=minutes) * (-1 if match[1] == "-" else 1))
    return zone_of(text)
