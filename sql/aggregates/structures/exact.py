"""Exact sums of floats and integers together.

Every finite float is a whole number over a power of two, so a sum of floats is one Python integer and one
exponent. It has no rounding, hence no drift, no cancellation and no order: a value that is added and removed
leaves no trace, merged panes equal one pass, and an empty sum is 0. Rounding happens once, when a result is
computed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, TypeGuard

from sql.aggregates.plain_values import decode, encode
from sql.errors import DataError
from sql.types import Plain, describe

INFINITY: Final = math.inf
NAN: Final = math.nan


def to_float(numerator: int, denominator: int = 1) -> float:
    """The float nearest to a quotient; beyond the largest float an infinity."""
    try:
        return numerator / denominator
    except OverflowError:
        return INFINITY if (numerator < 0) == (denominator < 0) else -INFINITY


def root(numerator: int, denominator: int) -> float:
    """The square root of a quotient >= 0, also if the quotient itself is beyond the floats."""
    squared = to_float(numerator, denominator)
    if 1e-290 < squared < 1e290 or numerator == 0:
        return math.sqrt(squared)
    # Scale the quotient into the range of floats by an even power of two.
    half = (numerator.bit_length() - denominator.bit_length()) // 2
    scaled = Fraction(numerator, denominator) / Fraction(4) ** half
    try:
        return math.ldexp(math.sqrt(scaled), half)
    except OverflowError:
        return INFINITY


def number(value: object, name: str) -> TypeGuard[float]:
    """True if the value is a finite number; False for NaN and infinities; anything else raises DataError."""
    if value.__class__ is float:
        return math.isfinite(value)
    if value.__class__ is int:
        return True
    raise DataError(f"{name} takes numbers, not {describe(value)}")


def check_number(value: object, name: str) -> None:
    """Raise the DataError of an aggregate of numbers unless the value is a number or NULL."""
    if value.__class__ is not float and value.__class__ is not int and value is not None:
        raise DataError(f"{name} takes numbers, not {describe(value)}")


NonfiniteState = tuple[int, int, int]


class Nonfinite:
    """The numbers of NaN, +infinity and -infinity among the present values."""

    __slots__ = ("minus", "nan", "plus")

    def __init__(self, nan: int = 0, plus: int = 0, minus: int = 0) -> None:
        self.nan = nan
        self.plus = plus
        self.minus = minus

    def count(self, value: float, by: int) -> None:
        """Add (`by` 1) or remove (`by` -1) one value."""
        if value != value:
            self.nan += by
        elif value > 0:
            self.plus += by
        else:
            self.minus += by

    def merge(self, other: Nonfinite, by: int = 1) -> None:
        """Add (`by` 1) or remove (`by` -1) the counts of another."""
        self.nan += by * other.nan
        self.plus += by * other.plus
        self.minus += by * other.minus

    def __bool__(self) -> bool:
        return bool(self.nan or self.plus or self.minus)

    def total(self) -> float:
        """The value of a sum while at least one of these is in it."""
        if self.nan or (self.plus and self.minus):
            return NAN
        return INFINITY if self.plus else -INFINITY

    def state(self) -> NonfiniteState:
        """The counts, for a snapshot: the arguments of the constructor."""
        return self.nan, self.plus, self.minus


PowerState = tuple[Plain, int]


class Power:
    """An exact sum of products as `numerator / 2**shift`; the shift grows when a finer number comes."""

    __slots__ = ("numerator", "shift")

    def __init__(self, numerator: int = 0, shift: int = 0) -> None:
        self.numerator = numerator
        self.shift = shift

    def add(self, numerator: int, shift: int) -> None:
        """Add `numerator / 2**shift`; a negative numerator subtracts."""
        up = self.shift - shift
        if up < 0:
            self.numerator <<= -up
            self.shift = shift
            up = 0
        self.numerator += numerator << up

    def merge(self, other: Power) -> None:
        """Add another sum."""
        self.add(other.numerator, other.shift)

    def state(self) -> PowerState:
        """The sum as plain data."""
        return encode(self.numerator), self.shift

    @staticmethod
    def restored(state: PowerState) -> Power:
        """The sum that `state` has stored."""
        return Power(decode(state[0]), state[1])

    def at(self, shift: int) -> int:
        """The numerator over `2**shift`, for a shift not below the own."""
        return self.numerator << (shift - self.shift)


def binary(value: float) -> tuple[int, int]:
    """A finite number as (numerator, shift): it is `numerator / 2**shift`.

    >>> binary(0.75), binary(5)
    ((3, 2), (5, 0))
    """
    numerator, denominator = value.as_integer_ratio()
    return numerator, denominator.bit_length() - 1
