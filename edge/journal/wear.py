"""The bytes written in a day at the present rate: flash wears out by writing."""

from __future__ import annotations

import logging
from collections import deque

log = logging.getLogger("penstock.journal")

DAY_MS = 86_400_000
SPAN_MS = 3_600_000
"""The rate is that of the last hour,"""
SPAN_MS_MIN = 600_000
"""or of the time since the start, once that is so long."""
STEP_MS = 60_000


class Wear:
    """Bytes written over time. Times are monotonic milliseconds."""

    def __init__(self, bytes_per_day_max: int | None, now_ms: int) -> None:
        self.is_too_much = False
        self._bytes_per_day_max = bytes_per_day_max
        self._seen = deque([(now_ms, 0)])

    def note(self, now_ms: int, written: int) -> None:
        """Note the bytes written since the start."""
        if now_ms - self._seen[-1][0] < STEP_MS:
            return
        self._seen.append((now_ms, written))
        while now_ms - self._seen[1][0] >= SPAN_MS:
            self._seen.popleft()
        limit, per_day = self._bytes_per_day_max, self.bytes_per_day
        is_too_much = limit is not None and per_day is not None and per_day > limit
        if is_too_much and not self.is_too_much:
            log.warning("journal.wear", extra={"bytes_per_day": per_day, "limit": limit})
        self.is_too_much = is_too_much

    @property
    def bytes_per_day(self) -> int | None:
        """The bytes of a day at the present rate; None while too little time has passed."""
        (first_ms, first), (last_ms, last) = self._seen[0], self._seen[-1]
        passed_ms = last_ms - first_ms
        return (last - first) * DAY_MS // passed_ms if passed_ms >= SPAN_MS_MIN else None
