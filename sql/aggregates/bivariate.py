"""The statistics of derived-value windows over two values: linest, correl, weighted_avg.

They add and remove values and name their properties; they are no SQL functions. An undefined property is NaN,
not NULL. Values and pairs with a NULL in them do not count. Sums are exact: nothing cancels, and an empty
window is empty.
"""

from __future__ import annotations

from typing import Any

from sql.aggregates.exact import NAN, Power, binary, number, root, to_float
from sql.aggregates.moments import Moments
from sql.aggregates.state import decode, encode
from sql.aggregates.sums import WeightedAverage
from sql.aggregates.wrap import Remaining

_NOWHERE = Remaining(0, 0)


class Regression:
    """linest(x, y): the least-squares line through pairs of values, and the statistics of both."""

    __slots__ = ("products", "x", "y")

    name = "linest"

    def __init__(self) -> None:
        self.x = Moments()
        self.y = Moments()
        self.products = Power()

    def add(self, value: Any) -> None:
        """Add a pair (x, y); DataError if one is no number."""
        self._take(value, 1)

    def remove(self, value: Any) -> None:
        """Remove a pair."""
        self._take(value, -1)

    def _take(self, value: Any, by: int) -> None:
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
            (x, x_shift), (y, y_shift) = binary(x), binary(y)
            self.products.add(x * y * by, x_shift + y_shift)

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

    def properties(self) -> dict[str, Any]:
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

    def snapshot(self) -> Any:
        return [self.x.state(), self.y.state(), encode(self.products.numerator), self.products.shift]

    def restore(self, state: Any) -> None:
        self.x.restore(state[0])
        self.y.restore(state[1])
        self.products = Power(decode(state[2]), state[3])


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

    def properties(self) -> dict[str, Any]:
        """The current statistic by property name."""
        return {"correlation": self.correlation()}


class WeightedMean:
    """weighted_avg(x, w): the average of x weighted by w."""

    __slots__ = ("sums",)

    def __init__(self) -> None:
        self.sums = WeightedAverage()

    def add(self, value: Any) -> None:
        """Add a pair (x, w); DataError if one is no number."""
        self.sums.add(value, _NOWHERE)

    def remove(self, value: Any) -> None:
        """Remove a pair."""
        self.sums.remove(value, _NOWHERE)

    def properties(self) -> dict[str, Any]:
        """The current statistic by property name."""
        return {"average": self.sums.average()}

    def snapshot(self) -> Any:
        return self.sums.snapshot()

    def restore(self, state: Any) -> None:
        self.sums.restore(state, lambda seq: _NOWHERE)
