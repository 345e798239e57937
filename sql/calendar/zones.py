"""Between instants (ms since the epoch, UTC) and the wall clock of a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from sql.errors import DataError

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  wall-clock times are naive here: their zone is an argument beside them
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_UTC_KEYS = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"})


def is_utc(zone: tzinfo) -> bool:
    """Whether the zone is UTC by name, so that calendar questions are plain arithmetic."""
    return zone is UTC or getattr(zone, "key", None) in _UTC_KEYS


def wall_clock(t_ms: int, zone: tzinfo) -> datetime:
    """The naive wall-clock time at an instant; `fold` tells the second pass of a repeated hour."""
    try:
        return (_EPOCH_UTC + timedelta(milliseconds=t_ms)).astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        raise _outside(t_ms) from None


def instant(wall: datetime, zone: tzinfo) -> int:
    """The instant (ms) of a naive wall-clock time.

    A time that occurs twice means the pass its `fold` names. One that is skipped means as long after the jump as it
    lies after the jump's beginning, which for the first skipped moment is the jump itself.
    """
    try:
        return (wall.replace(tzinfo=zone) - _EPOCH_UTC) // _MS
    except OverflowError:
        raise _outside(wall) from None


def offset_ms(t_ms: int, zone: tzinfo) -> int:
    """How far the wall clock is ahead of UTC at an instant, in ms."""
    try:
        offset = (_EPOCH_UTC + timedelta(milliseconds=t_ms)).astimezone(zone).utcoffset()
    except OverflowError:
        raise _outside(t_ms) from None
    assert offset is not None, "an aware time has an offset"
    return offset // _MS


def _outside(moment: object) -> DataError:
    return DataError(f"time {moment} lies outside the years 1 to 9999, where no calendar is known")
