"""Types and values: what a value may be, how two compare, what makes a group key.

The rules are those of `docs/semantics.md`: three-valued logic, no silent coercion between strings and
numbers, NULL is a group key, keys of different types never collide.
"""

from __future__ import annotations

import enum
import math
from decimal import Decimal
from typing import Any, TypeAlias

from sql.errors import DataError
from sql.syntax import ColumnType

Value = Any
"""A value of a column or an expression: None, bool, int, float, str, bytes, datetime, list or dict of values.
Operations check at run time, where a failure belongs to one event."""

Plain: TypeAlias = "None | bool | int | float | str | list[Plain] | dict[str, Plain]"
"""A value of any type as JSON has it."""

Saved = Any
"""The state of an operator of any kind as plain data. Each operator states its own form in `snapshot` and
`restore`, as `tuple[int, Plain]`. What is stored comes back with lists in the place of tuples: a form is
only unpacked, indexed and iterated."""


class Type(enum.Enum):
    """The type of an expression as far as it is known before an event arrives. `ANY` is not known."""

    ANY = "any"
    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "bigint"
    FLOAT = "float"
    NUMBER = "number"
    STRING = "string"
    DATETIME = "datetime"
    BYTES = "bytea"
    ARRAY = "array"
    OBJECT = "struct"
    ORDERED = "number or text"
    """What parameters alone take: values that have an order."""

    @property
    def is_numeric(self) -> bool:
        return self in NUMERIC

    def accepts(self, other: Type) -> bool:
        """True if a value of type `other` may stand where `self` is expected, without conversion."""
        if self is other or Type.ANY in (self, other) or Type.NULL in (self, other):
            return True
        if self is Type.ORDERED:
            return other.is_numeric or other in (Type.STRING, Type.DATETIME)
        if self.is_numeric and other.is_numeric:
            return self is not Type.INTEGER or other is not Type.FLOAT
        # A datetime compares with epoch milliseconds and with text in a valid format (eKuiper's rule).
        return self is Type.DATETIME and other in (Type.INTEGER, Type.NUMBER, Type.STRING)


NUMERIC = frozenset({Type.INTEGER, Type.FLOAT, Type.NUMBER})

_NAMES = {
    "bigint": Type.INTEGER, "int": Type.INTEGER, "integer": Type.INTEGER, "long": Type.INTEGER,
    "short": Type.INTEGER, "byte": Type.INTEGER, "smallint": Type.INTEGER, "biginteger": Type.INTEGER,
    "float": Type.FLOAT, "double": Type.FLOAT, "real": Type.FLOAT, "bigdecimal": Type.FLOAT,
    "decimal": Type.FLOAT, "number": Type.NUMBER, "numeric": Type.NUMBER,
    "string": Type.STRING, "text": Type.STRING, "varchar": Type.STRING, "char": Type.STRING,
    "boolean": Type.BOOLEAN, "bool": Type.BOOLEAN,
    "datetime": Type.DATETIME, "timestamp": Type.DATETIME,
    "bytea": Type.BYTES, "bytes": Type.BYTES,
    "array": Type.ARRAY, "struct": Type.OBJECT, "any": Type.ANY, "object": Type.ANY,
    "map": Type.ANY,
}  # fmt: skip


def type_named(name: str) -> Type | None:
    """The type a declaration means by `name` (eKuiper's and EPL's names), or None for an unknown one."""
    return _NAMES.get(name.lower())


def type_names() -> tuple[str, ...]:
    """All names a declaration may use."""
    return tuple(_NAMES)


def declared_type(column: ColumnType) -> Type:
    """The type of a declared column; `ANY` for unknown names (the binder reports those)."""
    return type_named(column.name) or Type.ANY


def type_of(value: object) -> Type:
    """The type of a value at run time."""
    return _OF_CLASS.get(value.__class__, Type.ANY)


_OF_CLASS = {
    type(None): Type.NULL,
    bool: Type.BOOLEAN,
    int: Type.INTEGER,
    float: Type.FLOAT,
    str: Type.STRING,
    bytes: Type.BYTES,
    list: Type.ARRAY,
    tuple: Type.ARRAY,
    dict: Type.OBJECT,
}


# --- equality and order -------------------------------------------------------------------------------------


def equal(a: object, b: object) -> bool | None:
    """SQL `=`: NULL if either is; numbers by value; different types are an error, not a quiet FALSE."""
    if a is None or b is None:
        return None
    if a.__class__ is b.__class__ or (a.__class__ in _NUMBERS and b.__class__ in _NUMBERS):
        return bool(a == b)
    raise DataError(f"cannot compare {describe(a)} with {describe(b)}")


