"""Exact sums of floats that any engine of whole numbers can add: the same bits in whatever
order, without collecting.

A finite float is a whole number of units of 2^(32·bin). Sums of units of one bin are sums of integers; a
total is the sum over few bins and is rounded once, when it is read. Units stay below 2^85, so a DECIMAL(38,
0) takes 2^41 of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

BIN_BITS = 32


def units(value: float) -> tuple[int, int]:
    """A finite float as (bin, units).

    >>> units(1.0), units(-0.75), units(0.0)
    ((-2, 18446744073709551616), (-2, -13835058055282163712), (0, 0))
    """
    fraction, exponent = math.frexp(value)
    if not fraction:
        return 0, 0
    number, shift = divmod(exponent - 53, BIN_BITS)
    return number, int(fraction * 2.0**53) << shift


def total(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The sum of (bin, units) as a quotient of whole numbers."""
    listed = list(parts)
    lowest = min((number for number, _ in listed), default=0)
    numerator = sum(count << BIN_BITS * (number - lowest) for number, count in listed)
    return (numerator << BIN_BITS * lowest, 1) if lowest >= 0 else (numerator, 1 << -BIN_BITS * lowest)


def nearest(numerator: int, denominator: int) -> float:
    """The float nearest to a quotient; beyond the largest float an infinity."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
