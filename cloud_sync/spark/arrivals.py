"""Which folders of manifests a run lists: those of hours near the present, and a few of the others in turn.

Manifests lie by the hour of their upload (`names.arrival_name`), so new ones are in the hours since the last
listing. One that comes into another hour (a clock that is far off, a bucket copied days later) counts when
that hour's turn comes. So a run lists about as many names after years as after a day, and misses none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from cloud_sync.names import ARRIVALS_FOLDER, arrival_hour
from cloud_sync.spark.contract.fields import LAST_MS
from cloud_sync.spark.storage import Storage

LOOKBACK_MS = 3_600_000
"""An hour is near up to this time before the last listing, and up to this time after the present."""
IN_TURN = 4
"""The number of other hours that each run lists."""
FOLDERS_MAX = 100
"""The most near folders that a run lists. With more, months after the last run, it lists the whole bucket."""
_DAY, _HOUR = re.compile(r"day=\d{4}-\d\d-\d\d"), re.compile(r"hour=\d\d")


@dataclass(frozen=True, slots=True)
class Listing:
    """The listing of a run. `folders` are hours and whole days below the arrivals; None stands for the whole
    bucket, with data files that no manifest announces. `at_ms` is when it begins, `turn` the last hour
    whose turn has come."""

    folders: list[str] | None
    at_ms: int
    turn: str


def recent(bucket: Storage, last: Listing, at_ms: int, lookback_ms: int) -> Listing:
    """The hours that may have something new since the last listing, and those whose turn it is."""
    bounds = max(0, last.at_ms - lookback_ms), min(at_ms + lookback_ms, LAST_MS)
    low, high = map(arrival_hour, bounds)
    days = _folders(bucket, ARRIVALS_FOLDER, _DAY)
    near = [folder for day in days for folder in _near(bucket, day, low, high)]
    if len(near) > FOLDERS_MAX:
        return Listing(None, at_ms, last.turn)
    others = (hour for hour in _in_turn(bucket, days, last.turn) if not low <= hour <= high)
    turn = list(islice(others, IN_TURN))
    return Listing(near + turn, at_ms, turn[-1] if turn else last.turn)


def _near(bucket: Storage, day: str, low: str, high: str) -> list[str]:
    """The folders of a day that lie from hour to hour: of a day between them, the day itself."""
    first, last = low.partition("/")[0], high.partition("/")[0]
    if first < day < last:
        return [day]
    return [hour for hour in _hours(bucket, day) if low <= hour <= high] if first <= day <= last else []


def _in_turn(bucket: Storage, days: list[str], after: str) -> Iterator[str]:
    """Every hour once: those after `after`, then those from the beginning."""
    for is_behind in (True, False):
        for day in days:
            if day >= after.partition("/")[0] if is_behind else day <= after:
                yield from (hour for hour in _hours(bucket, day) if (hour > after) is is_behind)


def _hours(bucket: Storage, day: str) -> list[str]:
    return [f"{day}/{hour}" for hour in _folders(bucket, f"{ARRIVALS_FOLDER}/{day}", _HOUR)]


def _folders(bucket: Storage, folder: str, form: re.Pattern[str]) -> list[str]:
    return sorted(name for name in bucket.names(folder) if form.fullmatch(name))
