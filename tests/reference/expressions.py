"""Bound expressions evaluated by walking the tree, in three-valued logic (semantics.md, NULL and numbers)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import fmod
from typing import Any

from sql.aggregates.list_methods import LIST_METHODS
from sql.plan.bound import Apply, Bound, Const, Enumerate, LambdaRead, Op, Read, Slot
from sql.types import equal, less

Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where an expression is evaluated: the row of each source, and what operators keep (`slots`)."""

    rows: tuple[Row | None, ...] = ()
    slots: Callable[[Slot], Any] | None = None
    parameters: tuple[Any, ...] = field(default=())


def evaluate(node: Bound, place: Place) -> Any:
    """The value of an expression; None is NULL."""
    match node:
        case Const(value):
            return value
        case Read(source, column):
            row = place.rows[source]
            return row if column is None or row is None else row.get(column)
        case Slot():
            assert place.slots is not None, f"{node.kind} slot where there is none"
            return place.slots(node)
        case Apply(function, args):
            values = [evaluate(arg, place) for arg in args]
            assert not function.context, f"{function.name}() needs a clock"
            null = function.nulls == "propagate" and any(value is None for value in values)
            return None if null else function.implementation(*values)
        case LambdaRead(name, depth):
            item = place.parameters[-1 - depth]
            return item if name is None else item.get(name)
        case Enumerate(base, name, body):
            items, each = evaluate(base, place), LIST_METHODS[name].each
            assert each is not None

            def value(item: Any) -> Any:
                return evaluate(body, Place(place.rows, place.slots, (*place.parameters, item)))

            return None if items is None else each(items, value)
        case Op(name, args, extra):
            return (
                _LAZY[name](args, place)
                if name in _LAZY
                else _strict(name, [evaluate(a, place) for a in args], extra)
            )
    raise AssertionError(f"unknown expression {node!r}")


def holds(node: Bound | None, place: Place) -> bool:
    """Whether a condition is TRUE; NULL and FALSE are not. An absent condition holds."""
    return node is None or evaluate(node, place) is True


def _and(args: tuple[Bound, ...], place: Place) -> bool | None:
    return _all_of([evaluate(arg, place) for arg in args])


def _all_of(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(args: tuple[Bound, ...], place: Place) -> bool | None:
    return _any_of([evaluate(arg, place) for arg in args])


def _any_of(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def _case(args: tuple[Bound, ...], place: Place) -> Any:
    *branches, default = args
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        if holds(condition, place):
            return evaluate(value, place)
    return evaluate(default, place)


_LAZY: dict[str, Callable[[tuple[Bound, ...], Place], Any]] = {"and": _and, "or": _or, "case": _case}


def _strict(name: str, values: list[Any], extra: Any) -> Any:
    """An operation on values. Those that see NULL come first; the others are NULL if an operand is."""
    match name, values:
        case "isnull", [value]:
            return value is None
        case "is", [a, b]:
            return a is b if a is None or b is None else equal(a, b) is True
        case "in", [value, array] if extra == "array":
            return None if array is None else _member(value, array)
        case "in", [value, *items]:
            return _member(value, items)
        case "between", [value, low, high]:
            # EPL turns a reversed range round.
            ranges = [(low, high), (high, low)] if extra == "turned" else [(low, high)]
            return _any_of([_is_between(value, *bounds) for bounds in ranges])
        case "quantified", [value, items]:
            sign, word = extra
            return _quantified(sign, word, value, items)
        case "array", _:
            return values
        case "descending", [value]:
            return value
    if None in [value for value in values if value is None]:
        return None
    return _not_null(name, values, extra)


def _not_null(name: str, values: list[Any], extra: Any) -> Any:
    match name, values:
        case "slice", [base, low, high]:
            return base[_place(low) : _place(high)]
        case "field", [base]:
            return base.get(extra)
        case "index", [base, position]:
            return base[_place(position)] if -len(base) <= position < len(base) else None
        case "like", [text, pattern]:
            return re.fullmatch(_like(pattern, extra or "\\"), text, re.DOTALL) is not None
        case "/" | "%", [_, 0]:
            return None
    return _OPERATIONS[name](*values)


def _place(position: Any) -> Any:
    """3.0 is a place in an array, 2.5 is none."""
    return int(position) if isinstance(position, float) and position % 1 == 0 else position


def _comparable(a: Any, b: Any) -> bool:
    """NaN is neither less than anything, nor greater, nor equal."""
    return bool(a == a and b == b)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "not": lambda a: not a,
    "neg": lambda a: -a,
    "=": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": lambda a, b: _comparable(a, b) and not less(b, a),
    ">=": lambda a, b: _comparable(a, b) and not less(a, b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: _remainder(a, b),
    "||": lambda a, b: a + b,
}
"""Operations on values that are not NULL."""


def _remainder(a: Any, b: Any) -> Any:
    """`%` has the sign of the dividend, and two integers give an integer."""
    return (
        abs(a) % abs(b) * (1 if a >= 0 else -1) if isinstance(a, int) and isinstance(b, int) else fmod(a, b)
    )


def _is_between(value: Any, low: Any, high: Any) -> bool | None:
    return _all_of([_compared(">=", value, low), _compared("<=", value, high)])


def _member(value: Any, items: list[Any]) -> bool | None:
    if value is None:
        return None
    found = [equal(value, item) for item in items]
    return _any_of(found)


def _quantified(name: str, word: str, value: Any, items: list[Any]) -> bool | None:
    """`value op any (…)`, `value op all (…)`: over nothing FALSE and TRUE."""
    found = [_compared(name, value, item) for item in items]
    return _all_of(found) if word == "all" else _any_of(found)


def _compared(name: str, a: Any, b: Any) -> bool | None:
    result: bool | None = None if None in (a, b) else _OPERATIONS[name](a, b)
    return result


def _like(pattern: str, escape: str) -> str:
    parts, quoted = [], False
    for char in pattern:
        if not quoted and char == escape:
            quoted = True
            continue
        parts.append(
            ".*" if char == "%" and not quoted else "." if char == "_" and not quoted else re.escape(char)
        )
        quoted = False
    return "".join(parts)
