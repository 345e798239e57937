"""The value of an expression that reads nothing: known before the rule runs."""

from __future__ import annotations

from typing import Any

from sql.algebra.event import Event
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.support import Warnings
from sql.functions.definition import Context
from sql.plan.bound import Apply, Bound, Const, Op, Slot
from sql.types import type_of

_NO_EVENT = Event(None, 0, -1)


def constant_value(catalog: Catalog, bound: Bound) -> Any:
    """The value; None for NULL, and for an expression that `constant` knows no value of."""
    found = constant(catalog, bound)
    return None if found is None else found.value


def constant(catalog: Catalog, bound: Bound) -> Const | None:
    """The expression as its value; None for one that reads an event, the clock or anything else,
    and for one that cannot be evaluated, which each event reports."""
    return _evaluated(catalog, bound) if all(map(_is_pure, bound.walk())) else None


def at_start(catalog: Catalog, bound: Bound) -> Bound:
    """The expression as its value when the statement starts, if it reads no more than variables;
    else as it is."""
    is_known = all(_is_pure(node) or _is_variable(node) for node in bound.walk())
    return (_evaluated(catalog, bound) or bound) if is_known else bound


def _evaluated(catalog: Catalog, bound: Bound) -> Const | None:
    if isinstance(bound, Const):
        return bound
    try:
        value = FunctionSet(catalog, Context(), Warnings()).value(bound)(_NO_EVENT)
    except DATA_ERRORS:
        return None
    return Const(value, type=type_of(value), span=bound.span)


def _is_pure(node: Bound) -> bool:
    return isinstance(node, Const | Op) or (isinstance(node, Apply) and not node.function.context)


def _is_variable(node: Bound) -> bool:
    return isinstance(node, Slot) and node.kind == "variable"
