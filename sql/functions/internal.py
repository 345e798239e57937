"""Functions that plans contain and no query can name: the binder puts them there.

They are not registered, so a plan that goes to another process names their modules. These stand outside the
binder, which the gateway's process does not import.
"""

from __future__ import annotations

from typing import Any

from sql.errors import DataError
from sql.functions.definition import Function, Parameter
from sql.rows import as_dict, columns_of, match_value, whole_row
from sql.types import Type, describe

# --- rows ---------------------------------------------------------------------------------------------------

WHOLE_ROW = Function(
    "whole_row", whole_row, "internal", "All columns of an event.", (Parameter("row"),), nulls="pass"
)

ROW_VALUE = Function(
    "row_value",
    columns_of,
    "internal",
    "An event as a value.",
    (Parameter("rows", variadic=True),),
    nulls="pass",
)

MATCH_VALUE = Function(
    "match_value",
    match_value,
    "internal",
    "The match of a pattern as a value.",
    (Parameter("parts", variadic=True, optional=True),),
    nulls="pass",
)


# --- elements of arrays -------------------------------------------------------------------------------------


def _with_element(items: object, index: object, value: object) -> list[object]:
    if not isinstance(items, list):
        raise DataError(f"only an array has elements, not {describe(items)}")
    if not isinstance(index, int) or not 0 <= index < len(items):
        at = "NULL" if index is None else index
        raise DataError(f"an array of {len(items)} elements has none at {at}")
    return [*items[:index], value, *items[index + 1 :]]


WITH_ELEMENT = Function(
    "with_element",
    _with_element,
    "internal",
    "An array with one element replaced.",
    (Parameter("array", Type.ARRAY), Parameter("index", Type.INTEGER), Parameter("value")),
    Type.ARRAY,
    nulls="pass",
)


# --- the values that SELECT makes rows or columns of --------------------------------------------------------


def _array(value: object) -> Any:
    """The array whose elements become rows."""
    if isinstance(value, list | tuple):
        return value
    raise DataError(f"unnest() takes an array, not {describe(value)}")


def _struct(value: object) -> dict[str, Any]:
    """The struct whose keys become columns."""
    if isinstance(value, list | tuple | str | int | float | bytes):
        raise DataError(f"extract() takes a struct, not {describe(value)}")
    return as_dict(value)


def _request(start: Any, end: Any, now: Any) -> list[int]:
    """The span that a row requests, and the present of its data."""
    for name, value in (("start", start), ("end", end), ("now", now)):
        if value.__class__ is not int:
            raise DataError(
                f"'{name}' of dedup_trigger() is a whole number of milliseconds, not {describe(value)}"
            )
    if start >= end:
        raise DataError(f"dedup_trigger() needs a start before its end, not {start} and {end}")
    return [start, end, now]


UNNEST = Function("unnest", _array, "multi-row", "One row per element.", (Parameter("array", Type.ARRAY),))
EXTRACT = Function(
    "extract", _struct, "multi-row", "One column per key.", (Parameter("struct", Type.OBJECT),)
)
REQUEST = Function(
    "dedup_trigger",
    _request,
    "trigger",
    "The span a row asks for.",
    tuple(Parameter(name, Type.INTEGER) for name in ("start", "end", "now")),
    nulls="pass",
)
