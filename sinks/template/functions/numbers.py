"""Arithmetic. `add` and similar functions work on whole numbers, their forms ending in f on floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from sinks.template.functions.registry import Function
from sinks.template.values import kind_of
from sql.errors import DataError
from sql.types import Value


def _float(value: Value) -> float:
    """A number, a boolean as 0 or 1, or a text that is a number."""
    if isinstance(value, bool | int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"template: a number is needed, not a {kind_of(value)}") from None


def _integer(value: object) -> int:
    """The whole part of a number."""
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
        return int(value)
    number = _float(value)
    if not math.isfinite(number):
        raise DataError(f"template: {number!r} is no whole number")
    return math.trunc(number)


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise DataError("template: division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divided_float(left: float, right: float) -> float:
    if right == 0:
        raise DataError("template: division by zero")
    return left / right


def _round(value: object, decimals: object = 0) -> float:
    number, places = _float(value), 10 ** _integer(decimals)
    return math.copysign(math.floor(abs(number) * places + 0.5) / places, number)


def _over(compute: Callable[[Any, Any], Any], kind: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *values: reduce(compute, map(kind, values))


def _from_octal(value: object) -> int:
    """The number that a text or a number means as octal digits."""
    text = str(_integer(value)) if isinstance(value, int | float) else str(value)
    try:
        return int(text, 8)
    except ValueError:
        raise DataError(f"template: toDecimal: {text[:40]!r} are no octal digits") from None


FUNCTIONS: dict[str, Function] = {
    "int": Function(_integer, 1, 1),
    "int64": Function(_integer, 1, 1),
    "atoi": Function(_integer, 1, 1),
    "toDecimal": Function(_from_octal, 1, 1),
    "float64": Function(lambda value: float(_float(value)), 1, 1),
    "add": Function(lambda *values: sum(map(_integer, values)), 1, None),
    "add1": Function(lambda value: _integer(value) + 1, 1, 1),
    "sub": Function(lambda left, right: _integer(left) - _integer(right), 2, 2),
    "mul": Function(_over(lambda left, right: left * right, _integer), 1, None),
    "div": Function(lambda left, right: _divided(_integer(left), _integer(right)), 2, 2),
    "mod": Function(
        lambda left, right: _integer(left) - _integer(right) * _divided(_integer(left), _integer(right)), 2, 2
    ),
    "biggest": Function(_over(max, _integer), 1, None),
    "max": Function(_over(max, _integer), 1, None),
    "min": Function(_over(min, _integer), 1, None),
    "add1f": Function(lambda value: _float(value) + 1, 1, 1),
    "addf": Function(_over(lambda left, right: left + right, _float), 1, None),
    "subf": Function(_over(lambda left, right: left - right, _float), 2, None),
    "mulf": Function(_over(lambda left, right: left * right, _float), 1, None),
    "divf": Function(_over(_divided_float, _float), 2, None),
    "maxf": Function(_over(max, _float), 1, None),
    "minf": Function(_over(min, _float), 1, None),
    "floor": Function(lambda value: math.floor(_float(value)), 1, 1),
    "ceil": Function(lambda value: math.ceil(_float(value)), 1, 1),
    "round": Function(_round, 1, 2),
    "abs": Function(lambda value: abs(_float(value)), 1, 1),
}
