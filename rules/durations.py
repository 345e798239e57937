"""Durations and instants as people write them, `1m30s` or `2026-01-01T00:00:00Z`. Inside, all are
milliseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic.fields import FieldInfo

_UNIT_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|d|h|m|s)")
PATTERN = r"^([0-9]+|([0-9]+(\.[0-9]+)?(ms|d|h|m|s))+)$"
"""The written form, for JSON Schema."""
DURATION_MS_MAX = 100 * 366 * 86_400_000
"""A hundred years; a longer duration is taken for a typing error."""
_NUMBERS = {"ms": "milliseconds as a number, or ", "s": "seconds as a number, or ", None: ""}


def parse_duration(value: object, number: str | None = "ms") -> int:
    """Milliseconds of a duration: text with units `d h m s ms`, in any order, decimals allowed; or a number
    of the unit `number`, as text or not. Where that is None a number needs its unit, 0 excepted.

    Raises ValueError for anything else, for less than a millisecond's fraction, and for negative durations.

    >>> parse_duration("1m30s"), parse_duration("0.5s"), parse_duration(250), parse_duration(5, "s")
    (90000, 500, 250, 5000)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a duration: {_NUMBERS[number]}text such as '500ms', '5s' or '1m30s'")
    text = str(value).strip()
    if _is_number(text):
        if number is None and float(text):
            raise ValueError(
                f"must be a duration with a unit (d, h, m, s or ms) such as '{text}s', not '{text}'"
            )
        text += number or "ms"
    parts = _PART.findall(text) if len(text) <= 60 else []
    if not parts or "".join(count + unit for count, unit in parts) != text:
        raise ValueError(
            "must be a duration of d, h, m, s and ms such as '500ms', '5s' or '1m30s', "
            f"not '{str(value)[:40]}'"
        )
    total = sum(float(count) * _UNIT_MS[unit] for count, unit in parts)
    if total > DURATION_MS_MAX:
        raise ValueError(f"must be a duration of at most a hundred years, not '{str(value)[:40]}'")
    if total != round(total):
        raise ValueError(f"must be a whole number of milliseconds, not '{str(value)[:40]}'")
    return round(total)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", text) is not None


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


def _schema(number: str, value: str) -> WithJsonSchema:
    """`number`: the unit of a number alone; `value`: the unit of the value inside, and of its default."""
    forms = [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": PATTERN}]
    return WithJsonSchema({"anyOf": forms, "format": "duration", "x-number": number, "x-value": value})


def facts_of(field: FieldInfo) -> dict[str, Any] | None:
    """The schema of a field that is a duration; None for other fields."""
    nested = (item for part in get_args(field.annotation) for item in get_args(part))
    schemas = (item.json_schema for item in (*field.metadata, *nested) if isinstance(item, WithJsonSchema))
    return next((schema for schema in schemas if schema and schema.get("format") == "duration"), None)


def written_default(schema: Mapping[str, Any], default: int) -> str:
    """The default of a duration as people write it."""
    return format_duration(default * _UNIT_MS[schema["x-value"]])


def parse_seconds(value: object) -> int:
    """Whole seconds of a duration, whose number alone is seconds. Raises ValueError."""
    duration_ms = parse_duration(value, "s")
    if duration_ms % 1_000:
        raise ValueError(f"must be whole seconds, not '{value}'")
    return duration_ms // 1_000


DurationMs = Annotated[int, BeforeValidator(parse_duration), Field(strict=True), _schema("ms", "ms")]
"""Milliseconds; in YAML a number of them or text with units."""

Seconds = Annotated[int, BeforeValidator(parse_seconds), Field(strict=True), _schema("s", "s")]
"""Whole seconds; in YAML a number of them or text with units, for keys that eKuiper counts in seconds."""

SecondsMs = Annotated[
    int, BeforeValidator(partial(parse_duration, number="s")), Field(strict=True), _schema("s", "ms")
]
"""Milliseconds; in YAML a number of seconds or text with units."""
