"""The windows of stream queries."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.algebra.windows.lots import EVERY_COUNT, LOT_ENTRIES, PARTITION, UNIQUE, LotPart
from sql.binder.constants import at_start
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.scope import UNKNOWN
from sql.binder.windows.lengths import NO_SUBQUERY, PARAMETER, bind_period, check_count, no_reads
from sql.plan.bound import Bound, Const, Slot
from sql.plan.clauses import LotPlan, LotWindowPlan


def bind_lot(binder: ExpressionBinder, source: ast.LotSource) -> LotPlan:
    """The window of a stream query."""
    binder = ExpressionBinder(binder.scope, NO_SUBQUERY)
    windows = tuple(_bound_window(binder, name, argument) for name, argument in source.windows)
    every_period = every_count = None
    if source.every is not None and windows[0].length is not None:
        every_period = bind_period(binder, source.every, "'every'")
    elif source.every is not None:
        every_count = _count(binder, source.every, "'every'", EVERY_COUNT.example)
    lot = LotPlan(
        _keys(binder, source.partition_by, PARTITION),
        windows,
        every_period,
        every_count,
        _keys(binder, source.unique, UNIQUE),
    )
    others = (*windows[1:], every_period, every_count, *lot.partition_by, *lot.unique)
    if lot.retains_all and any(others):
        message = "'retain all' is neither partitioned nor batched nor unique nor limited in time"
        binder.problems.error("B530", message, source.span)
    if not windows:
        _check_no_keys(binder, source)
    return lot


def _check_no_keys(binder: ExpressionBinder, source: ast.LotSource) -> None:
    """Report keys where no window holds anything."""
    for nodes, part in ((source.partition_by, PARTITION), (source.unique, UNIQUE)):
        if nodes:
            message = f"'{part.name}' has no effect: without a window each item is there for its step alone"
            binder.problems.error("B604", message, nodes[0].span, f"for example {part.example}")


def _keys(binder: ExpressionBinder, nodes: Sequence[ast.Expr], part: LotPart) -> tuple[Bound, ...]:
    keys = tuple(binder.bind(node, PARAMETER) for node in nodes)
    for key, node in zip(keys, nodes, strict=True):
        if isinstance(key, Const | Slot) and key is not UNKNOWN:
            message = f"'{part.name}' a constant keeps nothing apart"
            binder.problems.error("B507", message, node.span, f"for example {part.example}")
    return keys


def _bound_window(binder: ExpressionBinder, name: str, node: ast.Expr | None) -> LotWindowPlan:
    argument = LOT_ENTRIES[name].argument
    return LotWindowPlan(
        name,
        bind_period(binder, node, f"'{name}'") if node is not None and argument == "period" else None,
        _count(binder, node, f"'{name}'", LOT_ENTRIES[name].example)
        if node is not None and argument == "count"
        else None,
    )


def _count(binder: ExpressionBinder, node: ast.Expr, what: str, example: str) -> Bound:
    bound = binder.bind(node, PARAMETER)
    no_reads(binder, bound, node, what)
    present = at_start(binder.site.catalog, bound)
    check_count(binder.problems, present, f"{what} is", node.span, hint=f"for example {example}")
    return bound
