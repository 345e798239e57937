"""Schedules in ISO 8601, of `timer:schedule`: a date, a period, both, and a number of repetitions.

| text | instants |
|---|---|
| `2026-01-01T00:00:00Z` | the date |
| `PT10S` | the start plus the period |
| `2026-01-01T00:00:00Z/PT10S` | the date plus the period |
| `R3/PT10S` | three times, counted from the start; `R/` for ever |
| `R3/2026-01-01T00:00:00Z/PT10S` | three times, the first of which is the date |

Every instant of a series is counted from its beginning, so months keep their day: 31
January, 28 February, 31 March.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from decimal import Decimal

from sql.calendar.period import Period
from sql.calendar.zones import instant
from sql.record import Record

FOR_EVER = -1

_DURATION = re.compile(
    r"P(?=.)(?:(?P<year>\d+)Y)?(?:(?P<month>\d+)M)?(?:(?P<week>\d+)W)?(?:(?P<day>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hour>\d+)H)?(?:(?P<minute>\d+)M)?(?:(?P<second>\d+(?:\.\d+)?)S)?)?"
)


class Schedule(Record):
    """A schedule; `repetitions` None: one instant; -1: for ever."""

    repetitions: int | None = None
    date: datetime | int | None = None
    """A point of time: with or without zone, or in milliseconds since the epoch."""
    period: Period | None = None

    def next_after(self, t_ms: int, start_ms: int, zone: tzinfo) -> int | None:
        """The first of its instants strictly after `t_ms`, for a schedule begun at
        `start_ms`; None: there is none."""
        date_ms = None if self.date is None else at_ms(self.date, zone)
        if self.repetitions is None or self.period is None:
            base_ms = start_ms if date_ms is None else date_ms
            once_ms = base_ms if self.period is None else self.period.add(base_ms, zone)
            return once_ms if once_ms > t_ms else None
        origin_ms, first = (start_ms, 1) if date_ms is None else (date_ms, 0)
        number = max(first, self._number_after(t_ms, origin_ms, zone))
        if self.repetitions != FOR_EVER and number >= first + self.repetitions:
            return None
        return self.period.times(number).add(origin_ms, zone)

    def _number_after(self, t_ms: int, origin_ms: int, zone: tzinfo) -> int:
        """The number of periods from the origin to the first instant after `t_ms`; 0 if that is the origin
        itself."""
        assert self.period is not None
        if t_ms < origin_ms:
            return 0
        if not self.period.is_calendar:
            return (t_ms - origin_ms) // self.period.millis + 1
        number = max(1, (t_ms - origin_ms) // (self.period.months * 31 * 86_400_000 + self.period.millis))
        while self.period.times(number).add(origin_ms, zone) <= t_ms:
            number += 1
        return number


def parse_schedule(text: str) -> Schedule:
    """The schedule of a text. Raises ValueError if the text is none."""
    repetitions: int | None = None
    parts = text.strip().split("/")
    if re.fullmatch(r"R\d*", parts[0]):
        repetitions = int(parts[0][1:]) if len(parts[0]) > 1 else FOR_EVER
        parts = parts[1:]
    date = None if not parts or parts[0].startswith("P") else _date(parts.pop(0), text)
    period = _period(parts.pop(0)) if parts else None
    if parts or (date is None and period is None):
        raise ValueError(f"'{text}' is no schedule: write a date, a period, date/period, or R3/ before them")
    if repetitions is not None and period is None:
        raise ValueError(f"'{text}' repeats nothing: add a period, for example /PT10S")
    return Schedule(repetitions, date, period)


def at_ms(date: datetime | int, zone: tzinfo) -> int:
    """A point of time in ms; one without a zone is in `zone`."""
    if isinstance(date, int):
        return date
    return instant(date.replace(tzinfo=None), date.tzinfo or zone)


def _date(text: str, whole: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{whole}' holds no date: write 2026-01-01T00:00:00Z") from None


def _period(text: str) -> Period:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is no period: write P1D, PT10S, P1Y2M")
    return Period.of(
        {unit: Decimal(amount) for unit, amount in found.groupdict().items() if amount is not None}
    )
