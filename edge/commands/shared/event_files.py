"""The lines of a file of events: JSON objects, or CSV with a header. Any other line is
refused with its line and column."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from edge.base.errors import UsageError
from sql.types import Type

Columns = Mapping[str, Type]
"""The declared types of columns, by which the texts of a CSV file become values."""

_NOT_UTF_8 = re.compile("[\udc80-\udcff]")


def events_of(path: str, columns: Columns | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and event of each line of a file."""
    return csv_rows(path, columns or {}) if is_csv(path) else json_lines(path)


def is_csv(path: str) -> bool:
    """True for the name of a CSV file."""
    return path.lower().endswith(".csv")


def json_lines(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and object of each line; `-` is standard input."""
    with contextlib.nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}:{number}"
                yield where, event_of(line, where)


def event_of(line: bytes, where: str) -> dict[str, Any]:
    """The object of a line. Raises UsageError if it is not a JSON object."""
    try:
        row = json.loads(line.rstrip())
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}:{error.start + 1}: {_not_utf_8(line[error.start])}") from None
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise UsageError(f"{where}:{error.pos + 1}: not JSON: {what}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise UsageError(f"{where}: an event is a JSON object, not a {type(row).__name__}")
    return row


def csv_rows(path: str, columns: Columns) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and event of each row of a CSV file with a header."""
    with Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(_checked(file, path))
        try:
            header = next(reader, [])
            if twice := {name for name in header if header.count(name) > 1}:
                raise UsageError(f"{path}:1: the header has '{min(twice)}' twice; rename one of the columns")
            for values in filter(None, reader):
                where = f"{path}:{reader.line_num}"
                if len(values) != len(header):
                    hint = "quote values that hold commas"
                    raise UsageError(f"{where}: {len(values)} values for {len(header)} columns; {hint}")
                named = zip(header, values, strict=True)
                yield where, {name: value_of(text, columns.get(name)) for name, text in named if name}
        except csv.Error as error:
            raise UsageError(f"{path}:{reader.line_num}: not CSV: {error}") from None


def _checked(lines: Iterable[str], path: str) -> Iterator[str]:
    """Lines in which bytes that are not UTF-8 are surrogates."""
    for number, line in enumerate(lines, 1):
        if bad := _NOT_UTF_8.search(line):
            raise UsageError(f"{path}:{number}:{bad.start() + 1}: {_not_utf_8(ord(bad[0]) & 0xFF)}")
        yield line


def _not_utf_8(byte: int) -> str:
    return f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"


def value_of(text: str, declared: Type | None) -> Any:
    """A value of a CSV file: as declared, else a number where it reads as one; empty is NULL.

    >>> value_of("81.5", None), value_of("7", None), value_of("7", Type.STRING), value_of("", None)
    (81.5, 7, '7', None)
    """
    if text == "":
        return None
    if declared is Type.STRING:
        return text
    if declared is Type.BOOLEAN or (declared is None and text in ("true", "false")):
        return text.strip().lower() in ("true", "1")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
