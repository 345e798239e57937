"""Recorded events: lines of JSON with a time, as `replay` and `explain --timeline` read them.

The time is taken from the named column, else the stream's timestamp, else `at`, `at_ms`, `ts` or `timestamp`; it is
milliseconds since the epoch or ISO text.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from edge.base.errors import UsageError

TIME_COLUMNS = ("at", "at_ms", "ts", "timestamp")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which stream the events belong to, and where their time stands."""
    parser.add_argument("--stream", metavar="NAME", help="stream of the events; needed if the rule reads several")
    parser.add_argument("--time-column", metavar="NAME", help="column with the time at which the event arrived")


def chosen_stream(streams: tuple[str, ...], asked: str | None) -> str:
    """The stream that events go to. Raises UsageError when it is not clear."""
    if asked is None and len(streams) == 1:
        return streams[0]
    if asked is None or asked not in streams:
        raise UsageError(f"choose a stream with --stream: the rule reads {', '.join(streams)}")
    return asked


def read_events(path: str, column: str | None, timestamp: str | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(time in ms, event) of each line. Raises UsageError with the line's number for what is no event."""
    with contextlib.nullcontext(sys.stdin) if path == "-" else Path(path).open(encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = _event(line, f"{path}:{number}")
                if column is None:
                    column = _time_column(row, timestamp, f"{path}:{number}")
                yield instant_ms(row.get(column), f"{path}:{number}: column '{column}'"), row
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: not UTF-8: {error}") from None


def _event(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise UsageError(f"{where}: an event is a JSON object, not a {type(row).__name__}")
    return row


def _time_column(row: dict[str, Any], timestamp: str | None, where: str) -> str:
    column = next((name for name in (timestamp, *TIME_COLUMNS) if name and name in row), None)
    if column is None:
        raise UsageError(f"{where}: no time found; name its column with --time-column")
    return column


def instant_ms(value: Any, where: str) -> int:
    """Milliseconds since the epoch of a number of them or an ISO text; text without a zone is UTC.

    >>> instant_ms("1970-01-01T00:00:01Z", "x"), instant_ms(1500, "x")
    (1000, 1500)
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53:
        return int(value)
    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            at = datetime.fromisoformat(value)
            return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    raise UsageError(f"{where}: {value!r} is no time; expected milliseconds or a text such as 2026-01-01T00:00:00Z")
