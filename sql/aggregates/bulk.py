"""Aggregates over many numbers at once, with the C built-ins: what the fast path folds its pending values with.

The values are lists of ints and floats: no NULL, no boolean, no text. Every function gives exactly what the accumulator
of the same name gives after adding the values one by one; where a built-in cannot promise that (NaN, infinities, whole
numbers too large for a float), the accumulator does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, isfinite
from typing import Any

from sql.aggregates.base import Accumulator
from sql.aggregates.exact import to_float

Numbers = list[Any]

EXACT_MAX = 2**53
"""Whole numbers up to here are floats without rounding."""


def expansion(values: Numbers) -> list[float] | None:
    """A few floats whose exact sum is that of `values`; None where floats cannot say it.

    `fsum` rounds the exact sum once. What it rounded away is the exact sum of the values less that result, and so on
    until nothing is left, usually after one or two steps.

    >>> expansion([0.1, 0.2, 0.3])
    [0.6, -2.7755575615628914e-17]
   
"""
    parts: list[float] = []
    try:
        if not min(values) > -EXACT_MAX or not max(values) < EXACT_MAX:
            return None
        while part := fsum(values):
            if not isfinite(part):
                return None
            parts.append(part)
            values.append(-part)
    except (OverflowError, ValueError):
        return None
    finally:
        del values[len(values) - len(parts) :]
    return parts


def total(values: Numbers) -> int | float | None:
    """The exact sum, an integer of integers; None for a case that needs the accumulator, or for no values."""
    try:
        plain = sum(values)
        if plain.__class__ is int:
            return plain if values else None
        rounded = fsum(values)
    except (OverflowError, ValueError):
        return None
    in_range = isfinite(rounded) and min(values) > -EXACT_MAX and max(values) < EXACT_MAX
    return rounded if in_range else None


def mean(values: Numbers) -> float | None:
    """The exact sum divided by the count, rounded once; None for a case that needs the accumulator."""
    parts = expansion(values)
    if parts is None or not values:
        return None
    if len(parts) < 2:
        return parts[0] / len(values) if parts else 0.0
    numerator, denominator = exact_ratio(parts)
    return to_float(numerator, denominator * len(values))


def exact_ratio(parts: list[float]) -> tuple[int, int]:
    """The exact sum of floats as numerator and denominator, a power of two."""
    numerator, denominator = 0, 1
    for part in parts:
        more, finer = part.as_integer_ratio()
        if finer > denominator:
            numerator *= finer // denominator
            denominator = finer
        numerator += more * (denominator // finer)
    return numerator, denominator


def has_nan(values: Numbers) -> bool:
    """Whether NaN is among the values, or may be: a NaN makes the plain sum NaN, and so do opposite infinities."""
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


def result_of(make: Callable[[], Accumulator], shortcut: Callable[[Numbers], Any], values: Numbers) -> Any:
    """The aggregate of plain numbers: by the shortcut, or by an accumulator where that passes."""
    found = shortcut(values)
    if found is None:
        accumulator = make()
        accumulator.add_many(values)
        return accumulator.result()
    return found
