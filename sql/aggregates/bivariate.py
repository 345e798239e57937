"""Statistics of two values: the weighted average, and the derived-value windows linest, correl, weighted_avg.

The result of a window's statistic is its properties by name; these are no SQL functions.
Here an undefined property is NaN, not NULL. Values and pairs with a NULL in them do not count.
Sums are exact: nothing cancels, and an empty window is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.moments import Moments, MomentsState
from sql.aggregates.structures.exact import (
    NAN,
    Power,
    PowerState,
    binary,
    check_number,
    number,
    root,
    to_float,
)
from sql.functions.definition import Parameter
from sql.types import Plain, Type

Pair = tuple[float | None, float | None]
"""What the statistics of two values take; NULL in it is left out."""

RegressionState = tuple[MomentsState, MomentsState, Plain, int]
"""The moments of x and of y, the sum of their products."""


class Regression(Accumulator):
    """linest(x, y): the least-squares line through pairs of values, and the statistics of both."""

    __slots__ = ("products", "x", "y")

    name = "linest"

    def __init__(self) -> None:
        self.x = Moments()
        self.y = Moments()
        self.products = Power()

    def add(self, value: Pair, event: EventView) -> None:
        self._take(value, 1)

    def remove(self, value: Pair, event: EventView) -> None:
        self._take(value, -1)

    def _take(self, value: Pair, by: int) -> None:
        x, y = value
        if x is None or y is None:
            return
        # Both are checked before anything changes: an error leaves the state as it was.
        x_finite, y_finite = number(x, self.name), number(y, self.name)
        self.x.take(x, by, self.name)
        self.y.take(y, by, self.name)
        if not self.x.count:
            self.products = Power()
        elif x_finite and y_finite:
            (x_numerator, x_shift), (y_numerator, y_shift) = binary(x), binary(y)
            self.products.add(x_numerator * y_numerator * by, x_shift + y_shift)

    @property
    def _defined(self) -> bool:
        return self.x.count > 0 and not self.x.nonfinite and not self.y.nonfinite

    def _centred_product(self) -> tuple[int, int]:
        """n·Sxy - Sx·Sy as numerator and shift."""
        both = self.x.sum.shift + self.y.sum.shift
        shift = max(self.products.shift, both)
        sums = self.x.sum.numerator * self.y.sum.numerator << (shift - both)
        return self.x.count * self.products.at(shift) - sums, shift

    def slope(self) -> float:
        """The slope of the line; NaN when all x are equal."""
        if not self._defined:
            return NAN
        product, product_shift = self._centred_product()
        square, square_shift = self.x.centred_square()
        return to_float(product << square_shift, square << product_shift) if square else NAN

    def intercept(self) -> float:
        """The y at x = 0."""
        return self.y.mean() - self.slope() * self.x.mean()

    def correlation(self) -> float:
        """The correlation of x and y, from -1 to 1; NaN when either does not vary."""
        if not self._defined:
            return NAN
        product, shift = self._centred_product()
        (x, x_shift), (y, y_shift) = self.x.centred_square(), self.y.centred_square()
        if not x or not y:
            return NAN
        magnitude = root(product * product << (x_shift + y_shift), x * y << (2 * shift))
        return -magnitude if product < 0 else magnitude

    def result(self) -> dict[str, Any]:
        """The current statistic by property name."""
        return {
            "slope": self.slope(),
            "YIntercept": self.intercept(),
            **_described("X", self.x),
            **_described("Y", self.y),
            "dataPoints": self.x.count,
            "n": self.x.count,
            "sumX": self.x.total(),
            "sumXSq": self.x.total_of_squares(),
            "sumXY": self._total_of_products(),
            "sumY": self.y.total(),
            "sumYSq": self.y.total_of_squares(),
        }

    def _total_of_products(self) -> float:
        if self.x.nonfinite or self.y.nonfinite:
            return NAN
        return to_float(self.products.numerator, 1 << self.products.shift)

    def snapshot(self) -> RegressionState:
        return self.x.state(), self.y.state(), *self.products.state()

    def restore(self, state: RegressionState, events: Callable[[int], EventView]) -> None:
        self.x.restore(state[0])
        self.y.restore(state[1])
        self.products = Power.restored(state[2:])


def _described(axis: str, moments: Moments) -> dict[str, float]:
    variance, deviation, population = moments.spreads()
    return {
        f"{axis}Average": moments.mean(),
        f"{axis}StandardDeviationPop": population,
        f"{axis}StandardDeviationSample": deviation,
        f"{axis}Sum": moments.total(),
        f"{axis}Variance": variance,
    }


class PairCorrelation(Regression):
    """correl(x, y): the correlation of pairs of values."""

    __slots__ = ()

    name = "correl"

    def result(self) -> dict[str, Any]:
        """The current statistic by property name."""
        return {"correlation": self.correlation()}


WeightedState = tuple[int, int, tuple[PowerState, PowerState]]
"""The count, that of pairs that are not finite, the sum of products and that of weights."""


class WeightedAverage(Accumulator):
    """The sum of x·w divided by the sum of w; NaN if the weights sum to 0, NULL over nothing.

    A pair with a NULL in it does not count. A pair with NaN or an infinity makes the result NaN while it is
    present.
    """

    __slots__ = ("count", "nonfinite", "products", "weights")

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        self.count = 0
        self.nonfinite = 0
        self.products = Power()
        self.weights = Power()

    def add(self, value: Pair, event: EventView) -> None:
        self._take(value, 1)

    def check(self, value: Pair) -> None:
        for part in value:
            check_number(part, "a weighted average")

    def remove(self, value: Pair, event: EventView) -> None:
        self._take(value, -1)
        if not self.count:
            self.products, self.weights = Power(), Power()

    def _take(self, value: Pair, by: int) -> None:
        x, weight = value
        if x is None or weight is None:
            return
        # Both are checked before anything changes: an error leaves the state as it was.
        finite = [number(x, "a weighted average"), number(weight, "a weighted average")]
        self.count += by
        if not all(finite):
            self.nonfinite += by
            return
        (x_numerator, x_shift), (numerator, shift) = binary(x), binary(weight)
        self.products.add(x_numerator * numerator * by, x_shift + shift)
        self.weights.add(numerator * by, shift)

    def result(self) -> Any:
        return self.average() if self.count else None

    def average(self) -> float:
        """The weighted average, NaN if it is undefined."""
        if self.nonfinite or not self.weights.numerator:
            return float("nan")
        shift = max(self.products.shift, self.weights.shift)
        return to_float(self.products.at(shift), self.weights.at(shift))

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, WeightedAverage)
        self.count += other.count
        self.nonfinite += other.nonfinite
        self.products.merge(other.products)
        self.weights.merge(other.weights)

    def snapshot(self) -> WeightedState:
        return self.count, self.nonfinite, (self.products.state(), self.weights.state())

    def restore(self, state: WeightedState, events: Callable[[int], EventView]) -> None:
        self.count, self.nonfinite, sums = state
        self.products, self.weights = map(Power.restored, sums)


class WeightedMean(WeightedAverage):
    """weighted_avg(x, w): the average of x weighted by w."""

    __slots__ = ()

    def result(self) -> Any:
        """The current statistic by property name."""
        return {"average": self.average()}


register(
    Aggregate(
        "wavg",
        WeightedAverage,
        "The average of x weighted by w; NaN where the weights sum to 0.",
        (Parameter("x", Type.NUMBER), Parameter("w", Type.NUMBER)),
        Type.FLOAT,
        mergeable=True,
        examples=(("wavg(x, w) over [[10, 1], [20, 3]]", 17.5),),
    )
)
