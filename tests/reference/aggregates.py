"""Aggregates over the values a window holds, oldest first, computed anew each time
(epl.md 6.1, ekuiper.md 6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sql.types import key_of, order_key

Values = list[Any]


def present(values: Values) -> Values:
    """The values that are not NULL."""
    return [value for value in values if value is not None]


def distinct(values: Values) -> Values:
    """The first of each value, in order of arrival."""
    firsts: dict[Any, Any] = {}
    for value in values:
        firsts.setdefault(key_of(value), value)
    return list(firsts.values())


def total(values: Values) -> int | float | None:
    """An exact sum: integers as integers; infinities and NaN win over the finite part."""
    numbers = present(values)
    if not numbers:
        return None
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers)
    odd = [number for number in numbers if not math.isfinite(number)]
    return sum(odd) if odd else rounded(sum(map(Fraction, numbers), Fraction()))


def rounded(exact: Fraction) -> float:
    """The nearest float; beyond the largest an infinity."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(values: Values) -> float | None:
    """The mean as a float."""
    numbers = present(values)
    if not numbers:
        return None
    if all(isinstance(number, int) or math.isfinite(number) for number in numbers):
        return float(sum(map(Fraction, numbers)) / len(numbers))
    return float(total(numbers) or 0) / len(numbers)


def variance(values: Values, sample: bool) -> float | None:
    """Mean squared distance from the mean, by n - 1 for a sample; NULL where that is undefined."""
    numbers = [Fraction(number) for number in present(values)]
    divisor = len(numbers) - sample
    if divisor < 1:
        return None
    middle = sum(numbers) / len(numbers)
    return float(sum((number - middle) ** 2 for number in numbers) / divisor)


def root(value: float | None) -> float | None:
    """The square root; NULL of NULL."""
    return None if value is None else math.sqrt(value)


def median(values: Values) -> float | None:
    """The middle value, or the mean of the two middle ones; NaN is left out."""
    numbers = sorted(value for value in present(values) if value == value)
    if not numbers:
        return None
    half = len(numbers) // 2
    return float(numbers[half]) if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2


def average_deviation(values: Values) -> float | None:
    """The mean absolute distance from the mean."""
    numbers = [Fraction(number) for number in present(values)]
    if not numbers:
        return None
    middle = sum(numbers) / len(numbers)
    return float(sum(max(number - middle, middle - number) for number in numbers) / len(numbers))


def at(values: Values, index: int) -> Any:
    """The value at an index from the start, negative from the end; NULL out of range."""
    return values[index] if -len(values) <= index < len(values) else None


def extreme(pick: Callable[..., Any], values: Values) -> Any:
    """min or max of what is not NULL."""
    return pick(present(values), key=order_key, default=None)


def counted(values: Values) -> int:
    """How many values are not NULL (TRUE stands for `count(*)`)."""
    return len(present(values))


AGGREGATES: dict[str, Callable[..., Any]] = {
    "count": counted,
    "sum": total,
    "avg": mean,
    "min": lambda values: extreme(min, values),
    "max": lambda values: extreme(max, values),
    "stddev": lambda values: root(variance(values, sample=True)),
    "stddevs": lambda values: root(variance(values, sample=True)),
    "stddev_pop": lambda values: root(variance(values, sample=False)),
    "vars": lambda values: variance(values, sample=True),
    "var_pop": lambda values: variance(values, sample=False),
    "median": median,
    "avedev": average_deviation,
    "first": lambda values, index=0: at(values, index),
    "last": lambda values, index=0: at(values, -1 - index),
    "nth": lambda values, index: at(present(values), -1 - index),
    "firstever": lambda values: at(present(values), 0),
    "lastever": lambda values: at(present(values), -1),
    "countever": counted,
    "minever": lambda values: extreme(min, values),
    "maxever": lambda values: extreme(max, values),
    "collect": lambda values: values or None,
    "lot_sum": lambda values: total([value for value in present(values) if value == value]) or 0,
    "lot_count": lambda values: len(
        [value for value in present(values) if value is not False and value == value]
    ),
    "lot_nth": lambda values, index, default=math.nan: (
        values[index] if -len(values) <= index < len(values) else default
    ),
}
"""Each aggregate by its name in the registry, over the values of a group and the constant parameters."""
