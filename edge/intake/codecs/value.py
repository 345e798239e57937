"""Payloads that are one bare value, such as `23.5` or `ON`.

The value goes into the one column that the stream declares, or into `value`. A declared type decides what it
is; without one a number is a number, `true` and `false` are booleans, and everything else is text.
"""

from __future__ import annotations

import json
import math
from typing import Any

from edge.intake.codecs.base import BadPayload, CodecOptions, RowByRow

COLUMN = "value"
"""The column of a stream that declares none."""

SHOWN = 40
"""Characters of a payload that an error shows."""

_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


class ValueDecoder(RowByRow):
    """One row of one column per payload; white space around the value is left out."""

    def __init__(self, columns: frozenset[str] | None, options: CodecOptions) -> None:
        super().__init__(columns, options)
        self.column = options.only_column("value", COLUMN)
        self._type = options.types.get(self.column, "any")

    def values(self, payload: bytes) -> dict[str, Any]:
        try:
            text = payload.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise BadPayload(f"not UTF-8: {error.reason} at byte {error.start}") from error
        if not text:
            raise BadPayload("the payload is empty")
        value = value_of(text, self._type)
        if value is None:
            raise BadPayload(f"column '{self.column}' is declared {self._type}, got {text[:SHOWN]!r}")
        return {self.column: value}


def value_of(text: str, declared: str) -> Any:
    """The value of a text as a declared type; None if the text is no such value.

    >>> value_of("23.5", "any"), value_of("ON", "any"), value_of("ON", "boolean"), value_of("x", "float")
    (23.5, 'ON', True, None)
    """
    if declared == "string":
        return text
    if declared == "boolean":
        return _BOOLEANS.get(text.lower())
    number = _number(text)
    if declared == "bigint":
        return (
            int(number) if isinstance(number, int) or (number is not None and number.is_integer()) else None
        )
    if declared in ("float", "number"):
        return number
    if number is not None:
        return number
    return {"true": True, "false": False}.get(text, text)


def _number(text: str) -> int | float | None:
    try:
        value = json.loads(text.removeprefix("+"))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value
