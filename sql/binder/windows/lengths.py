"""Parameters that all three languages share, of windows and of other clauses: lengths of time, and counts."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.binding import Binding, no_subquery
from sql.binder.constants import at_start
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.calendar.period import Period
from sql.errors import Problems, Span
from sql.plan.bound import Bound, Const
from sql.plan.clauses import PeriodArgument
from sql.types import Type, literal

PARAMETER = Place("a window parameter", aliases=False, analytics=False)

NO_SUBQUERY = no_subquery(
    "B209", "in a parameter of a window", "have a trigger set a variable, and read that: on … set v = …"
)

Amounts = tuple[tuple[Bound, str], ...]
"""The parts of a length of time, each with its unit."""


def no_reads(binder: Binding, bound: Bound, node: ast.Expr, what: str) -> None:
    """Report a parameter that would have to be known before an event arrives."""
    if bound.reads_events():
        message = f"{what} is fixed when the statement starts and cannot read an event's columns"
        hint = "write a constant, a variable, or a property of the context"
        binder.problems.error("B505", message, node.span, hint)


def check_count(
    problems: Problems, bound: Bound, what: str, span: Span, *, least: int = 1, code: str = "B504",
    hint: str | None = None,
) -> None:  # fmt: skip
    """Report what cannot be a whole number of at least `least`; `what` is the sentence before these words."""
    if bound is UNKNOWN:
        return
    if isinstance(bound, Const) and (bound.value.__class__ is not int or bound.value < least):
        message = f"{what} a whole number of at least {least}, not {literal(bound.value)}"
        problems.error(code, message, span, hint)
    elif not Type.INTEGER.accepts(bound.type):
        problems.error(code, f"{what} a whole number, not {bound.type.value}", span, hint)


# --- lengths of time ----------------------------------------------------------------------------------------


def bind_period(binder: Binding, node: ast.Expr, what: str, *, zero_allowed: bool = False) -> PeriodArgument:
    """A length of time: words, or a number of seconds. One whose value is no such length is an error here."""
    amounts = amounts_in(binder, node, what)
    parts = tuple((binder.bind(amount, PARAMETER), unit) for amount, unit in amounts)
    for bound, _ in parts:
        no_reads(binder, bound, node, what)
    present = tuple((at_start(binder.site.catalog, bound), unit) for bound, unit in parts)
    check_amounts(binder, present, f"{what} is", what, node.span, zero_allowed=zero_allowed)
    return PeriodArgument(parts, node.span)


def amounts_in(binder: Binding, node: ast.Expr, name: str) -> Sequence[tuple[ast.Expr, str]]:
    """The amounts of a length of time, each with its unit; a number alone is one of seconds. `name`: that of
    the parameter."""
    if isinstance(node, ast.Unary) and isinstance(node.operand, ast.PeriodLiteral):
        binder.problems.error("B506", f"{name}: a time period has no sign", node.span)
        node = node.operand
    if isinstance(node, ast.PeriodLiteral):
        return [(part.amount, part.unit) for part in node.parts]
    return [(node, "second")]


def check_amounts(
    binder: Binding, parts: Amounts, what: str, name: str, span: Span, *, zero_allowed: bool = False
) -> None:
    """Report amounts that are no numbers, and constant ones that make no length of time; `what` is the
    sentence before these words, `name` the parameter."""
    hint = "write 10 sec, 2 min 30 sec or a number of seconds"
    for bound, _ in parts:
        binder.expect(bound, Type.NUMBER, f"{what} a length of time", span, hint)
        if isinstance(bound, Const) and bound.value is None and bound is not UNKNOWN:
            binder.problems.error("B506", f"{what} a length of time, not NULL", span, hint)
    amounts = {unit: bound.value for bound, unit in parts if isinstance(bound, Const)}
    if len(amounts) == len(parts) and all(amount.__class__ in (int, float) for amount in amounts.values()):
        try:
            Period.of(amounts, zero_allowed=zero_allowed)
        except ValueError as error:
            binder.problems.error("B506", f"{name}: {error}", span, hint)
