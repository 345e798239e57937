"""Arguments at run time: the declared parameter types, checked in one place for every function.

The binder refuses wrong types that it knows; it knows none on a stream without declared columns, so the same
declaration is checked against each value. Implementations may rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import Any

from sql.errors import DataError
from sql.functions.definition import Function
from sql.types import Type, as_text, describe, whole

Classes = frozenset[type] | None
"""The Python classes a parameter takes; None for any."""

_CLASSES: dict[Type, frozenset[type]] = {
    Type.BOOLEAN: frozenset({bool}),
    Type.INTEGER: frozenset({int}),
    Type.FLOAT: frozenset({int, float}),
    Type.NUMBER: frozenset({int, float}),
    Type.STRING: frozenset({str}),
    Type.DATETIME: frozenset({int, float, str}),
    Type.BYTES: frozenset({bytes}),
    Type.ARRAY: frozenset({list, tuple}),
    Type.OBJECT: frozenset({dict}),
}


def checked(function: Function) -> Callable[..., Any]:
    """The implementation behind a check of its arguments; the bare one if every parameter takes anything."""
    implementation = function.implementation
    also = {type(None)} if function.nulls == "pass" else set()
    classes = [_CLASSES[p.type] | also if p.type in _CLASSES else None for p in function.parameters]
    if not any(classes):
        return implementation
    if len(classes) == 1 and not function.context and not function.parameters[0].variadic:
        return _unary(function, implementation, classes[0] or frozenset())
    return _general(function, implementation, classes)


def _unary(
    function: Function, implementation: Callable[..., Any], allowed: frozenset[type]
) -> Callable[..., Any]:
    """The check of one argument, the common case, without a loop."""

    def call(*arguments: Any) -> Any:
        if arguments and arguments[0].__class__ not in allowed:
            return implementation(_fitted(function, 0, arguments[0]))
        return implementation(*arguments)

    return call


def _general(
    function: Function, implementation: Callable[..., Any], classes: Sequence[Classes]
) -> Callable[..., Any]:
    context = (None,) * function.context
    fixed = (*context, *classes)

    def with_fitted(arguments: Sequence[Any], allowed: Iterable[Classes]) -> Any:
        pairs = enumerate(zip(arguments[len(context) :], allowed, strict=False))
        fitted = [v if c is None or v.__class__ in c else _fitted(function, i, v) for i, (v, c) in pairs]
        return implementation(*arguments[: len(context)], *fitted)

    def call(*arguments: Any) -> Any:
        # Fewer arguments than parameters is normal (optional ones), so zip must not be strict.
        for value, allowed in zip(arguments, fixed):  # noqa: B905
            if allowed is not None and value.__class__ not in allowed:
                return with_fitted(arguments, classes)
        return implementation(*arguments)

    def call_variadic(*arguments: Any) -> Any:
        for value, allowed in zip(arguments, chain(fixed, repeat(fixed[-1])), strict=False):
            if allowed is not None and value.__class__ not in allowed:
                return with_fitted(arguments, chain(classes, repeat(classes[-1])))
        return implementation(*arguments)

    return call_variadic if function.parameters[-1].variadic else call


def _fitted(function: Function, index: int, value: object) -> Any:
    """A value whose class the parameter does not take, as one that it takes; else an error.

    A whole float stands for an integer, as in a declared column: JSON writes both. `as_text` allows the text
    of a number and of a boolean.
    """
    parameter = function.parameter(index)
    if parameter.type is Type.INTEGER and (found := whole(value)) is not value:
        return found
    if parameter.as_text and value.__class__ in (int, float, bool):
        return as_text(value)
    raise mismatch(function, index, value)


def mismatch(function: Function, index: int, value: object) -> DataError:
    """The error for `value` as the argument at `index` (from 0)."""
    parameter = function.parameter(index)
    wanted = _WORDS.get(parameter.type, parameter.type.value)
    remedy = _REMEDIES.get(parameter.type)
    hint = f"; convert it with {remedy}" if remedy else ""
    return DataError(f"{function.name}() takes {wanted} as '{parameter.name}', not {describe(value)}{hint}")


_WORDS = {
    Type.BOOLEAN: "a boolean",
    Type.INTEGER: "an integer",
    Type.FLOAT: "a number",
    Type.NUMBER: "a number",
    Type.STRING: "text",
    Type.DATETIME: "epoch milliseconds or a date as text",
    Type.BYTES: "bytes",
    Type.ARRAY: "an array",
    Type.OBJECT: "an object",
}

_REMEDIES = {
    Type.BOOLEAN: "cast(x, 'boolean')",
    Type.INTEGER: "cast(x, 'bigint')",
    Type.FLOAT: "cast(x, 'float')",
    Type.NUMBER: "cast(x, 'float')",
    Type.STRING: "cast(x, 'string')",
    Type.BYTES: "cast(x, 'bytea')",
    Type.ARRAY: "parse_json(x)",
    Type.OBJECT: "parse_json(x)",
}


# --- result types -------------------------------------------------------------------------------------------


def number_like_first(arguments: Sequence[Type]) -> Type:
    """The numeric type of the first argument, NUMBER if it is not known."""
    return arguments[0] if arguments and arguments[0].is_numeric else Type.NUMBER


def number_of_all(arguments: Sequence[Type]) -> Type:
    """INTEGER if all arguments are integers, FLOAT if one is a float, else NUMBER."""
    if all(argument is Type.INTEGER for argument in arguments):
        return Type.INTEGER
    return Type.FLOAT if Type.FLOAT in arguments else Type.NUMBER


def unified(arguments: Sequence[Type]) -> Type:
    """The one type that holds a value of any argument.

    >>> unified([Type.NULL, Type.INTEGER, Type.FLOAT]), unified([Type.STRING, Type.INTEGER])
    (<Type.NUMBER: 'number'>, <Type.ANY: 'any'>)
    """
    known = {argument for argument in arguments if argument is not Type.NULL}
    if len(known) == 1:
        return known.pop()
    if known and all(argument.is_numeric for argument in known):
        return Type.NUMBER
    return Type.ANY if known else Type.NULL
