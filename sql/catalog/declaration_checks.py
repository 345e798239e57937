"""Checks of the declarations of streams, schemas and tables: known types and options, each column once."""

from __future__ import annotations

from collections.abc import Container, Iterable

from sql.errors import DataError, Problems, did_you_mean
from sql.syntax import ColumnDefinition, ColumnType, CreateStream, Option, TableColumn
from sql.types import Type, type_named, type_names, type_of

STREAM_OPTIONS = (
    "DATASOURCE", "TYPE", "FORMAT", "SCHEMAID", "DELIMITER", "CONF_KEY", "EXTRA", "STRICT_VALIDATION",
    "TIMESTAMP", "TIMESTAMP_FORMAT", "SHARED", "KIND", "RETAIN_SIZE", "KEY", "VERSION", "TEMP",
    "PAYLOAD_BYTES_MAX", "LATENCY_MS", "MESSAGE_KEY", "MAX_KEYS", "TOPIC_PARTS",
)  # fmt: skip


_WHOLE_NUMBERS = {"PAYLOAD_BYTES_MAX": 1, "LATENCY_MS": 0, "MAX_KEYS": 1}
"""Options that are numbers, and the least value of each."""


def check_declaration(statement: CreateStream, schemas: Container[str]) -> Problems:
    """The problems of the columns and options of a declaration."""
    problems = Problems()
    check_columns(problems, statement.columns, schemas)
    for column in statement.columns:
        if not (type_named(column.type.name) or Type.ANY).accepts(type_of(column.default)):
            problems.error("B106", f"the default of '{column.name}' is no {column.type.name}", column.span)
    if statement.kind == "schema":
        return problems
    for option in statement.options:
        if option.key.upper() not in STREAM_OPTIONS:
            hint = did_you_mean(option.key, STREAM_OPTIONS)
            problems.error("B103", f"unknown stream option '{option.key}'", option.span, hint)
        _check_value(problems, option)
    names = [column.name for column in statement.columns]
    timestamp = next((option for option in statement.options if option.key.upper() == "TIMESTAMP"), None)
    if timestamp and names and timestamp.value not in names:
        message = f"the timestamp column '{timestamp.value}' is not among the stream's columns"
        problems.error("B104", message, timestamp.span, did_you_mean(str(timestamp.value), names))
    return problems


def check_columns(
    problems: Problems, columns: Iterable[ColumnDefinition | TableColumn], schemas: Container[str]
) -> None:
    """Report unknown types, also of elements and fields, and columns that are declared twice; the names of
    streams are types too."""
    seen: set[str] = set()
    for column in columns:
        if column.type is not None:
            _check_type(problems, column.type, schemas)
        if column.name in seen:
            problems.error("B102", f"column '{column.name}' is declared twice", column.span)
        seen.add(column.name)


KNOWN = "types are bigint, float, string, boolean, datetime, bytea, array(…), struct(…) and any"


def _check_type(problems: Problems, type_: ColumnType, schemas: Container[str]) -> None:
    if type_named(type_.name) is None and type_.name not in schemas:
        hint = did_you_mean(type_.name, type_names()) or KNOWN
        problems.error("B101", f"unknown type '{type_.name}'", type_.span, hint)
    if type_.element is not None:
        _check_type(problems, type_.element, schemas)
    check_columns(problems, type_.fields, schemas)


def _check_value(problems: Problems, option: Option) -> None:
    """Report a value that an option which this engine reads cannot have."""
    key, text = option.key.upper(), str(option.value)
    least = _WHOLE_NUMBERS.get(key)
    wrong = None
    if key == "KIND" and text.lower() not in ("scan", "lookup"):
        wrong = f"KIND is scan or lookup, not '{text}'"
    elif key == "RETAIN_SIZE" and not (text.isdecimal() and int(text) > 0):
        wrong = f"RETAIN_SIZE is a whole number of rows of at least 1, not '{text}'"
    elif least is not None and not (text.isdecimal() and int(text) >= least):
        wrong = f"{key} is a whole number of at least {least}, not '{text}'"
    elif key == "TIMESTAMP_FORMAT":
        wrong = _unreadable(text)
    elif key == "STRICT_VALIDATION" and text.lower() not in ("true", "false", "intake"):
        wrong = f"STRICT_VALIDATION is true, false or intake, not '{text}'"
    if wrong is not None:
        problems.error("B105", wrong, option.span)


def _unreadable(pattern: str) -> str | None:
    from sql.functions.notations.time_pattern import check_readable

    try:
        check_readable(pattern)
    except DataError as error:
        return str(error)
    return None
