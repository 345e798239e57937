"""The data of a picture: events with their stays, samples and posts; and the short text of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sql.binder.scope import META

Row = dict[str, Any]


@dataclass(slots=True)
class Stay:
    """A time inside the window, [entry, leave); `leave_ms` None: still inside."""

    entry_ms: int
    leave_ms: int | None = None


@dataclass(slots=True)
class Line:
    """One event (of one source of FROM): its arrival, its stays, and a remark about its further course."""

    label: str
    arrival_ms: int
    stays: list[Stay] = field(default_factory=list)
    remark: str = ""
    reached: bool = False
    waiting: bool = False


@dataclass(slots=True)
class Sample:
    """One sample of a sampled window at [start, end); its key, and its rows."""

    start_ms: int
    end_ms: int
    at_ms: int
    key: str
    rows: list[Row]


@dataclass(slots=True)
class Post:
    """Rows emitted at one instant."""

    at_ms: int
    inserted: list[Row]
    removed: Sequence[Row]


@dataclass(slots=True)
class Timeline:
    """The data of a picture.

    window     the composition of the windows, in words
    removes    the emitted rows are those of the remove stream (select rstream)
    brackets   the brackets of a sample's bounds: square if events exactly at its start or end belong to it
    points_ms  instants at which the windows changed or could have
    left_out   events beyond the limit
    """

    sql: str
    window: str
    brackets: tuple[str, str]
    start_ms: int
    end_ms: int = 0
    lines: list[Line] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    points_ms: list[int] = field(default_factory=list)
    left_out: int = 0
    has_window: bool = True
    removes: bool = False

    def bounds(self, sample: Sample, label: Callable[[int], str]) -> str:
        """The span of a sample, as an interval after its key: `dev=a [2, 6)`."""
        opens, closes = self.brackets
        interval = f"{opens}{label(sample.start_ms)}, {label(sample.end_ms)}{closes}"
        return f"{sample.key} {interval}" if sample.key else interval


def value_text(value: object) -> str:
    """The text of a value in a picture.

    >>> value_text(2.0), value_text(0.1 + 0.2), value_text("a"), value_text(None)
    ('2', '0.3', 'a', 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "{" + label_of(value, None) + "}"
    return str(value)


def label_of(row: Any, columns: list[str] | None) -> str:
    """A row in few words: its only value, or name=value pairs of the chosen columns.

    >>> label_of({"dev": "a", "n": 3, "ts": 1}, ["n", "dev"])
    'dev=a n=3'
    """
    chosen = {
        name: value for name, value in row.items() if name != META and (columns is None or name in columns)
    }
    if not chosen:
        chosen = {name: value for name, value in row.items() if name != META}
    if len(chosen) == 1:
        return value_text(next(iter(chosen.values())))
    return " ".join(f"{name}={value_text(value)}" for name, value in chosen.items())
