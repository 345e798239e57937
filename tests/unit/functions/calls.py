"""Evaluates SQL text made of literals and calls of scalar functions, by the rules the engine has for them."""

from __future__ import annotations

from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from sql import syntax
from sql.functions import Context, lookup
from sql.language import parse_expression


def example_context(zone: str = "UTC") -> Context:
    """The surroundings every documented example assumes: 2024-01-02 03:04:05.678 UTC, rule `example`, one
    property."""
    return Context(
        now_ms=1_704_164_645_678,
        zone=ZoneInfo(zone),
        random=Random(7),
        rule_id="example",
        start_ms=1_704_164_640_000,
        properties={"site": "north"},
    )


def evaluate(text: str, context: Context | None = None) -> Any:
    """The value of an expression of literals, signs and scalar calls."""
    return value_of(parse_expression(text), context or example_context())


def value_of(expr: syntax.Expr, context: Context) -> Any:
    match expr:
        case syntax.Constant(value):
            return value
        case syntax.Unary("-", operand):
            return -value_of(operand, context)
        case syntax.Call():
            return call(expr.name, *(value_of(argument, context) for argument in expr.args), context=context)
    raise AssertionError(f"an example is made of literals and calls, not {expr!r}")


def call(name: str, *arguments: Any, context: Context | None = None) -> Any:
    """Call the function `name`: its arity is checked, NULLs propagate, the context goes
    first where it wants one."""
    found = lookup(name)
    assert found is not None, f"no function {name}"
    least, most = found.arity
    assert least <= len(arguments) and (most is None or len(arguments) <= most), (
        f"{name} with {len(arguments)} arguments"
    )
    if found.nulls == "propagate" and None in arguments:
        return None
    leading = (context or example_context(),) if found.context else ()
    return found.implementation(*leading, *arguments)
