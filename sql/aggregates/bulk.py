"""Aggregates over many numbers at once, with the C built-ins; the fast path folds its pending values with
them.

The values are lists of ints and floats: no NULL, no boolean, no text. Every function returns exactly the
result of the accumulator of the same name after adding the values one by one; if a built-in cannot promise
that (NaN, infinities, whole numbers too large for a float), the accumulator does the work.
"""

from __future__ import annotations

from math import fsum, hypot, isfinite
from typing import Any

Numbers = list[Any]

EXACT_MAX = 2**53
"""Whole numbers up to here are floats without rounding."""

NORM_MAX = EXACT_MAX // 2
"""All values lie below `EXACT_MAX` if `hypot` of them is less than this, however it rounds."""

SQUARE_MAX = EXACT_MAX**2
"""Sums up to here are divided without an overflow."""


def are_exact(values: Numbers) -> bool:
    """True if floats hold all values without rounding, whole numbers among them."""
    return bool(max(values) < EXACT_MAX and min(values) > -EXACT_MAX)


def expansion(values: Numbers, floats: int) -> tuple[float, ...] | None:
    """Floats whose exact sum is that of `values`, so many of which are floats: the rounded sum, then the
    remainder of each rounding.

    `fsum` rounds the exact sum once. Its remainder is the exact sum of the values less that result, and so on
    until it is 0, usually after one or two steps. None if floats cannot represent the sum, or only by very
    many of them.

    >>> expansion([0.1, 0.2, 0.3], 3)
    (0.6, 2.7755575615628914e-17)
    """
    if floats < len(values) and not are_exact(values):
        return None
    try:
        first = fsum(values)
    except (OverflowError, ValueError):
        return None
    if not isfinite(first):
        return None
    values.append(-first)
    second = fsum(values)
    values.append(-second)
    rest = fsum(values) if second else 0.0
    del values[-2:]
    if rest:
        return None
    return (first, second) if second else (first,)


def total(values: Numbers) -> int | float | None:
    """The exact sum, an integer of integers; None for a case that needs the accumulator, or for no values.

    The Euclidean norm is at least the largest magnitude, and NaN or infinite where a value is. It takes less
    than half the time of a look at the values' types, or at the largest and the smallest.
    """
    if not values:
        return None
    try:
        if values[0].__class__ is int:  # else one is a float, and so is the sum
            plain = sum(values)
            if plain.__class__ is int:
                return plain
        return fsum(values) if hypot(*values) < NORM_MAX else None
    except OverflowError:
        return None


def mean(values: Numbers) -> float | None:
    """The exact sum divided by the count; None for a case that needs the accumulator, or for no values."""
    found = total(values)
    if found.__class__ is float:
        return found / len(values)
    return None if found is None or abs(found) > SQUARE_MAX else float(found) / len(values)


def has_nan(values: Numbers) -> bool:
    """True if NaN is among the values, or may be: a NaN makes the plain sum NaN, and so do opposite
    infinities."""
    try:
        plain = sum(values)
    except OverflowError:
        return True
    return bool(plain != plain)


def least(values: Numbers) -> Any:
    """The first of the smallest; None for a case that needs the accumulator."""
    return None if not values or has_nan(values) else min(values)


def greatest(values: Numbers) -> Any:
    """The first of the largest; None for a case that needs the accumulator."""
    return None if not values or has_nan(values) else max(values)
