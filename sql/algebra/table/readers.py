"""Functions that read columns of an event, or make a key of them. They are compiled, for an index calls one
with each row that comes or goes.

    lambda e: e.row.get('temp')
    lambda e: (v if (v := e.row.get('dev')).__class__ is str else key_of(v))
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sql.algebra.event import Event
from sql.algebra.table.lookup import Name
from sql.codegen.source import Generated, SourceWriter
from sql.rows import Shape, column_text, field_name
from sql.types import key_of

Values = Callable[[Event], Any]
"""The function that reads one of an index's values from an event."""


@lru_cache(maxsize=4096)
def column_reader(column: Name, shape: Shape = "dict") -> Values:
    """The function that reads a column of an event; of a joined one (source, column)."""
    return _function(_column(column, shape))


@lru_cache(maxsize=4096)
def key_reader(columns: tuple[Name, ...], shape: Shape = "dict") -> Callable[[Event], Hashable]:
    """The function that makes a hashable key of columns of an event: of one its value, of several a tuple."""
    return _function(_key([_column(column, shape) for column in columns]))


@lru_cache(maxsize=4096)
def key_of_values(columns: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Hashable]:
    """The function that makes the same key of the values of a row."""
    return _function(_key([f"e.get({column!r})" for column in columns]))


def _column(column: Name, shape: Shape) -> str:
    if isinstance(column, tuple):
        source, name = column
        return f"(None if (r := e.row[{source}]) is None else {column_text('r', name, shape)})"
    return f"e.{field_name(column)}" if shape == "kept" else column_text("e.row", column, shape)


def _key(columns: Sequence[str]) -> str:
    keys = [f"(v if (v := {text}).__class__ is str else key_of(v))" for text in columns]
    return keys[0] if len(keys) == 1 else f"({', '.join(keys)})"


def _function(text: str) -> Callable[[Any], Any]:
    source = SourceWriter()
    source.line(f"read = lambda e: {text}")
    found: Callable[[Any], Any] = Generated(source, {"key_of": key_of})["read"]
    return found
