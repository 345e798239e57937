"""JSON of a stream whose declared types hold.

The parser checks the values of plain types while it fills a row, which costs about 20 ns a column. Payloads
that it refuses are parsed again without types, and the validator reports the column and its value, or takes
a value that may stand for the type: 23.0 for a bigint. Types for which the class of a value is not enough
(arrays, structs, times, bytes) and columns with a default are checked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from edge.intake.codecs.base import Row
from edge.intake.codecs.rows import attributes
from sql.catalog.validation import Validator
from sql.types import Type

_CLASSES: dict[Type, Any] = {
    Type.INTEGER: int | None,
    Type.FLOAT: int | float | None,
    Type.NUMBER: int | float | None,
    Type.STRING: str | None,
    Type.BOOLEAN: bool | None,
}
"""The type that msgspec checks for a declared type: the values that need no conversion."""


def row_parser(columns: frozenset[str], validator: Validator) -> Callable[[bytes], Row]:
    """Parses one payload into a row with these columns; msgspec's errors and `DataError`."""
    types = tuple((name, type_) for name, type_ in validator.plain.items() if name in columns)
    parse: Callable[[bytes], Row] = msgspec.json.Decoder(_typed_class(columns, types)).decode
    rest = validator.without_plain()
    if not rest.checks:
        return parse
    return lambda payload: rest.check(parse(payload))


@lru_cache(maxsize=4096)
def _typed_class(columns: frozenset[str], types: tuple[tuple[str, Type], ...]) -> type[Any]:
    """The class of rows with these columns, whose attributes have the classes of their types."""
    names, classes = attributes(columns), {name: _CLASSES[type_] for name, type_ in types}
    fields: list[Any] = [
        (attribute, classes.get(column, Any), msgspec.field(default=None, name=column))
        for column, attribute in names.items()
    ]
    return msgspec.defstruct("Row", fields, namespace={"__columns__": names}, gc=False)
