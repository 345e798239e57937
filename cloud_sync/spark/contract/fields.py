"""Fields of uploaded JSON, checked: text and numbers within the ranges of the contract."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cloud_sync.schemas import INT64

NAME_CHARS_MAX = 512
LAST_MS = 253_402_300_799_999
"""The end of 31 December 9999, UTC."""


class Bad(Exception):
    """The file does not count; the text is the reason."""


def check_number(value: object, what: str) -> None:
    """A finite number of at most 64 bits. Raises Bad."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Bad(f"{what} is no number")
    if isinstance(value, float) and not math.isfinite(value):
        raise Bad(f"{what} is beyond the range of a float")
    if isinstance(value, int) and value not in INT64:
        raise Bad(f"{what} is beyond 64 bits")


def whole(fields: Mapping[str, Any], name: str, least: int, most: int = INT64[-1]) -> int:
    """A whole number within its range. Raises Bad."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Bad(f"'{name}' is no whole number from {least} to {most}")
    return value


def text(fields: Mapping[str, Any], name: str) -> str:
    """A name: text of 1 to `NAME_CHARS_MAX` characters. Raises Bad."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise Bad(f"'{name}' is no text")
    check_text(value, f"'{name}'", NAME_CHARS_MAX, empty=False)
    return value


def check_text(value: str, what: str, most: int, *, empty: bool = True) -> None:
    """Text within its length that can be encoded. Raises Bad."""
    if len(value) > most or not (value or empty):
        raise Bad(f"{what} has {len(value)} characters; from {int(not empty)} to {most} are allowed")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Bad(f"{what} holds half a character") from None
