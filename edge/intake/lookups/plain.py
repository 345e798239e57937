"""Values as databases give them, as JSON values: what the journal records is what the rules see."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of JSON values.

    >>> plain_row({"n": Decimal("3"), "x": Decimal("2.5"), "d": date(2026, 1, 2), "b": b"ab"})
    {'n': 3, 'x': 2.5, 'd': '2026-01-02', 'b': 'YWI='}
    """
    return {str(name): plain(value) for name, value in row.items()}


def plain(value: object) -> Any:
    """A value: times as ISO texts, exact numbers as numbers, bytes in base64, anything else as its text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Mapping):
        return plain_row(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)
