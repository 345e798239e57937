"""Values of a template: JSON values and moments, their text and their truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sinks.formats.json_text import json_text
from sql.errors import DataError


def is_true(value: object) -> bool:
    """Go's truth: false, 0, NULL, and empty text, lists and objects are false."""
    return bool(value)


def step_into(value: object, name: str) -> Any:
    """Field `name` of an object; NULL if it is absent or the object is NULL."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return value.get(name)
    hint = "; use 'sendSingle: true', 'range' or 'index . 0'" if isinstance(value, list | tuple) else ""
    raise DataError(f"template: field '{name}' of a {kind_of(value)}{hint}")


def print_value(value: object) -> str:
    """The text of a value: text as it is, whole floats without fraction, lists and objects as JSON.

    >>> print_value(20.0), print_value(True), print_value([1, "a"]), print_value(None)
    ('20', 'true', '[1,"a"]', 'null')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return json_text(value)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S %z %Z}"
    if isinstance(value, float) and math.isfinite(value):
        # From 1e21 on Go writes an exponent; below, a whole number prints like an integer.
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return json_text(value)


def kind_of(value: object) -> str:
    names = {
        bool: "boolean",
        int: "number",
        float: "number",
        str: "text",
        list: "list",
        tuple: "list",
        dict: "object",
    }
    return "NULL" if value is None else names.get(type(value), type(value).__name__)
