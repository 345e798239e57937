"""Fleet windows: the spans of time over which the cloud merges the rows of all gateways.

A window is a duration (`1m`, `1h`, `1d`) or a number of calendar months (`1mo`) in a time zone. Durations lie
on the same grid as the engine's windows (`sql.calendar.grid`): parts of a day count from local midnight,
whole days are local days, other lengths count from the epoch. Several windows from fine to coarse are levels;
each level is made of whole windows of the level before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from rules.durations import format_duration, parse_duration
from sql.calendar.grid import Grid
from sql.calendar.zones import DAY_MS, instant, is_utc, wall_clock

_MONTHS = re.compile(r"([1-9][0-9]{0,2})mo")
QUARTER_HOUR_MS = 900_000
"""Offsets of time zones from UTC are multiples of this."""

PATTERN = r"^([0-9]+mo|([0-9]+(\.[0-9]+)?(ms|d|h|m|s))+)$"
"""The written form, for JSON Schema."""


@dataclass(frozen=True, slots=True)
class FleetWindow:
    """The length of a fleet window: `length_ms` of a duration, or `months` of the
    calendar (the other is 0)."""

    length_ms: int = 0
    months: int = 0

    @property
    def label(self) -> str:
        """The length as people write it; the name of the level in the fleet table.

        >>> FleetWindow(60_000).label, FleetWindow(months=3).label
        ('1m', '3mo')
        """
        return f"{self.months}mo" if self.months else format_duration(self.length_ms)

    def around(self, t_ms: int, zone: tzinfo = UTC) -> tuple[int, int]:
        """The window [start, end) that holds an instant. Raises DataError beyond the calendar."""
        if self.months:
            return _months_around(self.months, t_ms, zone)
        if is_utc(zone):
            start_ms = t_ms - t_ms % self.length_ms
            return start_ms, start_ms + self.length_ms
        grid = _grid(self.length_ms, zone)
        return grid.floor(t_ms), grid.next(t_ms)

    def is_made_of(self, length_ms: int, zone: str, length_zone: str) -> bool:
        """True if no window of `length_ms` on the grid of `length_zone` reaches across a border of this one,
        whose grid is that of `zone`."""
        # Windows that divide a quarter of an hour lie on one grid in all time zones.
        both_from_epoch = is_utc_name(zone) and is_utc_name(length_zone)
        same_grid = zone == length_zone or both_from_epoch or QUARTER_HOUR_MS % length_ms == 0
        if self.months:
            return same_grid and DAY_MS % length_ms == 0
        if self.length_ms % length_ms:
            return False
        return same_grid and (both_from_epoch or _is_local(length_ms) == _is_local(self.length_ms))

    def is_coarser_than(self, finer: FleetWindow, zone: str) -> bool:
        """True if this window consists of whole windows of a finer level."""
        if finer.months:
            return self.months > finer.months and self.months % finer.months == 0
        return self != finer and self.is_made_of(finer.length_ms, zone, zone)


def _is_local(length_ms: int) -> bool:
    """True if a grid of this length is anchored at local midnight, not at the epoch."""
    return length_ms % DAY_MS == 0 or DAY_MS % length_ms == 0


def is_utc_name(zone: str) -> bool:
    """True if a time zone is UTC by name."""
    return is_utc(ZoneInfo(zone))


@lru_cache(maxsize=64)
def _grid(length_ms: int, zone: tzinfo) -> Grid:
    return Grid(length_ms, zone)


def _months_around(months: int, t_ms: int, zone: tzinfo) -> tuple[int, int]:
    """Calendar months begin at local midnight of their first day; every n-th one counts from January 1970."""
    local = wall_clock(t_ms, zone)
    number = (local.year - 1970) * 12 + local.month - 1
    number -= number % months
    return _first_of(number, zone), _first_of(number + months, zone)


def _first_of(number: int, zone: tzinfo) -> int:
    first = datetime(1970 + number // 12, number % 12 + 1, 1)  # noqa: DTZ001  a wall-clock time of `zone`
    return instant(first, zone)


def parse_fleet_window(value: object) -> FleetWindow:
    """A window from its text or its milliseconds. Raises ValueError with the accepted forms.

    >>> parse_fleet_window("1mo"), parse_fleet_window("90s")
    (FleetWindow(length_ms=0, months=1), FleetWindow(length_ms=90000, months=0))
    """
    if isinstance(value, FleetWindow):
        return value
    if isinstance(value, str) and (found := _MONTHS.fullmatch(value.strip())):
        return FleetWindow(months=int(found[1]))
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(
            "must be the length of a window, such as '1m', '1h', '1d' or '1mo', or a list of them"
        )
    length_ms = parse_duration(value)
    if length_ms < 1:
        raise ValueError("must be at least 1 ms")
    return FleetWindow(length_ms)
