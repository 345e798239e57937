"""Parameters of windows that all three languages share: lengths of time, and counts."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.calendar.period import Period
from sql.plan.bound import Bound, Const, Read
from sql.plan.clauses import PeriodArgument
from sql.types import Type

PARAMETER = Place("a window parameter", aliases=False, analytics=False)


def no_reads(binder: ExpressionBinder, bound: Bound, node: ast.Expr, what: str) -> None:
    """Report a parameter that would have to be known before an event arrives."""
    if any(isinstance(part, Read) for part in bound.walk()):
        binder.problems.error(
            "B505", f"{what} is fixed when the statement starts and cannot read an event's columns", node.span
        )


def bind_period(binder: ExpressionBinder, node: ast.Expr, what: str) -> PeriodArgument:
    """A length of time: words, or a number of seconds. Constant ones below 1 ms are errors here."""
    if isinstance(node, ast.Unary) and isinstance(node.operand, ast.PeriodLiteral):
        binder.problems.error("B506", f"{what}: a time period has no sign", node.span)
        node = node.operand
    if isinstance(node, ast.PeriodLiteral):
        parts = tuple((binder.bind(part.amount, PARAMETER), part.unit) for part in node.parts)
    else:
        parts = ((binder.bind(node, PARAMETER), "second"),)
    for bound, _ in parts:
        no_reads(binder, bound, node, what)
        binder.expect(bound, Type.NUMBER, f"{what} is a length of time", node.span)
    amounts = {unit: bound.value for bound, unit in parts if isinstance(bound, Const)}
    if len(amounts) == len(parts) and all(amount.__class__ in (int, float) for amount in amounts.values()):
        try:
            Period.of(amounts)
        except ValueError as error:
            binder.problems.error("B506", f"{what}: {error}", node.span)
    return PeriodArgument(parts, node.span)
