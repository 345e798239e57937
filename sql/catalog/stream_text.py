"""Streams and tables as text: the CREATE statement that declares one."""

from __future__ import annotations

import json
import re

from sql.catalog.streams import Stream
from sql.syntax import ColumnDefinition, ColumnType

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def declaration(stream: Stream) -> str:
    """The CREATE STREAM or CREATE TABLE statement of a stream, on one line."""
    kind = "STREAM" if stream.kind == "stream" else "TABLE"
    columns = ", ".join(map(_column, stream.declared))
    options = ", ".join(f"{key}={json.dumps(str(value))}" for key, value in stream.options.items())
    return f"CREATE {kind} {_name(stream.name)} ({columns}){f' WITH ({options})' if options else ''}"


def described(stream: Stream) -> list[str]:
    """A stream as DESCRIBE shows it: its columns, then its options."""
    types = {name: type_.value for name, type_ in (stream.columns or {}).items()}
    types |= {column.name: type_text(column.type) for column in stream.declared}
    columns = [f"{name}  {type_}" for name, type_ in types.items()]
    options = [f"{key}: {value}" for key, value in stream.options.items()]
    return [*(columns or ["any column: none is declared"]), *options]


def type_text(column: ColumnType) -> str:
    """A declared type as it is written."""
    if column.element is not None:
        return f"{column.name}({type_text(column.element)})"
    if column.fields:
        return f"{column.name}({', '.join(map(_column, column.fields))})"
    return column.name


def _column(column: ColumnDefinition) -> str:
    default = "" if column.default is None else f" DEFAULT {json.dumps(column.default)}"
    return f"{_name(column.name)} {type_text(column.type)}{default}"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name}`"
