"""The contents of a stream's messages, decoded whole: topics, columns with their types, time stamps,
bad payloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edge.intake.codecs import Decoder

NAMES_MAX = 200
"""The limit of distinct columns, and of topics; further ones are not counted."""

REASONS_MAX = 20
"""The limit of distinct reasons for bad payloads."""


@dataclass(slots=True)
class ColumnCensus:
    """A column of the payloads: in how many rows it stood, and the types of its values."""

    count: int = 0
    types: Counter[str] = field(default_factory=Counter)
    example: Any = None


@dataclass(slots=True)
class Census:
    """Counts one stream. `timestamp`: the column of its event time."""

    stream: str
    topic: str
    decoder: Decoder | None
    timestamp: str | None = None
    messages: int = 0
    rows: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    columns: dict[str, ColumnCensus] = field(default_factory=dict)
    first_ms: int | None = None
    last_ms: int | None = None
    ahead_ms: list[int] = field(default_factory=list)
    """The lead of the time stamps over the arrival: the least and the most."""
    bad_times: int = 0
    """Rows whose time stamp is missing, or no whole number."""

    def message(self, topic: str, payload: bytes, at_ms: int) -> list[dict[str, Any]]:
        """Count a message; its rows."""
        self.messages += 1
        self._seen(at_ms)
        _count(self.topics, topic, NAMES_MAX)
        if self.decoder is None:
            return []
        rows, _ = self.decoder.decode_many([payload])
        for row in rows:
            self.row(row, at_ms)
        return rows

    def rejected(self, reason: str) -> None:
        """The gateway refused a message of the stream."""
        _count(self.bad, reason, REASONS_MAX)

    def row(self, row: Mapping[str, Any], at_ms: int) -> None:
        """Count a row."""
        self.rows += 1
        self._seen(at_ms)
        for name, value in row.items():
            column = self.columns.get(name)
            if column is None:
                if len(self.columns) >= NAMES_MAX:
                    continue
                column = self.columns[name] = ColumnCensus()
            column.count += 1
            column.types[kind_of(value)] += 1
            column.example = value
        if self.timestamp is not None:
            self._time(row.get(self.timestamp), at_ms)

    def _time(self, value: object, at_ms: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            self.bad_times += 1
            return
        ahead = value - at_ms
        known = self.ahead_ms
        self.ahead_ms = [min(known[0], ahead), max(known[1], ahead)] if known else [ahead, ahead]

    def _seen(self, at_ms: int) -> None:
        if self.first_ms is None:
            self.first_ms = at_ms
        self.last_ms = at_ms


def _count(counter: Counter[str], name: str, most: int) -> None:
    if name in counter or len(counter) < most:
        counter[name] += 1


def kind_of(value: object) -> str:
    """The type of a value in the words of stream declarations.

    >>> kind_of(1), kind_of("x"), kind_of(None), kind_of([1])
    ('bigint', 'string', 'NULL', 'array')
    """
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "NULL" if value is None else type(value).__name__


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "bigint"),
    (float, "float"),
    (str, "string"),
    (dict, "struct"),
    (list, "array"),
)
