"""median, percentiles and the mean absolute deviation: aggregates that need the values in order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.plain_values import decode, encode
from sql.aggregates.structures.exact import NAN, Power, binary, check_number, number, to_float
from sql.aggregates.structures.ordered_multiset import OrderedMultiset
from sql.costs import Cost, Growth
from sql.errors import DataError
from sql.functions.definition import Parameter
from sql.types import Plain, Type


class Ordered(Accumulator):
    """An accumulator whose state is the values in order."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = OrderedMultiset()

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Ordered)
        for value in other.values:
            self.values.add(value)

    def snapshot(self) -> list[Plain]:
        return [encode(value) for value in self.values]

    def restore(self, state: list[Plain], events: Callable[[int], EventView]) -> None:
        self.values = OrderedMultiset(decode(value) for value in state)


class Quantile(Ordered):
    """The value at a place in the order of the numbers; NULLs and NaN are left out."""

    __slots__ = ("part", "whole")

    name = "percentile_cont"

    def __init__(self, removal: Removal, fraction: object) -> None:
        super().__init__()
        self.part, self.whole = _quotient(fraction, self.name)

    def add(self, value: object, event: EventView) -> None:
        check_number(value, self.name)
        if value is not None and value == value:
            self.values.add(value)

    def check(self, value: object) -> None:
        check_number(value, self.name)

    def remove(self, value: object, event: EventView) -> None:
        if value is not None and value == value:
            self.values.remove(value)

    def result(self) -> Any:
        """The interpolation between the two values around the place."""
        count = self.values.count
        if not count:
            return None
        below, rest = divmod(self.part * (count - 1), self.whole)
        low = self.values.at(below)
        high = self.values.at(below + 1) if rest else low
        return _between(low, high, rest, self.whole)


class Median(Quantile):
    """The middle value, or the mean of the two middle ones."""

    __slots__ = ()

    name = "median"

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        super().__init__(removal, 0.5)


