"""The grid that windows are aligned to: it depends on length and zone alone, never on the start of a rule."""

from __future__ import annotations

from datetime import UTC, timedelta, tzinfo

from sql.calendar.zones import DAY_MS, EPOCH, instant, is_utc, stretch_around, wall_clock

_EPOCH_DAY = EPOCH.date().toordinal()


class Grid:
    """Window boundaries of one length.

    * Whole days (24 hours are one): local midnights, every n-th counted from the epoch's.
      A midnight that is skipped counts as the day's first real instant, one that occurs twice as the earlier.
    * A length that divides a day: the local wall-clock times that are multiples of it from local midnight.
    * Any other length: its multiples since the epoch, UTC.

    If the clock jumps forward over boundaries, the jump itself is the boundary for all of them. If it is set
    back, times are passed twice: lengths up to the repeated span (5 minutes, an hour) have their boundaries
    in both passes, so that no window grows; longer ones only in the first, so that none is cut off.
    Boundaries strictly increase in any case.
    """

    __slots__ = ("_days", "_divides_day", "_end", "_from", "_jump", "_offset", "_start", "length_ms", "zone")

    def __init__(self, length_ms: int, zone: tzinfo = UTC) -> None:
        if length_ms <= 0:
            raise ValueError(f"a window's length is at least 1 ms, not {length_ms}")
        self.length_ms = length_ms
        self.zone = zone
        plain = is_utc(zone)
        self._days = 0 if plain or length_ms % DAY_MS else length_ms // DAY_MS
        self._divides_day = not plain and not self._days and DAY_MS % length_ms == 0
        # The stretch [start, end) around the last instant: whole days between two boundaries; for parts of a
        # day, one offset from UTC. `jump` is the change of the clock at its start; it is valid
        # for instants >= `from`.
        self._from = self._start = self._end = self._offset = self._jump = 0

    def floor(self, t_ms: int) -> int:
        """The largest boundary <= `t_ms`."""
        if self._days:
            return self._days_around(t_ms)[0]
        if not self._divides_day:
            return t_ms - t_ms % self.length_ms
        while True:
            self._stretch_around(t_ms)
            boundary = t_ms - (t_ms + self._offset) % self.length_ms
            if boundary >= self._first_boundary():
                return boundary
            if self._starts_with_boundary():
                return self._start
            t_ms = self._start - 1

    def next(self, t_ms: int) -> int:
        """The smallest boundary > `t_ms`."""
        if self._days:
            return self._days_around(t_ms)[1]
        length_ms = self.length_ms
        if not self._divides_day:
            return t_ms - t_ms % length_ms + length_ms
        t_ms += 1
        while True:
            self._stretch_around(t_ms)
            if t_ms == self._start and self._starts_with_boundary():
                return t_ms
            boundary = max(t_ms, self._first_boundary())
            boundary += -(boundary + self._offset) % length_ms
            if boundary < self._end:
                return boundary
            t_ms = self._end

    def back(self, boundary_ms: int, length_ms: int) -> int:
        """The start of what ends at a boundary and has this length: so many cells, or local days, before it
        where the length is a multiple of them."""
        if self._days and length_ms % DAY_MS == 0:
            # The cell before it is part of it even if its date is one that the zone has left out.
            start_ms = self._midnight(self._day(boundary_ms) - length_ms // DAY_MS)
            return min(start_ms, self.floor(boundary_ms - 1)) if length_ms >= self.length_ms else start_ms
        if not self._divides_day or length_ms % self.length_ms:
            return boundary_ms - length_ms
        cells = length_ms // self.length_ms
        while cells:
            boundary_ms = self.floor(boundary_ms - 1)
            self._stretch_around(boundary_ms)
            even = min(cells - 1, max(0, boundary_ms - self._first_boundary()) // self.length_ms)
            boundary_ms -= even * self.length_ms
            cells -= 1 + even
        return boundary_ms

    # --- parts of a day ---

    def _first_boundary(self) -> int:
        """The start of wall-clock multiples in the stretch: not in the second pass of a span shorter than
        them."""
        return self._start - self._jump if -self.length_ms < self._jump < 0 else self._start

    def _starts_with_boundary(self) -> bool:
        """True if the stretch begins with a jump forward over a multiple of the length."""
        return self._jump > 0 and (self._start + self._offset) % self.length_ms <= self._jump

    def _stretch_around(self, t_ms: int) -> None:
        if not self._from <= t_ms < self._end:
            found = stretch_around(t_ms, self.zone)
            self._from, self._start, self._end = found.from_ms, found.start_ms, found.end_ms
            self._offset, self._jump = found.offset_ms, found.jump_ms

    # --- whole days ---

    def _days_around(self, t_ms: int) -> tuple[int, int]:
        if not self._start <= t_ms < self._end:
            day = self._day(t_ms)
            day -= day % self._days
            self._start, self._end = self._midnight(day), self._midnight(day + self._days)
        return self._start, self._end

    def _day(self, t_ms: int) -> int:
        """The local day of an instant, counted from the epoch's."""
        day = wall_clock(t_ms, self.zone).toordinal() - _EPOCH_DAY
        # In a zone that sets its clock back past midnight the next day has begun while the
        # date is still the old.
        while self._midnight(day + 1) <= t_ms:
            day += 1
        return day

    def _midnight(self, day: int) -> int:
        """The first instant of a local day, counted from the epoch's: `fold=0` gives it in
        gaps and overlaps alike."""
        return instant(EPOCH + timedelta(days=day), self.zone)
