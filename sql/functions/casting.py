"""Conversion between types: `cast(x, "type")` and `CAST(x AS type)`. An impossible conversion is an error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from sql.errors import DataError, did_you_mean
from sql.functions.definition import Context
from sql.functions.instants import instant_ms
from sql.functions.registry import Parameter, function
from sql.types import Type, as_text, describe, type_named, type_names, type_of


def cast_value(value: object, target: Type, zone: tzinfo) -> Any:
    """The value as `target`. NULL stays NULL.

    bigint   a float is cut towards zero, text must be a whole number, TRUE is 1
    float    text must be a finite number; `number` leaves an integer an integer
    boolean  0 is FALSE, any other number TRUE, text one of true false t f 1 0 (any case)
    string   numbers as written in JSON, booleans as true and false, bytes as UTF-8
    datetime epoch milliseconds from a number or a text in a valid format
    bytea    from base64 text
    """
    if value is None or target in (Type.ANY, type_of(value)):
        return value
    convert = _CONVERSIONS.get(target)
    if target is Type.DATETIME and value.__class__ in (int, float, str):
        return instant_ms(value, zone)
    if convert is None:
        raise DataError(f"cannot cast {describe(value)} to {target.value}")
    return convert(value)


def _to_integer(value: object) -> int:
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return math.trunc(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,4000}\s*", value):
        return int(value)
    raise DataError(f"cannot cast {describe(value)} to bigint")


def _to_float(value: object) -> float:
    if isinstance(value, (bool, int)):
        return float(value)
    if isinstance(value, str) and re.fullmatch(r"[\s0-9+.eE-]+", value):
        try:
            number = float(value)
        except ValueError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise DataError(f"cannot cast {describe(value)} to float")


def _to_number(value: object) -> float:
    if isinstance(value, float):
        return value
    try:
        return _to_integer(value)
    except DataError:
        return _to_float(value)


_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _to_boolean(value: object) -> bool:
    if isinstance(value, (int, float)):
        return value != 0
    if isinstance(value, str) and value.strip().lower() in _BOOLEANS:
        return _BOOLEANS[value.strip().lower()]
    raise DataError(f"cannot cast {describe(value)} to boolean")


def _to_bytes(value: object) -> bytes:
    if isinstance(value, str):
        return from_base64(value)
    raise DataError(f"cannot cast {describe(value)} to bytea")


def from_base64(text: str) -> bytes:
    """The bytes of a base64 text; raises `DataError` if it is not base64."""
    from base64 import b64decode

    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise DataError(f"{describe(text)} is not base64: {error}") from None


_CONVERSIONS: dict[Type, Callable[[Any], Any]] = {
    Type.INTEGER: _to_integer,
    Type.FLOAT: _to_float,
    Type.NUMBER: _to_number,
    Type.BOOLEAN: _to_boolean,
    Type.STRING: as_text,
    Type.BYTES: _to_bytes,
}


def known_type(name: str) -> Type:
    """The type of this name; raises `DataError` for an unknown one."""
    found = type_named(name)
    if found is None:
        hint = (
            did_you_mean(name, type_names()) or "it takes bigint, float, string, boolean, datetime or bytea"
        )
        raise DataError(f"cast() knows no type '{name}'; {hint}")
    if found is not Type.DATETIME and found not in _CONVERSIONS:
        raise DataError(f"nothing can be cast to {found.value}; parse_json(x) reads a text")
    return found


@function(
    "cast",
    category="transform",
    context=True,
    parameters=(Parameter("x"), Parameter("type", Type.STRING, constant=True, check=known_type)),
    examples=(
        ("cast('12', 'bigint')", 12),
        ("cast(1.9, 'bigint')", 1),
        ("cast(20, 'string')", "20"),
        ("cast('1970-01-01 00:00:01', 'datetime')", 1000),
        ("cast('true', 'boolean')", True),
    ),
)
def cast(context: Context, value: object, type_name: str) -> Any:
    """The value as another type: bigint, float, string, boolean, datetime, bytea, or EPL's long, int, double.

    A float becomes a bigint by cutting its decimals; a datetime is epoch milliseconds; bytea is made from
    base64 text. An impossible conversion is an error.
    """
    return cast_value(value, known_type(type_name), context.zone)
