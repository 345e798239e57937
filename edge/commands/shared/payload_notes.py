"""Findings from the events of inline tests: keys that are nearly declared columns, values of other types
than declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edge.intake.lessons import fits
from rules.compiled import Compiled
from sql.catalog.streams import Stream
from sql.errors import did_you_mean
from sql.types import describe


def payload_notes(compiled: Compiled) -> list[str]:
    """A sentence for each column and stream, once for all tests."""
    return list(dict.fromkeys(_notes(compiled)))


def _notes(compiled: Compiled) -> Iterator[str]:
    for file in compiled.loaded.files:
        for loaded in file.tests:
            rule_id = loaded.nested_in.id if loaded.nested_in else loaded.test.rule
            rule = compiled.rules.get(rule_id or "")
            streams = rule.plan.streams if rule is not None else ()
            for step in loaded.test.events:
                name = step.stream or (streams[0] if len(streams) == 1 else "")
                stream = compiled.catalog.streams.get(name)
                for row in step.send or ():
                    if stream is not None and stream.columns:
                        yield from _of_event(stream, row)


def _of_event(stream: Stream, row: dict[str, Any]) -> Iterator[str]:
    columns = stream.columns or {}
    for key, value in row.items():
        if key in columns:
            if not fits(columns[key], value):
                yield (
                    f"stream '{stream.name}': column '{key}' is declared {columns[key].value}, "
                    f"and a test sends {describe(value)}"
                )
        elif hint := did_you_mean(key, [column for column in columns if column not in row]):
            yield f"stream '{stream.name}': a test sends the key '{key}', which is no column; {hint}"
