"""When an emission is the expected one: the rules of the scenario format, and how a difference is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.conformance.noise import Noise

Row = dict[str, Any]

RELATIVE_TOLERANCE = 1e-9

_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def decoded(value: Any) -> Any:
    """A value of a scenario file: "NaN" and "Infinity" are floats there."""
    if isinstance(value, str):
        return _FLOATS.get(value, value)
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        return {name: decoded(item) for name, item in value.items()}
    return value


def same_value(got: Any, wanted: Any) -> bool:
    """Equality with a tolerance for floats; NaN equals NaN, TRUE is not 1."""
    if isinstance(wanted, Noise):
        return got == 0.0 or same_value(got, decoded(wanted.value))
    if isinstance(got, bool) or isinstance(wanted, bool):
        return got is wanted
    if isinstance(got, int | float) and isinstance(wanted, int | float):
        if math.isnan(got) or math.isnan(wanted):
            return math.isnan(got) and math.isnan(wanted)
        return got == wanted or math.isclose(got, wanted, rel_tol=RELATIVE_TOLERANCE)
    if isinstance(got, list | tuple) and isinstance(wanted, list | tuple):
        return len(got) == len(wanted) and all(map(same_value, got, wanted))
    if isinstance(got, dict) and isinstance(wanted, dict):
        return same_row(got, wanted)
    return type(got) is type(wanted) and bool(got == wanted)


def same_row(got: Row, wanted: Row) -> bool:
    """Equality of rows; a column that one side leaves out is NULL there."""
    return all(same_value(got.get(name), wanted.get(name)) for name in got.keys() | wanted.keys())


def same_rows(got: Sequence[Row], wanted: Sequence[Row], *, ordered: bool) -> bool:
    """Equality of lists of rows, or of bags of them."""
    if len(got) != len(wanted):
        return False
    if ordered:
        return all(map(same_row, got, wanted))
    return same_bag(got, wanted, same_row)


def same_bag(got: Sequence[Any], wanted: Sequence[Any], same: Callable[[Any, Any], bool]) -> bool:
    """True if each item has an equal one of its own among as many."""
    rest = list(wanted)
    for item in got:
        index = next((i for i, other in enumerate(rest) if same(item, other)), None)
        if index is None:
            return False
        del rest[index]
    return not rest


def text_of(value: Any) -> str:
    """A value on one line, NULLs of rows left out."""
    return json.dumps(_shown(value), ensure_ascii=False, default=repr)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return value


def lines_of(values: Iterable[Any], indent: str = "      ") -> list[str]:
    """One indented line per value; a dash for none."""
    return [indent + text_of(value) for value in values] or [indent + "-"]
