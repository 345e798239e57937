"""Variance and standard deviation from exact sums of x and x²: nothing cancels, and every value can be
removed.

`stddev` is the sample's, as in EPL. eKuiper calls the population's `stddev` and the sample's `stddevs`: in
rules with an eKuiper window the binder takes `stddev_pop` for that name. `var` is the population's: only
eKuiper has that word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.structures.exact import (
    INFINITY,
    NAN,
    Nonfinite,
    NonfiniteState,
    Power,
    PowerState,
    binary,
    check_number,
    number,
    root,
    to_float,
)
from sql.functions.definition import Parameter
from sql.types import Type

MomentsState = tuple[int, NonfiniteState, tuple[PowerState, PowerState]]
"""The count, what is not finite, the sum and the sum of squares."""


class Moments:
    """The exact count, sum and sum of squares of numbers. NaN and infinities are counted apart."""

    __slots__ = ("count", "nonfinite", "squares", "sum")

    def __init__(self) -> None:
        self.count = 0
        """The number of all values, also those that are not finite."""
        self.nonfinite = Nonfinite()
        self.sum = Power()
        self.squares = Power()

    def take(self, value: float, by: int, name: str) -> None:
        """Add (`by` 1) or remove (`by` -1) a value; DataError if it is no number."""
        finite = number(value, name)
        self.count += by
        if not finite:
            self.nonfinite.count(value, by)
        elif not self.count:
            self.sum, self.squares = Power(), Power()
        else:
            numerator, shift = binary(value)
            self.sum.add(numerator * by, shift)
            self.squares.add(numerator * numerator * by, 2 * shift)

    def total(self) -> float:
        """The sum, 0.0 over nothing."""
        return self.nonfinite.total() if self.nonfinite else to_float(self.sum.numerator, 1 << self.sum.shift)

    def mean(self) -> float:
        """The mean, NaN over nothing."""
        if not self.count or self.nonfinite:
            return self.nonfinite.total() if self.nonfinite else NAN
        return to_float(self.sum.numerator, self.count << self.sum.shift)

    def total_of_squares(self) -> float:
        """The sum of squares, 0.0 over nothing."""
        if self.nonfinite:
            return NAN if self.nonfinite.nan else INFINITY
        return to_float(self.squares.numerator, 1 << self.squares.shift)

    def variance(self, sample: bool) -> tuple[int, int] | None:
        """The variance as a quotient; None if it is undefined: too few values, or not all of them finite."""
        if self.count <= sample or self.nonfinite:
            return None
        square, shift = self.centred_square()
        return square, self.count * (self.count - sample) << shift

    def spreads(self) -> tuple[float, float, float]:
        """The sample's variance and standard deviation and the population's standard deviation; NaN if
        undefined."""
        if not self.count or self.nonfinite:
            return NAN, NAN, NAN
        square, shift = self.centred_square()
        population = root(square, self.count * self.count << shift)
        if self.count == 1:
            return NAN, NAN, population
        divisor = self.count * (self.count - 1) << shift
        return to_float(square, divisor), root(square, divisor), population

    def centred_square(self) -> tuple[int, int]:
        """n·Sxx - Sx² of the finite values, as numerator and shift."""
        shift = max(2 * self.sum.shift, self.squares.shift)
        squared = self.sum.numerator**2 << (shift - 2 * self.sum.shift)
        return self.count * self.squares.at(shift) - squared, shift

    def merge(self, other: Moments) -> None:
        """Add the values of another."""
        self.count += other.count
        self.nonfinite.merge(other.nonfinite)
        self.sum.merge(other.sum)
        self.squares.merge(other.squares)

    def state(self) -> MomentsState:
        """Plain data for a snapshot."""
        return self.count, self.nonfinite.state(), (self.sum.state(), self.squares.state())

    def restore(self, state: MomentsState) -> None:
        """Put `state()` back."""
        self.count, nonfinite, sums = state
        self.nonfinite = Nonfinite(*nonfinite)
        self.sum, self.squares = map(Power.restored, sums)


class OfMoments(Accumulator):
    """Base: the subclass reads its result from the moments of the values."""

    __slots__ = ("moments",)

    name: ClassVar[str]

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        self.moments = Moments()

    def add(self, value: float | None, event: EventView) -> None:
        if value is not None:
            self.moments.take(value, 1, self.name)

    def check(self, value: object) -> None:
        check_number(value, self.name)

    def remove(self, value: float | None, event: EventView) -> None:
        if value is not None:
            self.moments.take(value, -1, self.name)

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, OfMoments)
        self.moments.merge(other.moments)

    def snapshot(self) -> MomentsState:
        return self.moments.state()

    def restore(self, state: MomentsState, events: Callable[[int], EventView]) -> None:
        self.moments.restore(state)


class Spread(OfMoments):
    """One of the measures of spread. NULL over too few values, NaN while a value is not finite."""

    __slots__ = ()

    sample: ClassVar[bool]
    rooted: ClassVar[bool]

    def result(self) -> float | None:
        if self.moments.count <= self.sample:
            return None
        variance = self.moments.variance(self.sample)
        if variance is None:
            return NAN
        return root(*variance) if self.rooted else to_float(*variance)


class StandardDeviation(Spread):
    """The sample's standard deviation."""

    __slots__ = ()
    name, sample, rooted = "stddev", True, True


class PopulationStandardDeviation(Spread):
    """The population's standard deviation."""

    __slots__ = ()
    name, sample, rooted = "stddev_pop", False, True


class Variance(Spread):
    """The sample's variance."""

    __slots__ = ()
    name, sample, rooted = "var_samp", True, False


class PopulationVariance(Spread):
    """The population's variance."""

    __slots__ = ()
    name, sample, rooted = "var_pop", False, False


X = (Parameter("x", Type.NUMBER),)

register(
    Aggregate(
        "stddev",
        StandardDeviation,
        "The sample's standard deviation; NULL over fewer than two values.",
        X,
        Type.FLOAT,
        aliases=("stddevs", "stddev_samp"),
        mergeable=True,
        examples=(("stddev(x) over [1, 3]", 1.4142135623730951), ("stddev(x) over [1]", None)),
    )
)
register(
    Aggregate(
        "stddev_pop",
        PopulationStandardDeviation,
        "The population's standard deviation; eKuiper's `stddev`.",
        X,
        Type.FLOAT,
        mergeable=True,
        examples=(("stddev_pop(x) over [1, 3]", 1.0),),
    )
)
register(
    Aggregate(
        "var_samp",
        Variance,
        "The sample's variance; NULL over fewer than two values.",
        X,
        Type.FLOAT,
        aliases=("vars",),
        mergeable=True,
        examples=(("var_samp(x) over [1, 3]", 2.0),),
    )
)
register(
    Aggregate(
        "var_pop",
        PopulationVariance,
        "The population's variance.",
        X,
        Type.FLOAT,
        aliases=("var",),
        mergeable=True,
        examples=(("var_pop(x) over [1, 3]", 1.0),),
    )
)