class NearestRank(Quantile):
    """The smallest value that at least the given part of all values does not exceed."""

    __slots__ = ()

    name = "percentile_disc"

    def result(self) -> Any:
        count = self.values.count
        return self.values.at(max(-(-self.part * count // self.whole) - 1, 0)) if count else None


@lru_cache(maxsize=100, typed=True)
def _quotient(value: object, name: str) -> tuple[int, int]:
    """A part of all values as numerator and denominator."""
    if value.__class__ not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"{name}() takes a constant from 0 to 1, not {value!r}")
    # From its text: 0.1 means a tenth exactly, so that the tenth of 30 values is the third.
    return Fraction(str(value)).as_integer_ratio()


def _constant_fraction(value: float) -> None:
    if not 0 <= value <= 1:
        raise DataError(f"percentiles take a part from 0 to 1, not {value!r}")


def _between(low: float, high: float, rest: int, whole: int) -> float:
    """The value `rest` / `whole` of the way from low to high; with an infinity at one end that infinity, at
    both ends NaN."""
    if low == high or not rest:
        return low if low.__class__ is float else to_float(int(low))
    if infinities := [end for end in (low, high) if end.__class__ is float and not isfinite(end)]:
        return sum(infinities)
    # In integers, so that only the last division rounds.
    (a, b), (c, d) = low.as_integer_ratio(), high.as_integer_ratio()
    return to_float(a * d * (whole - rest) + c * b * rest, b * d * whole)


class Summed(OrderedMultiset):
    """Finite numbers in order, with the exact sums of all and of those up to a bound."""

    __slots__ = ("total",)

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(values)
        self.total = _sum(self)

    def add(self, value: float) -> None:
        super().add(value)
        self.total.add(*binary(value))

    def remove(self, value: float) -> Any:
        numerator, shift = binary(value)
        self.total.add(-numerator, shift)
        found = super().remove(value)
        if not self.count:
            self.total = Power()
        return found

    def up_to(self, bound: Fraction) -> tuple[int, Power]:
        """The number of values <= `bound`, and their sum: a block's sum is computed anew only after it
        changed."""
        count, total = 0, Power()
        for index, block in enumerate(self._blocks):
            if block[-1] > bound:
                place = bisect_right(block, bound)
                total.merge(_sum(block[:place]))
                return count + place, total
            if self._derived[index] is None:
                self._derived[index] = _sum(block)
            total.merge(self._derived[index])
            count += len(block)
        return count, total


def _sum(values: Iterable[Any]) -> Power:
    total = Power()
    for value in values:
        total.add(*binary(value))
    return total


class MeanDeviation(Accumulator):
    """The mean absolute deviation from the mean. NULL over nothing, NaN while a value is not finite."""

    __slots__ = ("nonfinite", "values")

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        self.nonfinite = 0
        self.values = Summed()

    def add(self, value: object, event: EventView) -> None:
        if value is None:
            return
        if number(value, "avedev"):
            self.values.add(value)
        else:
            self.nonfinite += 1

    def check(self, value: object) -> None:
        check_number(value, "avedev")

    def remove(self, value: object, event: EventView) -> None:
        if value is None:
            return
        if number(value, "avedev"):
            self.values.remove(value)
        else:
            self.nonfinite -= 1

    def result(self) -> float | None:
        if self.nonfinite:
            return NAN
        count, total = self.values.count, self.values.total
        if not count:
            return None
        # Deviations above the mean sum to those below it: twice the latter are all.
        below, low = self.values.up_to(Fraction(total.numerator, count << total.shift))
        shift = max(total.shift, low.shift)
        deviation = 2 * (below * total.at(shift) - count * low.at(shift))
        return to_float(deviation, count * count << shift)

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, MeanDeviation)
        self.nonfinite += other.nonfinite
        for value in other.values:
            self.values.add(value)

    def snapshot(self) -> tuple[int, list[Plain]]:
        return self.nonfinite, [encode(value) for value in self.values]

    def restore(self, state: tuple[int, list[Plain]], events: Callable[[int], EventView]) -> None:
        self.nonfinite = state[0]
        self.values = Summed(decode(value) for value in state[1])


X = Parameter("x", Type.NUMBER)
FRACTION = Parameter("p", Type.NUMBER, constant=True, check=_constant_fraction)
COST = Cost(event=Growth.ROOT)

register(
    Aggregate(
        "median",
        Median,
        "The middle value, or the mean of the two middle ones, as a float. NULL over nothing.",
        (X,),
        Type.FLOAT,
        mergeable=True,
        cost=COST,
        examples=(("median(x) over [3, 1, 8]", 3.0), ("median(x) over [3, 1, 8, 4]", 3.5)),
    )
)
register(
    Aggregate(
        "percentile_cont",
        Quantile,
        "The value at part p (0 to 1) of the order, interpolated between its neighbours.",
        (X, FRACTION),
        Type.FLOAT,
        aliases=("percentile",),
        constants=1,
        mergeable=True,
        cost=COST,
        examples=(("percentile_cont(x, 0.25) over [10, 20, 30]", 15.0),),
    )
)
register(
    Aggregate(
        "percentile_disc",
        NearestRank,
        "The nearest rank: the smallest value that at least part p (0 to 1) do not exceed.",
        (X, FRACTION),
        lambda kinds: kinds[0],
        constants=1,
        mergeable=True,
        cost=COST,
        examples=(("percentile_disc(x, 0.5) over [10, 20, 30, 40]", 20),),
    )
)
register(
    Aggregate(
        "avedev",
        MeanDeviation,
        "The mean absolute deviation from the mean. NULL over nothing.",
        (X,),
        Type.FLOAT,
        mergeable=True,
        cost=COST,
        examples=(("avedev(x) over [1, 3, 8]", 2.6666666666666665),),
    )
)