def less(a: Value, b: Value) -> bool | None:
    """SQL `<` under the same rules as `equal`."""
    if a is None or b is None:
        return None
    if a.__class__ is b.__class__ or (a.__class__ in _NUMBERS and b.__class__ in _NUMBERS):
        try:
            return bool(a < b)
        except TypeError:
            pass
    raise DataError(f"cannot order {describe(a)} and {describe(b)}")


_NUMBERS = (int, float)


def ordered(value: object) -> Any:
    """A number, a text or NULL, which min and max accept; a `DataError` for anything else."""
    if value is None or value.__class__ is str or value.__class__ in _NUMBERS:
        return value
    raise DataError(f"min and max take numbers or text, not {describe(value)}")


def describe(value: object) -> str:
    """A value with its type, for messages; long values are cut.

    >>> describe(3), describe("x"), describe(None)
    ('bigint 3', "string 'x'", 'NULL')
    """
    if value is None:
        return "NULL"
    text = repr(value)
    return f"{type_of(value).value} {text if len(text) <= 40 else text[:37] + '...'}"


def literal(value: object) -> str:
    """A value in a message, as it is written in a rule.

    >>> literal(None), literal(2.5), literal("x")
    ('NULL', '2.5', "'x'")
    """
    return "NULL" if value is None else repr(value)


def whole(value: object) -> object:
    """An integer for a float that is one, for JSON writes 3 and 3.0 for the same number; other values as they
    are.

    >>> whole(3.0), whole(2.5), whole(True)
    (3, 2.5, True)
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


def as_text(value: Value) -> str:
    """A scalar as text, as `cast(x, 'string')` gives it: `true`, `1`, `1.5`. Bytes must be UTF-8.

    >>> as_text(True), as_text(20), as_text(20.0), as_text(1e-7)
    ('true', '20', '20', '0.0000001')
    """
    kind = value.__class__
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return repr(value)
    if kind is float:
        return _float_text(value)
    if kind is bytes:
        return str(value, "utf-8")
    raise DataError(f"{describe(value)} has no text form; use to_json(x)")


def _float_text(value: float) -> str:
    """The fewest digits that mean this number, without exponent; a whole one as a whole number."""
    text = repr(value)
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


# --- keys ---------------------------------------------------------------------------------------------------


class _Marker:
    """A hashable stand-in that equals only itself: keeps TRUE apart from 1 and gives NaN one key."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


_TRUE, _FALSE, _NAN = _Marker("TRUE"), _Marker("FALSE"), _Marker("NaN")


def key_of(value: Value) -> Any:
    """A hashable key for grouping by `value`: 1 and 1.0 are one key, 1 and '1' and TRUE
    are three, NaN equals NaN.

    >>> key_of(True) == key_of(1), key_of(1) == key_of(1.0), key_of(float("nan")) == key_of(float("nan"))
    (False, True, True)
    """
    kind = value.__class__
    if kind is str or kind is int or value is None:
        return value
    if kind is bool:
        return _TRUE if value else _FALSE
    if kind is float:
        return _NAN if math.isnan(value) else value
    if kind is list or kind is tuple:
        return ("array", *map(key_of, value))
    if kind is dict:
        return ("struct", frozenset((name, key_of(item)) for name, item in value.items()))
    return value


# --- order for ORDER BY, sort, rank, min and max ------------------------------------------------------------

OrderKey = tuple[int, Any] | tuple[int, Any, int]
"""Compares with any other one."""

_RANK = {type(None): 0, bool: 1, int: 2, float: 2, str: 3, bytes: 4, list: 5, tuple: 5, dict: 6}


def order_key(value: object) -> OrderKey:
    """A key that orders any two values: null, boolean, number (NaN last), text, the rest by their text."""
    rank = _RANK.get(value.__class__, 7)
    if rank == 2 and value != value:
        return (2, math.inf, 1)
    if rank == 2:
        return (2, value, 0)
    if rank in (1, 3, 4):
        return (rank, value)
    return (rank, "" if value is None else repr(value))


def order_key_down(value: Value) -> OrderKey:
    """A key for the reverse of the order of `order_key`. Numbers need no wrapper, so that
    they compare at once."""
    kind = value.__class__
    if (kind is float or kind is int) and value == value:
        return (-2, -value, 0)
    rank, *rest = order_key(value)
    return (-2, -math.inf, -1) if rank == 2 else (-rank, Descending(tuple(rest)))


class Descending:
    """Wraps an order key so that it sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Value) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)
