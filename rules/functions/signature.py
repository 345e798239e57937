"""Make a Python function a function of SQL: types from its annotations, the manual from its docstring."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from rules.functions.guard import Guarded
from sql.functions.definition import Function, Parameter
from sql.types import Type

TYPES: dict[Any, Type] = {
    bool: Type.BOOLEAN,
    int: Type.INTEGER,
    float: Type.FLOAT,
    str: Type.STRING,
    bytes: Type.BYTES,
    list: Type.ARRAY,
    Sequence: Type.ARRAY,
    dict: Type.OBJECT,
    Mapping: Type.OBJECT,
    Any: Type.ANY,
    object: Type.ANY,
}
"""The SQL types of annotations; the element types of lists and dictionaries are not checked."""

_NAMES = "bool, int, float, str, bytes, list, dict or Any, or one of them with | None"


class Unfit(ValueError):
    """A function that rules cannot call; the message is the reason, `hint` the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def function_of(function: Callable[..., Any], origin: str) -> Function:
    """The definition for SQL. Raises `Unfit`.

    A parameter with a default may be left out, `*more` takes all further arguments. NULL gives NULL without a
    call, unless the parameter takes None.
    """
    name = function.__name__
    doc = inspect.getdoc(function)
    if not doc:
        raise Unfit(f"{name}() has no docstring", "say in one sentence what it gives")
    if name != name.lower():
        raise Unfit(
            f"{name}() has capitals in its name", "names of SQL have no case: write it in small letters"
        )
    hints = _hints(function)
    found = [_parameter(name, item, hints) for item in inspect.signature(function).parameters.values()]
    if "return" not in hints:
        raise Unfit(f"{name}() does not say what it returns", f"write -> and a type: {_NAMES}")
    returns, _ = _type(hints["return"], f"what {name}() returns")
    passes = any(nullable for _, nullable in found)
    required = tuple(not nullable for _, nullable in found) if passes else ()
    return Function(
        name,
        Guarded(name, function, required),
        "user",
        doc.split("\n>>>")[0].strip(),
        tuple(parameter for parameter, _ in found),
        returns,
        nulls="pass" if passes else "propagate",
        origin=origin,
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError) as error:
        raise Unfit(f"the annotations of {function.__name__}() cannot be read: {error}", _NAMES) from None


def _parameter(function: str, item: inspect.Parameter, hints: Mapping[str, Any]) -> tuple[Parameter, bool]:
    """A parameter; True with it if it takes NULL."""
    what = f"parameter '{item.name}' of {function}()"
    if item.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        raise Unfit(f"{what} has to be named in a call", "SQL passes arguments by position")
    if item.name not in hints:
        raise Unfit(f"{what} has no type", f"write {item.name}: and a type: {_NAMES}")
    found, nullable = _type(hints[item.name], what)
    optional, variadic = (
        item.default is not inspect.Parameter.empty,
        item.kind is inspect.Parameter.VAR_POSITIONAL,
    )
    return Parameter(item.name, found, optional=optional, variadic=variadic), nullable


def _type(annotation: object, what: str) -> tuple[Type, bool]:
    """The type of an annotation; True with it if None is allowed."""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = get_args(annotation)
        kept = [part for part in parts if part is not type(None)]
        if set(kept) == {int, float}:
            return Type.NUMBER, len(kept) < len(parts)
        found = _type(kept[0], what)[0] if len(kept) == 1 else Type.ANY
        return found, len(kept) < len(parts)
    known = TYPES.get(get_origin(annotation) or annotation)
    if known is None:
        shown = inspect.formatannotation(annotation)
        raise Unfit(f"{what} is of type {shown}, which SQL does not have", f"use {_NAMES}")
    return known, annotation is Any or annotation is object
