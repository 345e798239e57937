"""The standard library's JSON parser, held to the policy of `json_codec`: by itself it accepts too much."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from edge.intake.codecs.base import BadPayload

INTEGER_DIGITS_MAX = 4_300
"""Longer integers are refused: converting them takes quadratic time."""

# One match per escape, so that an escaped backslash is never taken for the start of another escape.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
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
