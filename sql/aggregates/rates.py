"""rate: events or amounts per second, over a span of time or over a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.structures.exact import number
from sql.aggregates.sums import Sum, SumState
from sql.costs import Cost, Growth
from sql.errors import DataError
from sql.functions.definition import Parameter
from sql.types import Type, describe


def _span_ms(seconds: object) -> int:
    """The span of rate(seconds)."""
    if seconds.__class__ not in (int, float) or not 0.001 <= seconds < 1e12:
        raise DataError(f"rate() takes a number of seconds, at least 0.001 and below 1e12, not {seconds!r}")
    return int(Fraction(str(seconds)) * 1000)


class ArrivalRate(Accumulator):
    """The arrivals per second in a span that ends at the newest arrival; NULL until an arrival has left the
    span.

    It keeps the arrival times of the span itself, independent of the statement's window.
    """

    __slots__ = ("left", "span_ms", "times_ms")

    def __init__(self, removal: Removal, seconds: object) -> None:
        self.span_ms = _span_ms(seconds)
        self.times_ms: deque[int] = deque()
        self.left = False

    def add(self, value: object, event: EventView) -> None:
        times_ms = self.times_ms
        times_ms.append(event.time_ms)
        due_ms = event.time_ms - self.span_ms
        while times_ms[0] <= due_ms:
            times_ms.popleft()
            self.left = True

    def result(self) -> float | None:
        return len(self.times_ms) * 1000 / self.span_ms if self.left else None

    def snapshot(self) -> tuple[bool, list[int]]:
        return self.left, list(self.times_ms)

    def restore(self, state: tuple[bool, list[int]], events: Callable[[int], EventView]) -> None:
        self.left = state[0]
        self.times_ms = deque(state[1])


def _stamped(value: object) -> tuple[Any, Any]:
    """The arguments of rate(ts) and rate(ts, x) as (time stamp, amount)."""
    parts = value if value.__class__ is tuple else (value,)
    return parts[0], parts[1] if len(parts) > 1 else 1


class WindowRate(Accumulator):
    """Count, or sum of amounts, divided by the seconds from the last time stamp that left to
    the newest; NULL before.

    Takes the time stamp in ms, or (time stamp, amount). Events without time stamp do not count, an amount
    that is NULL adds nothing.
    """

    __slots__ = ("amounts", "left_ms", "newest_ms")

    def __init__(self, removal: Removal) -> None:
        self.amounts = Sum(removal)
        self.newest_ms: float | None = None
        self.left_ms: float | None = None

    def add(self, value: object, event: EventView) -> None:
        self.check(value)
        time_ms, amount = _stamped(value)
        if time_ms is not None:
            self.amounts.add(amount, event)
            self.newest_ms = time_ms

    def check(self, value: object) -> None:
        time_ms, amount = _stamped(value)
        if time_ms is not None and not number(time_ms, "rate"):
            raise DataError(f"rate takes time stamps in ms, not {describe(time_ms)}")
        self.amounts.check(amount)

    def remove(self, value: object, event: EventView) -> None:
        time_ms, amount = _stamped(value)
        if time_ms is not None:
            self.amounts.remove(amount, event)
            self.left_ms = time_ms

    def result(self) -> float | None:
        if self.newest_ms is None or self.left_ms is None or self.newest_ms <= self.left_ms:
            return None
        return self.amounts.total() * 1000 / (self.newest_ms - self.left_ms)

    def snapshot(self) -> tuple[SumState, float | None, float | None]:
        return self.amounts.snapshot(), self.newest_ms, self.left_ms

    def restore(
        self, state: tuple[SumState, float | None, float | None], events: Callable[[int], EventView]
    ) -> None:
        self.amounts.restore(state[0], events)
        self.newest_ms, self.left_ms = state[1:]


register(
    Aggregate(
        "rate",
        ArrivalRate,
        "Arrivals per second over the last so many seconds, NULL until that time has passed.",
        (Parameter("seconds", Type.NUMBER, constant=True, check=_span_ms),),
        Type.FLOAT,
        ever=True,
        constants=1,
        cost=Cost(event=Growth.AMORTISED),
    )
)
register(
    Aggregate(
        "rate_ts",
        WindowRate,
        "rate(ts) and rate(ts, x): events, or the sum of x, "
        "per second of the events' own time, over a window.",
        (Parameter("ts", Type.NUMBER), Parameter("x", Type.NUMBER, optional=True)),
        Type.FLOAT,
        recalls=True,
    )
)
