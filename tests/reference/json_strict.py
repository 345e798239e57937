"""The twin of the JSON codec: the parser of the standard library, held to the same
policy; by itself it is lax."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from edge.intake.codecs.base import BadPayload, Row
from edge.intake.codecs.json_codec import JsonParser
from edge.intake.codecs.rows import attributes, row_class

INTEGER_DIGITS_MAX = 4_300
"""Longer integers are refused: converting them takes quadratic time."""

# One match per escape, so that an escaped backslash is never taken for the start of another escape.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def parse_strictly(payload: bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` (also as its subclasses) or `RecursionError`."""
    text = payload.decode("utf-8")
    if text.startswith("\ufeff"):
        raise BadPayload("JSON is malformed: it begins with a byte order mark")
    if "\\u" in text and any(match["lone"] for match in _ESCAPE.finditer(text)):
        raise BadPayload("JSON is malformed: lone surrogate in a string")
    return _PARSER.decode(text)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadPayload("Number out of range")
    return value


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > INTEGER_DIGITS_MAX:
        raise BadPayload("Integer value out of range")
    return int(text)


def _constant(text: str) -> Any:
    raise BadPayload(f"JSON is malformed: {text} is no JSON value")


_PARSER = json.JSONDecoder(parse_float=_finite, parse_int=_integer, parse_constant=_constant)


def standard_parser(columns: frozenset[str] | None) -> JsonParser:
    """The strict use of the standard library; it cannot skip columns."""
    cls, names = row_class(columns or ()), attributes(columns or ())

    def row(value: Any) -> Row:
        if not isinstance(value, dict):
            raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
        if columns is None:
            return value
        return cls(**{name: value.get(column) for column, name in names.items()})

    def one(payload: bytes) -> Row:
        return row(parse_strictly(payload))

    def many(payload: bytes) -> list[Row]:
        return [row(value) for value in parse_strictly(payload)]

    return JsonParser(one, many, (ValueError, RecursionError), skips_columns=False)
