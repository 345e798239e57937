"""The time axis of a picture: round tick lengths, short labels."""

from __future__ import annotations

from datetime import UTC, datetime

from sql.record import Record

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000

_TICKS_MS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)), *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)  # fmt: skip

_UNITS = ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes"), (_SECOND, "seconds"), (1, "ms"))


class Axis(Record):
    """An axis from `start_ms` to `end_ms`, both on ticks. Labels count from `origin_ms` in `unit_ms`."""

    start_ms: int
    end_ms: int
    tick_ms: int
    origin_ms: int
    unit_ms: int

    @classmethod
    def over(cls, start_ms: int, end_ms: int, ticks_max: int) -> Axis:
        """The axis with the shortest round ticks of which at most `ticks_max` cover the span."""
        span = max(end_ms - start_ms, 1)
        tick = next((tick for tick in _TICKS_MS if span / tick <= ticks_max - 1), None)
        if tick is None:
            tick = _TICKS_MS[-1] * -(-span // (_TICKS_MS[-1] * (ticks_max - 1)))
        first = start_ms - start_ms % tick
        last = end_ms + -end_ms % tick
        # Times near zero are relative already (tests, replays on a virtual clock); others count from the
        # first tick.
        origin = 0 if -_DAY < first < _DAY else first
        unit = next(unit for unit, _ in _UNITS if tick >= unit or (unit == _SECOND and tick >= 100))
        return cls(first, max(last, first + tick), tick, origin, unit)

    @property
    def ticks_ms(self) -> range:
        """The instants of all ticks, both ends included."""
        return range(self.start_ms, self.end_ms + 1, self.tick_ms)

    @property
    def unit(self) -> str:
        """The unit of the labels."""
        return next(name for size, name in _UNITS if size == self.unit_ms)

    @property
    def note(self) -> str:
        """The origin of the labels, unless that is 0."""
        if self.origin_ms == 0:
            return ""
        return f"0 = {datetime.fromtimestamp(self.origin_ms / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"

    def label(self, at_ms: int) -> str:
        """An instant in the axis' unit; between whole minutes, hours or days as on a clock.

        >>> Axis.over(0, 6000, 9).label(1500), Axis.over(0, 600_000, 9).label(100_000)
        ('1.5', '1:40')
        """
        past = at_ms - self.origin_ms
        if self.unit_ms <= _SECOND or past % self.unit_ms == 0:
            return f"{past / self.unit_ms:.10g}"
        sign, past = ("-", -past) if past < 0 else ("", past)
        parts: list[str] = []
        for size, digits in ((_DAY, 1), (_HOUR, 2), (_MINUTE, 2), (_SECOND, 2)):
            if size <= self.unit_ms:
                whole, past = divmod(past, size)
                parts.append(f"{whole:0{digits if parts else 1}}")
        return sign + ":".join(parts) + (f".{past:03}".rstrip("0") if past else "")

    def place(self, at_ms: int, length: float) -> float:
        """The position of an instant on an axis of this length, clipped to it."""
        share = (at_ms - self.start_ms) / (self.end_ms - self.start_ms)
        return min(max(share, 0.0), 1.0) * length
