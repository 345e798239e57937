"""Aggregates over many numbers at once, with the C built-ins: what the fast path folds its pending values with.

The values are lists of ints and floats: no NULL, no boolean, no text. Every function gives exactly what the accumulator
of the same name gives after adding the values one by one; where a built-in cannot promise that (NaN, infinities, whole
numbers too large for a float), the accumulator does the work.
"""

from __future__ import annotations

from math import fsum, isfinite
from typing import Any

Numbers = list[Any]

EXACT_MAX = 2**53
"""Whole numbers up to here are floats without rounding."""

HALVED_MIN = 1e-300
"""Half of a float above this loses no digit."""


def expansion(values: Numbers) -> tuple[float, ...] | None:
    """Floats whose exact sum is that of `values`, each what rounding the sum of those before left over.

    `fsum` rounds the exact sum once. What it rounded away is the exact sum of the values less that result, and so on
    until nothing is left, usually after one or two steps. None where floats cannot say it, or only by
    very many of them.

    >>> expansion([0.1, 0.2, 0.3])
    (0.6, -2.7755575615628914e-17)
    """
    if not (max(values) < EXACT_MAX and min(values) > -EXACT_MAX):
        return None
    first = fsum(values)
    if first != first:
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
    """The exact sum divided by the count, rounded once; None if that needs the accumulator, or for no values."""
    count = len(values)
    if count < 2:
        # A group of one event: so many groups are that it pays to look.
        value = values[0] if values else None
        return value + 0.0 if value.__class__ is float else None
    if count == 2 and values[0].__class__ is float and values[1].__class__ is float:
        # The sum is rounded once, and halving rounds only what is too small for it to matter here.
        half = (values[0] + values[1]) / 2
        return half if abs(half) > HALVED_MIN else None
    parts = expansion(values)
    if parts is None:
        return None
    if len(parts) == 1:
        return parts[0] / count
    # Both are whole numbers over powers of two, the second of them the finer.
    numerator, denominator = parts[0].as_integer_ratio()
    more, finer = parts[1].as_integer_ratio()
    return (numerator * (finer // denominator) + more) / (finer * count)


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
