"""Durations and instants as people write them, `1m30s` or `2026-01-01T00:00:00Z`. Inside, all are
milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

_UNIT_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|d|h|m|s)")
PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|d|h|m|s))+$"
"""The written form, for JSON Schema."""
DURATION_MS_MAX = 100 * 366 * 86_400_000
"""A hundred years; a longer duration is taken for a typing error."""


def parse_duration(value: int | str) -> int:
    """Milliseconds of a duration: a number of them, or text with units `d h m s ms`, in any
    order, decimals allowed.

    Raises ValueError for anything else, for less than a millisecond's fraction, and for negative durations.

    >>> parse_duration("1m30s"), parse_duration("0.5s"), parse_duration(250), parse_duration("0")
    (90000, 500, 250, 0)
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(
            "must be a duration: milliseconds as a number, or text such as '500ms', '5s' or '1m30s'"
        )
    if isinstance(value, str):
        value = _parse_text(value.strip())
    if not 0 <= value <= DURATION_MS_MAX:
        raise ValueError(f"must be a duration between 0 and a hundred years, not {value} ms")
    return value


def _parse_text(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 18:
        return int(text)
    parts = _PART.findall(text) if len(text) <= 60 else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(
            f"must be a duration of d, h, m, s and ms such as '500ms', '5s' or '1m30s', not '{text[:40]}'"
        )
    total = sum(float(number) * _UNIT_MS[unit] for number, unit in parts)
    if total > DURATION_MS_MAX or total != round(total):
        raise ValueError(f"must be a whole number of milliseconds below a hundred years, not '{text}'")
    return round(total)


def parse_instant(value: int | str) -> int:
    """Milliseconds since the epoch of a number of them or of an ISO 8601 time; without a zone it is UTC.

    >>> parse_instant("1970-01-01T00:00:01.5Z"), parse_instant("1970-01-02")
    (1500, 86400000)
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be an instant: milliseconds since 1970 as a number, or '2026-01-01T00:00:00Z'")
    if isinstance(value, int):
        return value
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise ValueError(f"must be an instant such as '2026-01-01T00:00:00Z', not '{value[:40]}'") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // _MILLISECOND


def looks_like_instant(value: object) -> bool:
    """True if a text is meant as a date, not as a duration: it begins with a year."""
    return isinstance(value, str) and re.match(r"\s*\d{4}-\d\d", value) is not None


def format_duration(duration_ms: int) -> str:
    """The shortest written form.

    >>> format_duration(90_500), format_duration(0), format_duration(60_000)
    ('1m30s500ms', '0s', '1m')
    """
    parts, rest = [], abs(duration_ms)
    for unit, size_ms in _UNIT_MS.items():
        count, rest = divmod(rest, size_ms)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if duration_ms < 0 else "") + ("".join(parts) or "0s")


_MILLISECOND = datetime.fromtimestamp(0.001, UTC) - datetime.fromtimestamp(0, UTC)

DurationMs = Annotated[
    int,
    BeforeValidator(parse_duration),
    Field(strict=True),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": PATTERN}]}),
]
"""Milliseconds; in YAML a number of them or text with units."""
