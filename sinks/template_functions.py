"""The functions a template may call, and how template values print, compare and are true.

Values are JSON values. A wrong type is a `DataError`: the message goes to the dead letters with that reason.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sinks.json_text import json_text
from sql.errors import DataError

_VERB = re.compile(r"%([-+# 0]*)(\d+)?(?:\.(\d+))?(.?)", re.DOTALL)
_VERBS = "dsvfFeEgGtqxX"
WIDTH_MAX = 1000


def is_true(value: Any) -> bool:
    """Go's truth: false, 0, NULL, and empty text, lists and objects are false."""
    return bool(value)


def step_into(value: Any, name: str) -> Any:
    """Field `name` of an object; NULL if it is absent or the object is NULL."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return value.get(name)
    hint = "; use 'sendSingle: true', 'range' or 'index . 0'" if isinstance(value, list | tuple) else ""
    raise DataError(f"template: field '{name}' of a {_kind(value)}{hint}")


def print_value(value: Any) -> str:
    """The text of a value: text as it is, whole floats without fraction, lists and objects as JSON.

    >>> print_value(20.0), print_value(True), print_value([1, "a"]), print_value(None)
    ('20', 'true', '[1,"a"]', 'null')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return json_text(value)
    if isinstance(value, float) and math.isfinite(value):
        # Beyond 1e21 Go changes to an exponent; below, a whole number prints like an integer.
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return json_text(value)


@dataclass(frozen=True, slots=True)
class Function:
    """A template function: how many arguments it takes (`at_most` None: any number) and what it does."""

    apply: Callable[..., Any]
    at_least: int
    at_most: int | None


def check_arguments(name: str, count: int, first_text: str | None) -> str | None:
    """What is wrong with a call, or None. `first_text` is the first argument when it is a literal text."""
    at_least, at_most = (1, None) if name in LAZY else (FUNCTIONS[name].at_least, FUNCTIONS[name].at_most)
    if count < at_least or (at_most is not None and count > at_most):
        wanted = (
            str(at_least)
            if at_least == at_most
            else f"at least {at_least}"
            if at_most is None
            else f"at most {at_most}"
        )
        return f"'{name}' takes {wanted} argument{'' if wanted.endswith(' 1') or wanted == '1' else 's'}, not {count}"
    if name == "printf" and first_text is not None:
        verbs = [match[4] for match in _VERB.finditer(first_text) if match[4] != "%"]
        if unknown := next((verb for verb in verbs if not verb or verb not in _VERBS), None):
            return f"'printf' knows no verb '%{unknown}'; verbs are {', '.join('%' + verb for verb in _VERBS)}"
        if "" in verbs:
            return "'printf' format ends inside a verb"
        if len(verbs) != count - 1:
            return f"'printf' format has {len(verbs)} verbs but {count - 1} values"
    return None


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", tuple: "list", dict: "object"}
    return "NULL" if value is None else names.get(type(value), type(value).__name__)


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())  # Go counts bytes
    if isinstance(value, Mapping | Sequence):
        return len(value)
    raise DataError(f"template: len of a {_kind(value)}")


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, Mapping) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list | tuple) and isinstance(key, int) and not isinstance(key, bool):
            if not 0 <= key < len(value):
                raise DataError(f"template: index {key} of a list of {len(value)}")
            value = value[key]
        else:
            raise DataError(f"template: a {_kind(value)} has no index {key!r}")
    return value


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    if _kind(left) != _kind(right):
        raise DataError(f"template: cannot compare a {_kind(left)} with a {_kind(right)}")
    return bool(left == right)


def _equal(first: Any, *others: Any) -> bool:
    return any(_same(first, other) for other in others)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def run(left: Any, right: Any) -> bool:
        if _kind(left) != _kind(right) or _kind(left) not in ("number", "text"):
            raise DataError(f"template: cannot order a {_kind(left)} and a {_kind(right)}")
        return bool(compare(left, right))

    return run


def _printf(text: Any, *values: Any) -> str:
    if not isinstance(text, str):
        raise DataError("template: printf needs a format text")
    waiting = list(values)

    def fill(match: re.Match[str]) -> str:
        flags, width, precision, verb = match[1], match[2], match[3], match[4]
        if verb == "%":
            return "%"
        if not waiting or verb not in _VERBS or int(width or 0) > WIDTH_MAX or int(precision or 0) > WIDTH_MAX:
            raise DataError(f"template: printf cannot fill {match[0]!r}")
        return _format_verb(verb, flags, width or "", precision, waiting.pop(0))

    result = _VERB.sub(fill, text)
    if waiting:
        raise DataError(f"template: printf has {len(waiting)} values too many")
    return result


def _format_verb(verb: str, flags: str, width: str, precision: str | None, value: Any) -> str:
    dot = "" if precision is None else f".{precision}"
    if verb in "svtq":
        text = json_text(print_value(value)) if verb == "q" else print_value(value)
        if verb == "t" and not isinstance(value, bool):
            raise DataError(f"template: printf %t needs a boolean, not a {_kind(value)}")
        return f"%{flags}{width}{dot}s" % text
    if verb in "xX" and isinstance(value, str):
        return value.encode().hex() if verb == "x" else value.encode().hex().upper()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"template: printf %{verb} needs a number, not a {_kind(value)}")
    if verb in "dxX":
        if isinstance(value, float) and not value.is_integer():
            raise DataError(f"template: printf %{verb} needs a whole number, not {value!r}")
        value = int(value)
    return str(f"%{flags}{width}{dot}{verb}" % value)


LAZY = {"and": False, "or": True}
"""Functions that evaluate only as many arguments as they need, and the truth at which each stops."""

FUNCTIONS: dict[str, Function] = {
    "json": Function(json_text, 1, 1),
    "toJson": Function(json_text, 1, 1),
    "len": Function(_length, 1, 1),
    "index": Function(_index, 1, None),
    "not": Function(lambda value: not is_true(value), 1, 1),
    "eq": Function(_equal, 2, None),
    "ne": Function(lambda left, right: not _same(left, right), 2, 2),
    "lt": Function(_ordered(operator.lt), 2, 2),
    "le": Function(_ordered(operator.le), 2, 2),
    "gt": Function(_ordered(operator.gt), 2, 2),
    "ge": Function(_ordered(operator.ge), 2, 2),
    "printf": Function(_printf, 1, None),
}
