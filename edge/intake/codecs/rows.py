"""Row classes: one per set of columns, so that a decoder stores a value once and a rule reads an attribute.

A column whose name is no Python name gets an attribute of our own; `__columns__` maps every column to its attribute.
Values are whatever JSON holds; a column the message does not have is None, as NULL is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

from sql.rows import attribute_name

META = "$meta"
"""The column that holds what the source knows about a message (topic, message id, …), never read from the payload."""


def attributes(columns: Iterable[str]) -> dict[str, str]:
    """Column name to attribute name, in order of the column names; generated code reads by the same names.

    >>> attributes(["temp", "dev id"])
    {'dev id': 'c_646576206964', 'temp': 'temp'}
    """
    return {column: attribute_name(column) for column in sorted(columns)}


def row_class(columns: Iterable[str]) -> type[Any]:
    """The class of rows with these columns: the same class for the same columns, however often asked.

    Made with msgspec where it is installed (its decoder fills it directly), else a plain slotted class.
    Every column is an optional argument by its attribute name.
    """
    return _row_class(frozenset(columns))


@lru_cache(maxsize=4096)
def _row_class(columns: frozenset[str]) -> type[Any]:
    names = attributes(columns)
    try:
        import msgspec
    except ImportError:
        return plain_row_class(names)
    fields: list[Any] = [
        (attribute, Any, msgspec.field(default=None, name=column)) for column, attribute in names.items()
    ]
    # No cycle can pass through JSON values, so the garbage collector need not visit rows.
    return msgspec.defstruct("Row", fields, namespace={"__columns__": names}, gc=False)


class PlainRow:
    """A row on machines without msgspec; a subclass has the slots."""

    __slots__: tuple[str, ...] = ()
    __columns__: ClassVar[dict[str, str]] = {}
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **values: Any) -> None:
        for slot in self.__slots__:
            setattr(self, slot, values.pop(slot, None))
        if values:
            raise TypeError(f"no such column attribute: {', '.join(values)}")

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{slot}={getattr(self, slot)!r}' for slot in self.__slots__)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)


def plain_row_class(names: dict[str, str]) -> type[Any]:
    """A slotted class like the one msgspec would make."""
    return type("Row", (PlainRow,), {"__slots__": tuple(names.values()), "__columns__": names})
