"""Row shapes: how generated code reads a column of an event.

A row is a dict (column -> value) or a struct with one attribute per column; a row of a relation is kept as an
event that has the columns itself. Queries are compiled for one shape; what is absent reads as NULL in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from keyword import iskeyword
from typing import Any, Literal

Shape = Literal["dict", "struct", "kept"]

MakeRow = Callable[[dict[str, Any]], Any]
"""Makes a row of the columns that a snapshot holds."""


def as_it_is(row: dict[str, Any]) -> dict[str, Any]:
    """Makes a row that is a dict."""
    return row


def attribute_name(column: str) -> str:
    """The struct attribute that holds a column: the column's own name where Python allows it.

    >>> attribute_name("temp"), attribute_name("my col"), attribute_name("class"), attribute_name("_x")
    ('temp', 'c_6d7920636f6c', 'c_636c617373', 'c_5f78')
    """
    if (
        column.isidentifier()
        and column.isascii()
        and not iskeyword(column)
        and not column.startswith(("_", "c_"))
    ):
        return column
    return _encoded(column)


def _encoded(column: str) -> str:
    return "c_" + column.encode().hex()


EVENT_FIELDS = frozenset(
    (
        *("row", "time_ms", "seq", "extra", "group", "values", "put"),
        *("stamp", "accumulators", "stale", "refresh"),
    )
)
"""What a row of a relation has beside its columns."""


def field_name(column: str) -> str:
    """The attribute of a row of a relation that holds a column.

    >>> field_name("temp"), field_name("seq"), field_name("my col")
    ('temp', 'c_736571', 'c_6d7920636f6c')
    """
    return _encoded(column) if column in EVENT_FIELDS else attribute_name(column)


def column_text(row: str, column: str, shape: Shape) -> str:
    """The text that reads a column of a row, a dict or else a struct.

    >>> column_text("e", "temp", "dict"), column_text("e", "temp", "struct")
    ("e.get('temp')", 'e.temp')
    """
    return f"{row}.get({column!r})" if shape == "dict" else f"{row}.{attribute_name(column)}"


def as_dict(row: Any) -> dict[str, Any]:
    """Any row as a dict, for output and snapshots; a joined row as the list of its sides
    is left to the caller."""
    if isinstance(row, dict):
        return row
    columns = getattr(row, "__columns__", None)
    if columns is None:
        return {name: getattr(row, name) for name in row.__slots__}
    return {column: getattr(row, attribute) for column, attribute in columns.items()}


def as_dicts(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """The rows of a list, such as the events of a repeated tag, as dicts."""
    return [as_dict(row) for row in rows]


def as_value(row: Any) -> Any:
    """A row as a value of an expression, which may be shown: a dict. The list of a repeated tag stays."""
    return row if row is None or row.__class__ is list else as_dict(row)


def columns_of(*rows: Any) -> dict[str, Any] | None:
    """An event as a value, without its metadata. Of several, those of a join, the first
    that has a column gives it.

    >>> columns_of({"a": 1, "$meta": {}}), columns_of({"a": 1}, None, {"a": 2, "b": 3}), columns_of(None)
    ({'a': 1}, {'a': 1, 'b': 3}, None)
    """
    found: dict[str, Any] = {}
    for row in rows:
        if row is not None:
            columns = as_dict(row).items()
            found |= {name: item for name, item in columns if name not in found and not name.startswith("$")}
    return found if any(row is not None for row in rows) else None


def match_of(tags: Iterable[str], rows: Iterable[Any]) -> dict[str, Any]:
    """The match of a pattern as a value: the event of each tag under its name, a list for a repeated tag.

    >>> match_of(("a", "b", "c"), ({"n": 1, "$meta": {}}, [{"n": 2}], None))
    {'a': {'n': 1}, 'b': [{'n': 2}], 'c': None}
    """
    return {
        tag: [columns_of(item) for item in row] if isinstance(row, list) else columns_of(row)
        for tag, row in zip(tags, rows, strict=True)
    }


def match_value(*parts: Any) -> dict[str, Any]:
    """The match of a pattern as a value, of each tag and its row in turn."""
    return match_of(parts[::2], parts[1::2])


ROW_KIND = "rowkind"
"""The metadata of a row that says what becomes of the row of its key."""


def deletion(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a source whose key is to go from the tables that the source fills."""
    return {**row, "$meta": {ROW_KIND: "delete"}}


def from_topic(row: Mapping[str, Any], topic: str) -> dict[str, Any]:
    """A row of a memory topic, which its metadata names.

    >>> from_topic({"a": 1}, "t/x")
    {'a': 1, '$meta': {'topic': 't/x'}}
    """
    return {**row, "$meta": {**(row.get("$meta") or {}), "topic": topic}}


def deletes(row: Mapping[str, Any]) -> bool:
    """True if the key of a row is to go from the tables that its source fills.

    >>> deletes(deletion({"a": 1})), deletes({"a": 1})
    (True, False)
    """
    meta = row.get("$meta")
    return meta is not None and meta.get(ROW_KIND) == "delete"


class WholeRow(dict[str, Any]):
    """All columns of an event as one argument, to distinguish `f(*)` from a struct column."""


def whole_row(row: object) -> WholeRow:
    """The columns of an event without its metadata.

    >>> whole_row({"a": 1, "$meta": {"topic": "t"}})
    {'a': 1}
    """
    return WholeRow((name, value) for name, value in as_dict(row).items() if not name.startswith("$"))
