"""The place of an expression in its statement."""

from __future__ import annotations

from sql.record import Record, field
from sql.types import Type


class Place(Record):
    """The place of an expression, which decides what it may contain, and what its names mean."""

    name: str
    aggregates: bool = False
    analytics: bool = True
    prevs: bool = False
    windows: bool = False
    aliases: bool = True
    of_window: bool = False  # a column outside aggregates is that of the window's first event
    at_arrival: bool = False  # variables are read as they were when the event arrived, as in filters of FROM
    preferred: int | None = None  # the source that a name means which several have
    builtins: dict[str, Type] = field(default_factory=dict)
    outside: str | None = None  # the alias being defined: inside its definition the name means the column
