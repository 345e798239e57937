"""Comparison, choice, indexing and JSON: Go's built-in functions, and the most usual additions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from sinks.formats.json_text import json_text
from sinks.template.functions.registry import Function
from sinks.template.values import is_true, kind_of, print_value
from sql.errors import DataError
from sql.types import key_of


def _html(*values: object) -> str:
    from html import escape  # its table of entities takes half a megabyte

    text = escape("".join(map(print_value, values)))
    return text.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")  # as Go writes them


def _length(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())  # Go counts bytes
    if isinstance(value, Mapping | Sequence):
        return len(value)
    raise DataError(f"template: len of a {kind_of(value)}")


def _index(value: object, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, Mapping) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list | tuple) and isinstance(key, int) and not isinstance(key, bool):
            if not 0 <= key < len(value):
                raise DataError(f"template: index {key} of a list of {len(value)}")
            value = value[key]
        else:
            raise DataError(f"template: a {kind_of(value)} has no index {key!r}")
    return value


def _same(left: object, right: object) -> bool:
    if left is None or right is None:
        return left is right
    if kind_of(left) != kind_of(right):
        raise DataError(f"template: cannot compare a {kind_of(left)} with a {kind_of(right)}")
    return bool(left == right)


def _equal(first: object, *others: Any) -> bool:
    return any(_same(first, other) for other in others)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def run(left: object, right: object) -> bool:
        if kind_of(left) != kind_of(right) or kind_of(left) not in ("number", "text"):
            raise DataError(f"template: cannot order a {kind_of(left)} and a {kind_of(right)}")
        return bool(compare(left, right))

    return run


def _slice(value: object, *bounds: Any) -> Any:
    if not isinstance(value, str | list | tuple):
        raise DataError(f"template: slice of a {kind_of(value)}")
    low = bounds[0] if bounds else 0
    high = bounds[1] if len(bounds) > 1 else len(value)
    if not (isinstance(low, int) and isinstance(high, int) and 0 <= low <= high <= len(value)):
        raise DataError(f"template: slice from {low!r} to {high!r} of {len(value)}")
    return value[low:high]


def _from_json(text: object) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(print_value(text))
    except msgspec.DecodeError as error:
        raise DataError(f"template: fromJson: {error}") from None


def _pretty(value: object) -> str:
    import msgspec

    return msgspec.json.format(json_text(value).encode(), indent=2).decode()


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if is_true(value)), None)


def _go_kind(value: object) -> str:
    """The kind of a value by Go's name."""
    return "invalid" if value is None else _GO_KINDS.get(type(value), "struct")


_GO_KINDS = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "slice",
    tuple: "slice",
    dict: "map",
}


LAZY = {"and": False, "or": True}
"""Functions that evaluate only the arguments they need, and the truth at which each stops."""

FUNCTIONS: dict[str, Function] = {
    "json": Function(json_text, 1, 1),
    "toJson": Function(json_text, 1, 1),
    "toPrettyJson": Function(_pretty, 1, 1),
    "fromJson": Function(_from_json, 1, 1),
    "len": Function(_length, 1, 1),
    "index": Function(_index, 1, None),
    "slice": Function(_slice, 1, 3),
    "not": Function(lambda value: not is_true(value), 1, 1),
    "eq": Function(_equal, 2, None),
    "ne": Function(lambda left, right: not _same(left, right), 2, 2),
    "lt": Function(_ordered(operator.lt), 2, 2),
    "le": Function(_ordered(operator.le), 2, 2),
    "gt": Function(_ordered(operator.gt), 2, 2),
    "ge": Function(_ordered(operator.ge), 2, 2),
    "html": Function(_html, 1, None),
    "urlquery": Function(lambda *values: quote_plus("".join(map(print_value, values))), 1, None),
    "default": Function(lambda otherwise, value=None: value if is_true(value) else otherwise, 1, 2),
    "empty": Function(lambda value: not is_true(value), 1, 1),
    "coalesce": Function(_coalesce, 1, None),
    "ternary": Function(lambda yes, no, condition: yes if is_true(condition) else no, 3, 3),
    "any": Function(lambda *values: any(map(is_true, values)), 0, None),
    "all": Function(lambda *values: all(map(is_true, values)), 0, None),
    "deepEqual": Function(lambda left, right: key_of(left) == key_of(right), 2, 2),
    "kindOf": Function(_go_kind, 1, 1),
    "kindIs": Function(lambda name, value: _go_kind(value) == name, 2, 2),
    "mustFromJson": Function(_from_json, 1, 1),
    "mustToJson": Function(json_text, 1, 1),
    "toRawJson": Function(json_text, 1, 1),
    "mustToRawJson": Function(json_text, 1, 1),
    "mustToPrettyJson": Function(_pretty, 1, 1),
    "mustSlice": Function(_slice, 1, 3),
}
