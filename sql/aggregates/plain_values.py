"""Values as JSON-able data, so that a snapshot restored from any JSON gives back the same values."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

from sql.rows import as_dict
from sql.types import Plain, Value

_JSON_INT_MAX = 2**53
_MARKS: dict[str, Callable[[str], Any]] = {
    "float": float,
    "int": lambda text: int(text, 16),
    "bytes": base64.b64decode,
}


def is_row(value: object) -> bool:
    """True if a value is an object or a whole row, which may be a struct."""
    return isinstance(value, dict) or hasattr(value, "__columns__") or hasattr(value, "__slots__")


def encode(value: Value) -> Plain:
    """The value as plain data. A value that JSON cannot represent becomes `{"$": kind, "of": text}`: NaN,
    infinities, large integers (as hexadecimal text, which has no limit of digits), bytes, tuples and objects
    that have a `$` themselves. A whole row of another shape comes back as a dict.
    """
    kind = value.__class__
    if kind is float:
        return value if math.isfinite(value) else {"$": "float", "of": repr(value)}
    if kind is int:
        return value if -_JSON_INT_MAX <= value <= _JSON_INT_MAX else {"$": "int", "of": hex(value)}
    if value is None or kind is bool or kind is str:
        plain: Plain = value
        return plain
    if kind is list:
        return [encode(item) for item in value]
    if kind is tuple:
        return {"$": "tuple", "of": [encode(item) for item in value]}
    if kind is dict:
        if "$" in value:
            return {"$": "object", "of": [[name, encode(item)] for name, item in value.items()]}
        return {name: encode(item) for name, item in value.items()}
    if kind is bytes:
        return {"$": "bytes", "of": base64.b64encode(value).decode("ascii")}
    if is_row(value):
        return encode(as_dict(value))
    raise TypeError(f"an aggregate cannot store a {kind.__name__} in a snapshot")


def decode(data: object) -> Any:
    """The value that `encode` was called with."""
    if data.__class__ is list:
        return [decode(item) for item in data]
    if data.__class__ is not dict:
        return data
    mark = data.get("$")
    if mark is None:
        return {name: decode(item) for name, item in data.items()}
    if mark == "tuple":
        return tuple(decode(item) for item in data["of"])
    if mark == "object":
        return {name: decode(item) for name, item in data["of"]}
    return _MARKS[mark](data["of"])
