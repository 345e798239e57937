"""Rows as delimited lines (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from sinks.formats.json_text import json_bytes
from sql.errors import DataError
from sql.types import as_text


def delimited(rows: Sequence[Any], first: Iterable[str], delimiter: str) -> tuple[bytes, bytes]:
    """The line of the column names, and a line for each row, each with its end. The columns `first` come
    first, then the others in order of appearance. Raises `DataError` for what is no row."""
    names: dict[str, None] = dict.fromkeys(first)
    for row in rows:
        if not isinstance(row, dict):
            raise DataError(f"format delimited needs rows of columns, not {type(row).__name__}")
        names.update(dict.fromkeys(row))
    header = _lines([list(names)], delimiter)
    return header, _lines([[_cell(row.get(name)) for name in names] for row in rows], delimiter)


def _lines(lines: list[list[str]], delimiter: str) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerows(lines)
    return buffer.getvalue().encode()


def _cell(value: object) -> str:
    """A value as a cell of a delimited line; NULL is empty, and a number has no exponent."""
    if value is None:
        return ""
    if isinstance(value, float) and isfinite(value):
        return as_text(value)
    return value if isinstance(value, str) else json_bytes(value).decode()
