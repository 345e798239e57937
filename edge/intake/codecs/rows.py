"""Row classes: one per set of columns, so that a decoder stores a value once and a rule reads an attribute.

A column whose name is no Python name gets an attribute of our own; `__columns__` maps every column to its
attribute. Values are whatever JSON holds; a column the message does not have is None, as NULL is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from sql.rows import attribute_name

META = "$meta"
"""The column of a message's metadata from the source (topic, message id, …), never read from the
payload."""


def attributes(columns: Iterable[str]) -> dict[str, str]:
    """Column name to attribute name, in order of the column names; generated code reads by the same names.

    >>> attributes(["temp", "dev id"])
    {'dev id': 'c_646576206964', 'temp': 'temp'}
    """
    return {column: attribute_name(column) for column in sorted(columns)}


def row_class(columns: Iterable[str]) -> type[Any]:
    """The class of rows with these columns: the same class for the same columns at every call.

    msgspec's decoder fills it directly.
    Every column is an optional argument by its attribute name.
    """
    return _row_class(frozenset(columns))


@lru_cache(maxsize=4096)
def _row_class(columns: frozenset[str]) -> type[Any]:
    names = attributes(columns)
    fields: list[Any] = [
        (attribute, Any, msgspec.field(default=None, name=column)) for column, attribute in names.items()
    ]
    # No cycle can pass through JSON values, so the garbage collector need not visit rows.
    return msgspec.defstruct("Row", fields, namespace={"__columns__": names}, gc=False)
