"""`uni`: count, sum, mean, variance and standard deviations of one value,
as the statistic of a window and as an aggregate per column.

A column that is undefined is NaN, not NULL. Sums are exact, in the loop as in `Moments`,
so both give the same floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, Removal
from sql.aggregates.inline import AVG, COUNT, UNIT, UNIT_SHIFT, Inline
from sql.aggregates.moments import Moments, OfMoments
from sql.aggregates.rare import RareMoments
from sql.aggregates.structures.exact import Power, to_float
from sql.aggregates.sums import Sum, count_with, together
from sql.functions.definition import Parameter
from sql.types import Type

PREFIX = "uni."
"""Before the name of a column, where it is an aggregate."""

COLUMNS: dict[str, Callable[[Moments], Any]] = {
    "datapoints": lambda moments: moments.count,
    "total": Moments.total,
    "average": Moments.mean,
    "variance": lambda moments: moments.spreads()[0],
    "stddev": lambda moments: moments.spreads()[1],
    "stddevpa": lambda moments: moments.spreads()[2],
}


class Univariate(OfMoments):
    """The columns of `uni` together, over values that come and go."""

    __slots__ = ()
    name = "uni"

    def result(self) -> dict[str, Any]:
        moments = self.moments
        found = (moments.count, moments.total(), moments.mean(), *moments.spreads())
        return dict(zip(COLUMNS, found, strict=True))


class UnivariateColumn(OfMoments):
    """One column of `uni` on its own."""

    __slots__ = ("read",)
    name = "uni"

    def __init__(self, read: Callable[[Moments], Any]) -> None:
        super().__init__()
        self.read = read

    def result(self) -> Any:
        return self.read(self.moments)


# --- the columns in a loop ----------------------------------------------------------------------------------
# `count`, `total` and `squares` are the number, the sum and the sum of squares,
# in units of 2**-UNIT_SHIFT and of its square; `rest` holds the values that have no units.
# Quotients are taken in units, where no float is too large or too small, so scaling them changes no digit.


def total_with(rest: Sum, count: int, total: int) -> float:
    """The sum of plain and rare values."""
    whole = together(Sum(), rest, count, total)
    return whole.nonfinite.total() if whole.nonfinite else whole.rounded()


def mean_with(rest: Sum, count: int, total: int) -> float:
    """The mean of plain and rare values."""
    whole = together(Sum(), rest, count, total)
    if whole.nonfinite:
        return whole.nonfinite.total()
    return to_float(whole.numerator, whole.count << (whole.bits - 1))


def _spread_with(place: int) -> Callable[[RareMoments, int, int, int], float]:
    def spread_with(rest: RareMoments, count: int, total: int, squares: int) -> float:
        whole = Moments()
        whole.count = count
        whole.sum, whole.squares = Power(total, UNIT_SHIFT), Power(squares, 2 * UNIT_SHIFT)
        whole.merge(rest.moments)
        return whole.spreads()[place]

    return spread_with


def _of_squares(result: str, place: int) -> Inline:
    return Inline(
        ("count", "total", "squares"),
        (*AVG.add, "{squares} += {scaled} * {scaled}"),
        (*AVG.remove, "{squares} -= {scaled} * {scaled}"),
        result,
        with_rest=_spread_with(place),
    )


_CENTRED = "({count} * {squares} - {total} * {total})"  # n·Sxx - Sx²
_SAMPLE = f"{_CENTRED} / ({{count}} * ({{count}} - 1))"


INLINE = {
    "datapoints": COUNT._replace(with_rest=count_with),
    "total": AVG._replace(result=f"{{total}} * {UNIT!r}", with_rest=total_with),
    "average": AVG._replace(
        result=f"{{total}} / {{count}} * {UNIT!r} if {{count}} else NAN", with_rest=mean_with
    ),
    "variance": _of_squares(f"{_SAMPLE} * {UNIT**2!r} if {{count}} > 1 else NAN", 0),
    "stddev": _of_squares(f"sqrt({_SAMPLE}) * {UNIT!r} if {{count}} > 1 else NAN", 1),
    "stddevpa": _of_squares(
        f"sqrt({_CENTRED} / ({{count}} * {{count}})) * {UNIT!r} if {{count}} else NAN", 2
    ),
}


def _column(name: str, read: Callable[[Moments], Any]) -> Aggregate:
    def make(removal: Removal) -> Accumulator:
        return UnivariateColumn(read)

    parameters = (Parameter("x", Type.NUMBER),)
    return Aggregate(
        PREFIX + name, make, f"The column {name} of uni.", parameters, Type.NUMBER, inline=INLINE[name]
    )


UNIVARIATE = {name: _column(name, read) for name, read in COLUMNS.items()}
"""The columns as aggregates. They are no functions of SQL:
a statement that reads only these is folded as it stands."""
