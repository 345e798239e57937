"""Time periods: a calendar part in months and a fixed part in milliseconds."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from datetime import timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from sql.calendar.zones import instant, wall_clock
from sql.errors import DataError
from sql.record import Record

_MONTHS = {"year": 12, "month": 1}
MILLIS = {
    "week": Fraction(604_800_000),
    "day": Fraction(86_400_000),
    "hour": Fraction(3_600_000),
    "minute": Fraction(60_000),
    "second": Fraction(1000),
    "millisecond": Fraction(1),
    "microsecond": Fraction(1, 1000),
}
"""The units of a fixed length, in milliseconds."""

UNITS = (*_MONTHS, *MILLIS)
"""The units a period may be written in, longest first."""


LENGTH_MS_MAX = 1_200 * 31 * 86_400_000
"""A hundred years, counted by the longest months; a longer time is taken for a typing error, and is soon
outside the calendar."""


class Period(Record):
    """A length of time. Years and months are calendar arithmetic in a zone, everything else
    is fixed (a day is 24 h).

    Adding and subtracting are two different functions, since both clip to the month's end: 31 March - 1 month
    is 28 February, 28 February + 1 month is 28 March.
    """

    months: int = 0
    millis: int = 0

    @classmethod
    def of(cls, amounts: Mapping[str, float | Decimal], *, zero_allowed: bool = False) -> Period:
        """The period of an amount of each unit (a name in `UNITS`), rounded to whole milliseconds.

        Raises ValueError for an unknown unit, a negative or infinite amount, a fraction of a month or a year,
        and for less than 1 ms (0 passes where `zero_allowed`) or more than a hundred years in all.

        >>> Period.of({"minute": 2, "second": 5.5})
        Period(months=0, millis=125500)
        """
        months, millis = 0, Fraction(0)
        for unit, amount in amounts.items():
            exact = _exact(unit, amount)
            if unit in _MONTHS:
                if exact.denominator != 1:
                    raise ValueError(
                        f"{amount} {unit}s: months and years are whole numbers; write the rest in days"
                    )
                months += int(exact) * _MONTHS[unit]
            else:
                millis += exact * MILLIS[unit]
        if months == 0 and millis < 1 and not (zero_allowed and millis == 0):
            raise ValueError("a time period is at least 1 millisecond long")
        if months * _LONGEST_MONTH_MS + millis > LENGTH_MS_MAX:
            raise ValueError("a time period is at most a hundred years long")
        return cls(months, int(millis + Fraction(1, 2)))

    @property
    def is_calendar(self) -> bool:
        """True if the length depends on its start in the calendar."""
        return self.months != 0

    def add(self, t_ms: int, zone: tzinfo) -> int:
        """The instant one period after `t_ms`: first the months, clipped to the month's
        end, then the fixed part."""
        return (_shift_months(t_ms, self.months, zone) if self.months else t_ms) + self.millis

    def subtract(self, t_ms: int, zone: tzinfo) -> int:
        """The instant one period before `t_ms`: first the months, clipped to the month's
        end, then the fixed part."""
        return (_shift_months(t_ms, -self.months, zone) if self.months else t_ms) - self.millis

    def reaches(self, t_ms: int, zone: tzinfo) -> int:
        """The first instant for which `subtract` is `t_ms` or later: an event of 31 January is a month old on
        1 March, for no day of February is a month after it."""
        return _reaches(self, t_ms, zone) if self.is_calendar else t_ms + self.millis

    def times(self, k: int) -> Period:
        """k periods as one, so that the k-th is counted from the reference: 31 Jan + 2 months is 31 Mar."""
        return Period(self.months * k, self.millis * k)

    def next_after(self, t_ms: int, reference_ms: int, zone: tzinfo) -> int:
        """The first instant after `t_ms` on the grid reference + k periods (k any whole number)."""
        if not self.is_calendar:
            return reference_ms + ((t_ms - reference_ms) // self.millis + 1) * self.millis
        # A period is at least its shortest months long, so this k is never too large; a few
        # steps make up the rest.
        k = int((t_ms - reference_ms) // (self.months * _LONGEST_MONTH_MS + self.millis)) - 1
        while (boundary := self.times(k).add(reference_ms, zone)) <= t_ms:
            k += 1
        return boundary


_LONGEST_MONTH_MS = 31 * 86_400_000


def _exact(unit: str, amount: float | Decimal) -> Fraction:
    if unit not in _MONTHS and unit not in MILLIS:
        raise ValueError(f"unknown time unit {unit!r}; the units are {', '.join(UNITS)}")
    try:
        # From the number's text: 0.1 seconds are exactly 100 ms, whatever the binary fraction says.
        exact = Fraction(str(amount))
    except ValueError:
        raise ValueError(f"{amount!r} {unit}s is no length of time") from None
    if exact < 0:
        raise ValueError(f"{amount} {unit}s: a time period cannot be negative")
    return exact


@lru_cache(maxsize=1_000)
def _reaches(period: Period, t_ms: int, zone: tzinfo) -> int:
    """`Period.reaches` of months, cached: it takes 25 µs, and a window computes that of its oldest event at
    every step."""
    wanted = t_ms + period.millis
    found = _shift_months(wanted, period.months, zone)
    hour = wall_clock(found, zone).replace(minute=0, second=0, microsecond=0, fold=0)
    # After a repeated hour the next one counts, after a month's end the next day.
    later = (hour + timedelta(hours=1), hour.replace(hour=0) + timedelta(days=1))
    candidates = (found, *(instant(wall, zone) for wall in later))
    return next(at for at in candidates if period.subtract(at, zone) >= t_ms or at == candidates[-1])


def _shift_months(t_ms: int, months: int, zone: tzinfo) -> int:
    wall = wall_clock(t_ms, zone)
    year, month0 = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise DataError(
            f"{months} months from {wall} lies outside the years 1 to 9999, where no calendar is known"
        )
    day = min(wall.day, monthrange(year, month0 + 1)[1])
    # `fold=0`: the first of a time that occurs twice. The sub-millisecond part of a
    # wall time is always 0.
    return instant(wall.replace(year=year, month=month0 + 1, day=day, fold=0), zone)
