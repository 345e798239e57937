"""Checks that calls of all kinds share: the number of arguments, their types, literals."""

from __future__ import annotations

from typing import TypeVar

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.constants import constant, constant_value
from sql.binder.place import Place
from sql.errors import DataError, Span
from sql.functions.definition import Parameter
from sql.plan.bound import Bound, Const
from sql.record import replace
from sql.types import type_of

C = TypeVar("C")

EVENTS_MAX = 2**31 - 1
"""The most events that a call can count back."""


def check_arity(binder: Binding, node: ast.Call, least: int, most: int | None) -> bool:
    """True if a call has as many arguments as it may have; else that is reported."""
    count = len(node.args)
    if count >= least and (most is None or count <= most):
        return True
    wanted = str(least) if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    plural = "" if wanted in ("1", "at least 1") else "s"
    binder.problems.error("B310", f"{node.name}() takes {wanted} argument{plural}, not {count}", node.span)
    return False


def check_constant(binder: Binding, parameter: Parameter, bound: Bound, span: Span) -> None:
    """Report a constant that the parameter cannot be, such as a pattern that is no regular expression."""
    value = None if parameter.check is None else constant_value(binder.site.catalog, bound)
    if parameter.check is None or value is None or not parameter.type.accepts(type_of(value)):
        return  # another type is reported as that already
    try:
        parameter.check(value)
    except DataError as error:
        binder.problems.error("B307", str(error), span)


def count_of(binder: Binding, bound: Bound) -> Const | None:
    """A number of events as a constant; None for anything else."""
    found = constant(binder.site.catalog, bound)
    is_count = found is not None and found.value.__class__ is int and 0 <= found.value <= EVENTS_MAX
    return found if is_count else None


def remember(calls: list[C], call: C) -> int:
    """The place of a call in its list; equal calls share one."""
    if call in calls:
        return calls.index(call)
    calls.append(call)
    return len(calls) - 1


def argument_place(node: ast.Call, place: Place) -> Place:
    """The place of the arguments of a call that works over several events."""
    name = f"the arguments of {node.name}()"
    return replace(place, aggregates=False, windows=False, of_window=False, name=name, builtins={})
