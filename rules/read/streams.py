"""The streams of a file: texts with CREATE STREAM, or mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rules import streams
from rules.read.reading import LoadedStream, Reading, items
from rules.secrets import references_in
from rules.source.document import Path
from rules.streams import Stream
from rules.tables import SourceTable
from rules.validation import sketch, validate
from sql.catalog.stores import STORES
from sql.catalog.streams import VALIDATION
from sql.errors import Problem, Span, SqlError
from sql.language import parse
from sql.syntax import CreateStream


def read_streams(
    reading: Reading, data: object, at: Path = ("streams",), only: type[Any] = object
) -> list[LoadedStream]:
    """The streams under `streams`, as texts or mappings, in a list or by name.

    `at` is their path, and `only` the class of those members of the list that are streams.
    """
    members = items(reading, data, at, "streams")
    return each_once(
        reading,
        (
            stream
            for path, item, name in members
            if isinstance(item, only)
            for stream in _read_stream(reading, item, path, name)
        ),
    )


def read_texts(reading: Reading, text: str) -> list[LoadedStream]:
    """The streams of a file that contains only CREATE statements."""
    return each_once(reading, _stream_texts(reading, text, (), None))


def each_once(reading: Reading, streams: Iterable[LoadedStream]) -> list[LoadedStream]:
    """The streams by their names; a duplicate name is reported."""
    found: dict[str, LoadedStream] = {}
    for stream in streams:
        first = found.setdefault(stream.name, stream)
        if first is not stream:
            line = reading.text.position(first.name_span.start)[0]
            message = f"the stream '{stream.name}' is already defined in line {line}"
            reading.report.error("R106", message, stream.name_span)
    return list(found.values())


def read_table(reading: Reading, data: object, path: Path, name: str) -> list[LoadedStream]:
    """A table under `tables` whose rows are outside."""
    return _read_stream(reading, data, path, name, SourceTable)


def _read_stream(
    reading: Reading, data: object, path: Path, name: str | None, model: type[Stream] = Stream
) -> list[LoadedStream]:
    if isinstance(data, str):
        return list(_stream_texts(reading, data, path, name))
    if isinstance(data, dict) and list(data) == ["sql"] and isinstance(data["sql"], str):
        return list(_stream_texts(reading, data["sql"], (*path, "sql"), name))
    document, report = reading.document, reading.report
    stream = validate(model, data, document, path, report, streams.SYNONYMS)
    usable = stream is not None
    stream = stream or sketch(model, data, depth=1)
    if stream is None:
        return []
    if name is not None and stream.name not in (None, name):
        report.error(
            "R104",
            f"the name '{stream.name}' differs from the stream's key '{name}'",
            document.value_span((*path, "name")),
            "remove 'name', or make them equal",
        )
        usable = False
    called = name or stream.name
    if called is None:
        report.error("R102", "the key 'name' is missing in this stream", document.key_span(path))
        return []
    span = document.key_span(path) if name else document.value_span((*path, "name"))
    return [_stream_mapping(reading, stream.plain(), called, path, span, usable)]


def _stream_mapping(
    reading: Reading, stream: Stream, name: str, path: Path, name_span: Span, usable: bool
) -> LoadedStream:
    made = streams.as_statement(stream, name, path)
    loaded = LoadedStream(name, CreateStream(name), path, name_span, reading, made, usable)
    try:
        (statement,) = parse(made.text)
        assert isinstance(statement, CreateStream)
        loaded.statement = statement
        _check_secrets(loaded)
        _note(loaded)
    except SqlError as error:
        reading.report.found += map(loaded.problem, error.problems)
        loaded.usable = False
    return loaded


def _stream_texts(reading: Reading, text: str, path: Path, name: str | None) -> Iterator[LoadedStream]:
    """The streams of a text with CREATE STREAM statements."""
    report = reading.report
    try:
        statements = parse(text)
    except SqlError as error:
        report.found += [reading.sql_problem(problem, path) for problem in error.problems]
        if name is not None:
            key = reading.document.key_span(path)
            yield LoadedStream(name, CreateStream(name), path, key, reading, usable=False)
        return
    for statement in statements:
        if not isinstance(statement, CreateStream):
            span = reading.sql_span(statement.span, path)
            report.error("R104", "only CREATE STREAM may stand under 'streams'", span)
            continue
        start = max(0, text.find(statement.name, statement.span.start))
        span = reading.sql_span(Span(start, start + len(statement.name)), path)
        if name is not None and statement.name != name:
            report.error("R104", f"the statement defines '{statement.name}', but its key is '{name}'", span)
        loaded = LoadedStream(statement.name, statement, path, span, reading)
        _check_secrets(loaded)
        _note(loaded)
        yield loaded


def _check_secrets(stream: LoadedStream) -> None:
    """Report references to secrets: declarations are shown as they stand, so nothing is resolved in them."""
    for option in stream.statement.options:
        if any(references_in(option.value)):
            message = f"secrets are not resolved in the {option.key} of '{stream.name}'"
            hint = "write the setting into the gateway's configuration, under sources or connections"
            stream.reading.report.found.append(stream.problem(Problem("R109", message, option.span, hint)))
            stream.usable = False


_NOTES = {
    "VERSION": (None, "a file is compared by its content"),
    "TEMP": ("true", "streams live in files only"),
    "SHARED": ("false", "rules on one stream always share its source"),
    "CONF_KEY": (None, "memory topics have no settings"),
    "SCHEMAID": (None, "only the format protobuf has a schema; declare the columns"),
    "EXTRA": (None, "its source has no settings here; a broker's stand under sources.mqtt of the gateway"),
    "KEY": (None, 'only lookup tables have a key; write KIND="lookup"'),
}
"""Options of a stream without effect: the value that gets a note (None: any), and the reason."""

_OF_SOURCES = {"mqtt": ("CONF_KEY",), "memory": ()}
"""The settings that a kind of source reads; others read all."""

_ALL_SETTINGS = ("CONF_KEY", "EXTRA")

_OF_TABLES = dict.fromkeys(
    ("KIND", "RETAIN_SIZE"), (None, "a stream keeps no rows; CREATE TABLE makes a table")
)
"""Notes on options that have no effect on a stream, and do have one on a table."""


def _note(stream: LoadedStream) -> None:
    """Note the options that have no effect on this stream, and the defaults of its columns."""
    given = _given(stream)
    notes = {**_NOTES, **({} if stream.statement.kind == "table" else _OF_TABLES)}
    if given.get("TYPE") in STORES and given.get("KIND") == "lookup":
        notes["KEY"] = (None, "a store is asked by the columns that ON compares")
    idle = notes.keys() - _with_effect(given)
    for option in stream.statement.options:
        if option.key not in idle:
            continue
        worth, reason = notes[option.key]
        if worth is None or given[option.key] == worth:
            note = Problem("R201", f"'{option.key}' has no effect: {reason}", option.span, severity="warning")
            stream.reading.report.found.append(stream.problem(note))
    _note_defaults(stream)


def _given(stream: LoadedStream) -> dict[str, str]:
    """The options of a stream, their values in lower case."""
    return {option.key: str(option.value).lower() for option in stream.statement.options}


def _with_effect(given: Mapping[str, str]) -> Iterator[str]:
    """The options among those of `_NOTES` that have an effect beside the others."""
    kind = given.get("TYPE", "mqtt")
    yield from _OF_SOURCES.get(kind, _ALL_SETTINGS)
    if given.get("KIND") == "lookup" and kind not in STORES:
        yield "KEY"
    if given.get("FORMAT") == "protobuf":
        yield "SCHEMAID"


def _note_defaults(stream: LoadedStream) -> None:
    """Note defaults of columns whose messages are not checked: the check alone fills them in."""
    if _given(stream).get("STRICT_VALIDATION") in VALIDATION:
        return
    for column in stream.statement.columns or ():
        if column.default is not None:
            message = f"the default of '{column.name}' has no effect: only messages that are checked get it"
            hint = "leave 'strictValidation: false' out, or write STRICT_VALIDATION=\"true\" in CREATE STREAM"
            note = Problem("R201", message, column.span, hint, severity="warning")
            stream.reading.report.found.append(stream.problem(note))
