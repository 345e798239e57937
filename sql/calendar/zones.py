"""Conversion between instants (ms since the epoch, UTC) and the wall clock of a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from sql.errors import DataError, did_you_mean
from sql.record import Record

DAY_MS = 86_400_000
# Wall-clock times are naive here: their zone is an argument beside them.
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_UTC_KEYS = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"})


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name. Raises ValueError with the nearest name for an unknown one."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        near = did_you_mean(name, available_timezones()) or "write a name such as Europe/Berlin"
        raise ValueError(f"'{name}' is not a time zone; {near}") from None


def is_utc(zone: tzinfo) -> bool:
    """True if the zone is UTC by name, so that calendar calculations are plain arithmetic."""
    return zone is UTC or getattr(zone, "key", None) in _UTC_KEYS


def wall_clock(t_ms: int, zone: tzinfo) -> datetime:
    """The naive wall-clock time at an instant; `fold` is 1 in the second pass of a repeated hour."""
    try:
        return (_EPOCH_UTC + timedelta(milliseconds=t_ms)).astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        raise _outside(t_ms) from None


def instant(wall: datetime, zone: tzinfo) -> int:
    """The instant (ms) of a naive wall-clock time.

    `fold` selects the pass of a time that occurs twice. A skipped time lies as long after the jump as after
    the beginning of the skipped span, so the first skipped moment is the jump itself.
    """
    try:
        return (wall.replace(tzinfo=zone) - _EPOCH_UTC) // _MS
    except OverflowError:
        raise _outside(wall) from None


def offset_ms(t_ms: int, zone: tzinfo) -> int:
    """The time by which the wall clock is ahead of UTC at an instant, in ms."""
    try:
        offset = (_EPOCH_UTC + timedelta(milliseconds=t_ms)).astimezone(zone).utcoffset()
    except OverflowError:
        raise _outside(t_ms) from None
    assert offset is not None, "an aware time has an offset"
    return offset // _MS


class Stretch(Record):
    """A stretch of time [start, end) in which the wall clock is `offset` ahead of UTC (all ms).

    `jump` is the change of the clock at `start`, 0 if there is none. The stretch reaches at least a day back
    from the instants it was made for, [from, end), or to the last change.
    """

    from_ms: int
    start_ms: int
    end_ms: int
    offset_ms: int
    jump_ms: int


def stretch_around(t_ms: int, zone: tzinfo) -> Stretch:
    """The stretch that holds an instant; it ends with the UTC day at the latest."""
    day = t_ms - t_ms % DAY_MS
    start, end = day - DAY_MS, day + DAY_MS
    first, offset, last = (offset_ms(at, zone) for at in (start, t_ms, end - 1))
    if first != offset:
        start = _change(start, t_ms, zone)
    if last != offset:
        end = _change(t_ms, end - 1, zone)
    return Stretch(max(day, start), start, end, offset, offset - offset_ms(start - 1, zone))


def _change(low: int, high: int, zone: tzinfo) -> int:
    """The instant in (low, high] at which the offset changes; changes lie two days apart at least."""
    offset = offset_ms(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if offset_ms(middle, zone) == offset:
            low = middle
        else:
            high = middle
    return high


def _outside(moment: object) -> DataError:
    return DataError(f"time {moment} lies outside the years 1 to 9999, where no calendar is known")
