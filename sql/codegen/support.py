"""Functions that generated code calls: the operations that are more than one Python expression.

Each is the definition of its SQL operation; the code generator writes an operation inline only if that gives
the same result for the possible values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from math import fmod
from typing import Any

from sql.codegen.members import Members
from sql.errors import DataError
from sql.rows import as_dict, attribute_name
from sql.types import Value, describe, equal, less, whole


class Warnings:
    """Counts of odd data that is no error; the query shows them among its counters."""

    __slots__ = ("division_by_zero", "several_rows")

    def __init__(self) -> None:
        self.division_by_zero = 0
        self.several_rows = 0
        """The number of times a scalar subquery had several rows, and so was NULL."""

    def zero(self) -> None:
        """Division by zero: NULL, counted."""
        self.division_by_zero += 1

    def mod(self, a: Value, b: Value) -> Any:
        """`a % b` with the sign of a, as in SQL; an integer for two integers."""
        if a.__class__ is int and b.__class__ is int:
            if b == 0:
                return self.zero()
            return abs(a) % abs(b) * (1 if a >= 0 else -1)
        if isinstance(a, str) or isinstance(b, str):
            raise DataError(f"cannot take {describe(a)} % {describe(b)}")
        return fmod(a, b) if b else self.zero()


def concat(a: object, b: object) -> str:
    """`a || b` for two texts."""
    if a.__class__ is not str or b.__class__ is not str:
        raise DataError(f"|| joins two texts, not {describe(a)} and {describe(b)}")
    return str(a + b)


def is_same(a: object, b: object) -> bool:
    """`a IS b`: equality in which NULL equals NULL."""
    return a is b if a is None or b is None else equal(a, b) is True


def contains(value: object, items: Collection[Any]) -> bool | None:
    """`value IN items` in three-valued logic."""
    if value is None:
        return None
    unknown = False
    for item in items:
        same = equal(value, item)
        if same:
            return True
        unknown = unknown or same is None
    return None if unknown else False


def in_array(value: object, array: object) -> bool | None:
    """`value IN arr`, arr an array."""
    if array is None:
        return None
    if not isinstance(array, list | tuple):
        raise DataError(f"IN needs a list or an array, not {describe(array)}")
    return contains(value, array)


_TESTS: dict[str, Callable[[Any, Any], bool | None]] = {
    "=": equal,
    "!=": lambda a, b: invert(equal(a, b)),
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": lambda a, b: invert(less(b, a)),
    ">=": lambda a, b: invert(less(a, b)),
}


def any_of(sign: str, value: object, items: Iterable[Any]) -> bool | None:
    """`value sign ANY (items)` in three-valued logic; FALSE over no item."""
    if isinstance(items, Members) and items.can_find(value):
        return items.has(value)
    test, unknown = _TESTS[sign], False
    for item in items:
        same = test(value, item)
        if same:
            return True
        unknown = unknown or same is None
    return None if unknown else False


def all_of(sign: str, value: object, items: Iterable[Any]) -> bool | None:
    """`value sign ALL (items)` in three-valued logic; TRUE over no item."""
    if isinstance(items, Members) and items.can_find(value):
        return invert(items.has(value))
    test, unknown = _TESTS[sign], False
    for item in items:
        same = test(value, item)
        if same is False:
            return False
        unknown = unknown or same is None
    return None if unknown else True


def boolean(value: object) -> bool | None:
    """A value used as a condition."""
    if value is None or value.__class__ is bool:
        return value
    raise DataError(f"a condition must be a boolean, not {describe(value)}")


def field(base: object, name: str) -> Any:
    """`base->name`: NULL if base is NULL or has no such key."""
    if base is None:
        return None
    if base.__class__ is dict:
        return base.get(name)
    if isinstance(base, list | tuple | str | int | float | bytes):
        raise DataError(f"'{name}' is read from {describe(base)}, which is not a struct")
    return getattr(base, attribute_name(name), None)


def index(base: object, position: object) -> Any:
    """`base[i]`: negative from the end, NULL out of range; a text index reads a key."""
    if base is None or position is None:
        return None
    if isinstance(base, list | tuple):
        if position.__class__ is not int:
            position = _place(position)
        return base[position] if -len(base) <= position < len(base) else None
    if base.__class__ is dict and position.__class__ is str:
        return base.get(position)
    raise DataError(f"cannot index {describe(base)} with {describe(position)}")


def cut(base: Value, low: Value, high: Value) -> Any:
    """`base[low:high]`, the end excluded."""
    if base is None or low is None or high is None:
        return None
    if not isinstance(base, list | tuple):
        raise DataError(f"cannot slice {describe(base)}")
    if low.__class__ is not int:
        low = _place(low)
    if high.__class__ is not int:
        high = _place(high)
    return list(base[low:high])


def _place(position: object) -> int:
    """A place in an array."""
    found = whole(position)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    raise DataError(f"an array index must be a whole number, not {describe(position)}")


def like(value: object, pattern: object, escape: str | None = None) -> bool | None:
    """`value LIKE pattern`: % any text, line ends included; _ one character."""
    if value is None or pattern is None:
        return None
    if value.__class__ is not str or pattern.__class__ is not str:
        raise DataError(f"LIKE compares texts, not {describe(value)} with {describe(pattern)}")
    return like_matcher(pattern, escape)(value) is not None


@lru_cache(maxsize=1024)
def like_matcher(pattern: str, escape: str | None) -> Callable[[str], Any]:
    """The compiled form of a LIKE pattern; all characters but % and _ are literal."""
    parts = []
    characters = iter(pattern)
    for char in characters:
        if char == escape or (escape is None and char == "\\"):
            parts.append(re.escape(next(characters, char)))
        else:
            parts.append(".*" if char == "%" else "." if char == "_" else re.escape(char))
    return re.compile("".join(parts), re.DOTALL).fullmatch


def invert(value: object) -> bool | None:
    """NOT in three-valued logic."""
    return None if boolean(value) is None else not value


def spread(value: object, excluded: frozenset[str]) -> dict[str, Any]:
    """A whole event or a struct as columns, for a dict display to copy: it may be the event itself."""
    if value is None:
        return {}
    row = as_dict(value) if not isinstance(value, dict) else value
    if not any(map(row.__contains__, excluded)):
        return row
    return {name: item for name, item in row.items() if name not in excluded}
