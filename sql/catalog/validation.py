"""Declared types: each message of a stream is checked against its declared columns, once for all rules.

STRICT_VALIDATION="intake", which streams in YAML have, means the columns that some rule reads,
and "true" all of them.

A column that is absent or NULL takes its DEFAULT, and is NULL without one. A value of another type, at any
depth of arrays and structs, refuses the whole event, with its place: `readings[2].temp`. Numbers stay
numbers: a whole float stands for a `bigint`, an integer for a `float`. Columns that are not declared are left
alone.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Container, Iterable, Sequence
from copy import copy
from typing import Any

from sql.catalog.streams import Catalog, Stream
from sql.errors import DataError
from sql.plan.logical import Plan
from sql.rows import as_it_is, attribute_name
from sql.syntax import ColumnType
from sql.types import Type, Value, declared_type, describe

Check = Callable[[Any], Any]
"""The value as its column takes it; _Misfit where it cannot."""


class _Misfit(DataError):
    """A value that does not fit its declared type; `place` is its way inside the column: `[2].temp`."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place

    def inside(self, step: str) -> _Misfit:
        """The same, seen from the array or struct around it."""
        return _Misfit(str(self), step + self.place)


class Validators:
    """The validators of the streams of a catalog; one that is declared anew is checked as it is now."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, tuple[Validator, tuple[Plan, ...]]] = {}
        self.trusted: Container[str] = ()
        """Streams whose rows their source has checked."""

    def is_due(self, name: str) -> bool:
        """True if rows of a stream are to be checked here."""
        stream = self._catalog.streams.get(name)
        if stream is None or not stream.declared:
            return False
        where = stream.validation
        return where == "rules" or (where == "intake" and name not in self.trusted)

    def split(
        self, name: str, rows: Sequence[Any], plans: Iterable[Plan]
    ) -> tuple[Sequence[Any], list[tuple[Any, str]]]:
        """The rows that fit the declaration of a stream that `is_due`, and the others, each with the reason.
        `plans`: those that read it."""
        validator = self._validator(self._catalog.streams[name], tuple(plans))
        good, bad = [], []
        for row in rows:
            try:
                good.append(validator.check(row))
            except DataError as error:
                bad.append((row, str(error)))
        return good, bad

    def _validator(self, stream: Stream, plans: tuple[Plan, ...]) -> Validator:
        known = self._known.get(stream.name)
        if known is None or known[0].stream is not stream or known[1] != plans:
            only = None if stream.is_strict else columns_read(plans, stream.name)
            known = self._known[stream.name] = (Validator(stream, only), plans)
        return known[0]


def readers_of(plans: Iterable[Plan]) -> dict[str, list[Plan]]:
    """By stream the rules that read it."""
    found: dict[str, list[Plan]] = {}
    for plan in plans:
        for stream in plan.streams:
            found.setdefault(stream, []).append(plan)
    return found


def columns_read(plans: Iterable[Plan], stream: str) -> frozenset[str] | None:
    """The columns that some rule reads of a stream; None when one needs the whole message."""
    columns: frozenset[str] = frozenset()
    for plan in plans:
        if stream in plan.reads:
            read = plan.columns(stream)
            if read is None:
                return None
            columns |= read
    return columns


class Validator:
    """Checks the events of one stream.

    only   the columns that are checked; None: all
    plain  the type of each checked column whose values need no more than a look at their class
    """

    def __init__(self, stream: Stream, only: Container[str] | None = None) -> None:
        self.stream = stream
        self.only = only
        columns = [column for column in stream.declared if only is None or column.name in only]
        self.plain = {
            column.name: declared_type(column.type)
            for column in columns
            if column.default is None and declared_type(column.type) in CLASSES
        }
        self.checks = [
            (
                column.name,
                CLASSES[self.plain[column.name]] if column.name in self.plain else frozenset(),
                _check(column.type, stream),
                column.default,
            )
            for column in columns
        ]

    def without_plain(self) -> Validator:
        """The same without the columns in `plain`, for a parser that checks those."""
        left = Validator(self.stream, self.only)
        left.checks = [check for check in self.checks if check[0] not in self.plain]
        return left

    def check(self, row: Any) -> Any:
        """The event with defaults filled in; DataError naming the column that holds a wrong value."""
        is_dict = isinstance(row, dict)
        changed: dict[str, Any] = {}
        for name, classes, check, default in self.checks:
            value = row.get(name) if is_dict else getattr(row, _attribute(row, name), None)
            if value.__class__ in classes:
                continue
            if value is None:
                if default is not None:
                    changed[name] = default
                continue
            try:
                taken = check(value)
            except _Misfit as error:
                raise DataError(
                    f"column '{name}{error.place}' of stream '{self.stream.name}' {error}"
                ) from None
            if taken is not value:
                changed[name] = taken
        if not changed:
            return row
        return {**row, **changed} if is_dict else _with(row, changed)


def _attribute(row: object, column: str) -> str:
    """The attribute of a column in a struct; the struct lacks it if no rule reads the column."""
    columns = getattr(row, "__columns__", None)
    return attribute_name(column) if columns is None else columns.get(column, attribute_name(column))


def _with(row: object, changed: dict[str, Any]) -> Any:
    """A copy of a struct with other values in the columns it keeps."""
    out = copy(row)
    for name, value in changed.items():
        attribute = _attribute(row, name)
        if hasattr(row, attribute):
            setattr(out, attribute, value)
    return out


def _check(column: ColumnType, stream: Stream) -> Check:
    """The check of a declared type."""
    kind = declared_type(column)
    if kind is Type.ARRAY:
        return _array(_check(column.element, stream) if column.element is not None else as_it_is)
    if kind is Type.OBJECT:
        return _struct([(field.name, _check(field.type, stream)) for field in column.fields])
    if kind is Type.DATETIME:
        return _datetime(stream.timestamp_format)
    if kind is Type.BYTES:
        return _bytes
    if kind is Type.INTEGER:
        return _integer
    if kind not in _FITTING:
        return as_it_is
    return lambda value: _expected(value, *_FITTING[kind])


def _integer(value: object) -> Any:
    if value.__class__ is float and value.is_integer():
        return int(value)
    return _expected(value, *_FITTING[Type.INTEGER])


def _bytes(value: object) -> Any:
    if value.__class__ is bytes:
        return value
    try:
        base64.b64decode(_expected(value, "base64 text", str), validate=True)
    except binascii.Error:
        raise _Misfit(f"must be base64 text, not {describe(value)}") from None
    return value


def _expected(value: object, what: str, *kinds: type) -> Any:
    if value.__class__ in kinds:
        return value
    raise _Misfit(f"must be {what}, not {describe(value)}")


_FITTING: dict[Type, tuple[str, *tuple[type, ...]]] = {
    Type.INTEGER: ("a bigint", int),
    Type.FLOAT: ("a float", float, int),
    Type.NUMBER: ("a number", float, int),
    Type.STRING: ("a string", str),
    Type.BOOLEAN: ("a boolean", bool),
}
"""By type how it is called, and the classes of the values that fit it as they are."""

CLASSES = {kind: frozenset((*classes, type(None))) for kind, (_, *classes) in _FITTING.items()}
"""The classes of values, NULL among them, that fit a type as they are."""


def _array(element: Check) -> Check:
    def check(value: Value) -> Any:
        _expected(value, "an array", list, tuple)
        items = []
        for index, item in enumerate(value):
            try:
                items.append(None if item is None else element(item))
            except _Misfit as error:
                raise error.inside(f"[{index}]") from None
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items

    return check


def _struct(fields: list[tuple[str, Check]]) -> Check:
    def check(value: Value) -> Any:
        _expected(value, "a struct", dict)
        taken = {}
        for name, check in fields:
            if (held := value.get(name)) is None:
                continue
            try:
                taken[name] = check(held)
            except _Misfit as error:
                raise error.inside(f".{name}") from None
        return value if all(taken[name] is value[name] for name in taken) else {**value, **taken}

    return check


def _datetime(pattern: str | None) -> Check:
    """Epoch milliseconds, or text: by TIMESTAMP_FORMAT, else ISO 8601."""

    def check(value: object) -> Any:
        from zoneinfo import ZoneInfo

        from sql.functions.instants import instant_ms
        from sql.functions.notations.time_pattern import parse_moment

        _expected(value, "epoch milliseconds or text with a time", int, float, str)
        zone = ZoneInfo("UTC")
        if isinstance(value, str):
            try:
                instant_ms(value, zone) if pattern is None else parse_moment(value, pattern, zone)
            except (DataError, ValueError) as error:
                raise _Misfit(f"is no time: {error}") from None
        return value

    return check
