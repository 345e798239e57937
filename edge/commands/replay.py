"""`penstock replay RULE_FILE DATA.jsonl`: recorded events through a rule, as fast as it can.

Each line of the data is one event, a JSON object. Its time is taken from the time column (`--time-column`, else the
stream's timestamp, else `at`, `at_ms`, `ts` or `timestamp`), in milliseconds or as ISO text. Time moves with the
data: timers fire between the events, windows still open at the end are closed. The result is one JSON line per output
row set:

    {"at": 1767225610000, "rows": [{"device": "pump-07", "avg": 61.2}]}
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from edge import rule_arguments
from edge.errors import UsageError

TIME_COLUMNS = ("at", "at_ms", "ts", "timestamp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_rule(parser)
    parser.add_argument(
        "data", metavar="DATA.jsonl", help="recorded events, one JSON object per line; - is standard input"
    )
    parser.add_argument(
        "--stream", metavar="NAME", help="the stream the events belong to; needed if the rule reads several"
    )
    parser.add_argument("--time-column", metavar="NAME", help="column with the time at which the event arrived")


def run(arguments: argparse.Namespace) -> int:
    from sql import Engine

    compiled, rule = rule_arguments.chosen_rule(arguments)
    stream = chosen_stream(rule.plan.streams, arguments.stream)
    events = read_events(arguments.data, arguments.time_column, rule.plan.timestamp)
    engine = Engine(compiled.catalog)
    count = 0
    for emission in replay(engine, rule.id, rule.plan, stream, events):
        count += emission.kind == "error"
        print(json.dumps(as_line(emission), ensure_ascii=False, default=str))
    return 1 if count else 0


def chosen_stream(streams: tuple[str, ...], asked: str | None) -> str:
    """The stream that events go to. Raises UsageError when it is not clear."""
    if asked is None and len(streams) == 1:
        return streams[0]
    if asked is None or asked not in streams:
        raise UsageError(f"choose a stream with --stream: the rule reads {', '.join(streams)}")
    return asked


def replay(
    engine: Any, name: str, plan: Any, stream: str, events: Iterable[tuple[int, dict[str, Any]]]
) -> Iterator[Any]:
    """Drive a rule with (time, event) pairs; timers fire in between, as they would have."""
    now_ms: int | None = None
    for at_ms, row in events:
        if now_ms is None:
            now_ms = at_ms
            engine.deploy(name, plan, now_ms)
        now_ms = max(now_ms, at_ms)  # an event that was recorded late arrives now, whatever time it bears
        yield from advance(engine, now_ms)
        yield from engine.push(stream, [row], now_ms)
    if now_ms is not None:
        yield from engine.flush(now_ms)


def advance(engine: Any, to_ms: int) -> Iterator[Any]:
    """Fire every timer due until `to_ms`, each at its own instant."""
    while (deadline_ms := engine.next_deadline_ms()) is not None and deadline_ms <= to_ms:
        yield from engine.advance(deadline_ms)
        if engine.next_deadline_ms() == deadline_ms:
            break
    yield from engine.advance(to_ms)


def read_events(path: str, time_column: str | None, timestamp: str | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(time in ms, event) of each line. Raises UsageError with the line's number for what is no event."""
    file = sys.stdin if path == "-" else Path(path).open(encoding="utf-8")  # noqa: SIM115 - closed below
    column = time_column
    try:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UsageError(f"{path}:{number}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise UsageError(f"{path}:{number}: an event is a JSON object, not a {type(row).__name__}")
            if column is None:
                column = next((name for name in (timestamp, *TIME_COLUMNS) if name and name in row), None)
                if column is None:
                    raise UsageError(f"{path}:{number}: no time found; name its column with --time-column")
            yield instant_ms(row.get(column), f"{path}:{number}: column '{column}'"), row
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8: {error}") from None
    finally:
        file.close()


def instant_ms(value: Any, where: str) -> int:
    """Milliseconds since the epoch of a number of them or an ISO text.

    >>> instant_ms("1970-01-01T00:00:01Z", "x"), instant_ms(1500, "x")
    (1000, 1500)
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return int(value)
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    raise UsageError(f"{where}: {value!r} is no time; expected milliseconds or a text such as 2026-01-01T00:00:00Z")


def as_line(emission: Any) -> dict[str, Any]:
    """An emission as it is printed: NULL columns are left out, as sinks do."""
    line: dict[str, Any] = {"at": emission.at_ms}
    if emission.kind != "rows":
        line["kind"] = emission.kind
    if emission.error:
        line["error"] = emission.error
    line["rows"] = [visible(row) for row in emission.inserted]
    if emission.removed:
        line["removed"] = [visible(row) for row in emission.removed]
    return line


def visible(row: dict[str, Any]) -> dict[str, Any]:
    """A row without NULL columns and metadata."""
    return {name: value for name, value in row.items() if value is not None and name != "$meta"}
