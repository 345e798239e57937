"""The windows of stream queries."""

from __future__ import annotations

from sql import syntax as ast
from sql.algebra.windows.lots import lot_window
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.windows.lengths import PARAMETER, bind_period, check_count, no_reads
from sql.plan.bound import Bound
from sql.plan.clauses import LotPlan, LotWindowPlan


def bind_lot(binder: ExpressionBinder, source: ast.LotSource) -> LotPlan:
    """The window of a stream query."""
    windows = tuple(_lot_window(binder, name, argument) for name, argument in source.windows)
    every_period = every_count = None
    if source.every is not None and windows[0].length is not None:
        every_period = bind_period(binder, source.every, "'every'")
    elif source.every is not None:
        every_count = _count(binder, source.every, "'every'")
    lot = LotPlan(
        tuple(binder.bind(part, PARAMETER) for part in source.partition_by),
        windows,
        every_period,
        every_count,
        tuple(binder.bind(part, PARAMETER) for part in source.unique),
    )
    if lot.retains_all and (len(windows) > 1 or every_period or every_count or lot.partition_by):
        binder.problems.error(
            "B530", "'retain all' is neither partitioned nor batched nor limited in time", source.span
        )
    return lot


def _lot_window(binder: ExpressionBinder, name: str, node: ast.Expr | None) -> LotWindowPlan:
    argument = lot_window(name).argument
    return LotWindowPlan(
        name,
        bind_period(binder, node, f"'{name}'") if node is not None and argument == "period" else None,
        _count(binder, node, f"'{name}'") if node is not None and argument == "count" else None,
    )


def _count(binder: ExpressionBinder, node: ast.Expr, what: str) -> Bound:
    bound = binder.bind(node, PARAMETER)
    no_reads(binder, bound, node, what)
    check_count(binder.problems, bound, f"{what} is", node.span)
    return bound
