"""Which plans the fast path covers, and why not the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sql.catalog.streams import Catalog
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import Refused
from sql.codegen.fast.stateless import StatelessQuery
from sql.errors import Span
from sql.plan.bound import Apply, Bound
from sql.plan.logical import Plan
from sql.rows import Shape

if TYPE_CHECKING:
    from sql.algebra.sample.query import SampledQuery


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plan runs on the operators."""

    reason: str
    span: Span | None = None


def compile_fast(name: str, plan: Plan, catalog: Catalog, now_ms: int, shape: Shape = "dict",
                 make_row: Callable[[dict[str, Any]], Any] | None = None
                 ) -> FastQuery | SampledQuery | Refusal:  # fmt: skip
    """A fast query for the plan, started at `now_ms`; or why there is none."""
    if plan.mode == "sample":
        from sql.algebra.sample.query import SampledQuery

        return SampledQuery(name, plan, catalog, now_ms=now_ms, shape=shape, make_row=make_row)
    try:
        kind = _shape_of(plan)
        return kind(name, plan, catalog, now_ms=now_ms, shape=shape, make_row=make_row)
    except Refused as refused:
        return Refusal(refused.reason, refused.span)


def explain_code(name: str, plan: Plan, catalog: Catalog, shape: Shape = "struct") -> str:
    """The generated code of a rule, or the sentence that says why it runs on the operators."""
    query = compile_fast(name, plan, catalog, 0, shape)
    return query.source if not isinstance(query, Refusal) else f"# runs on the operators: {query.reason}\n"


def _shape_of(plan: Plan) -> type[FastQuery]:
    if plan.mode == "lots":
        raise Refused("stream queries run on the operators")
    if len(plan.sources) != 1 or plan.joins:
        raise Refused("it joins several sources")
    if plan.sources[0].recognize is not None:
        raise Refused("it has match_recognize")
    if plan.sources[0].pattern is not None:
        raise Refused("its source is a pattern", plan.sources[0].pattern.root.span)
    if plan.subqueries:
        raise Refused("it has a subquery")
    if plan.relations:
        raise Refused("it reads a named window or a table")
    if plan.spreads:
        raise Refused("it makes rows or columns of values (unnest, extract, changed_cols)")
    if plan.hits:
        raise Refused("it counts the rows it has given out")
    if plan.prevs:
        raise Refused("it reads earlier events (prev, prior)", plan.prevs[0].span)
    _check_clock(plan)
    return _delta(plan)


def _delta(plan: Plan) -> type[FastQuery]:
    source = plan.sources[0]
    if plan.output is not None:
        raise Refused("it has an output limit")
    if source.windows:
        raise Refused("its windows are chained or of a kind without generated code", source.windows[0].span)
    if plan.aggregates:
        raise Refused("it has aggregates without a window", plan.aggregates[0].span)
    if plan.selector == "rstream" or plan.order_by or plan.limit is not None or plan.offset is not None:
        raise Refused("it has ORDER BY, LIMIT or rstream without a window")
    return StatelessQuery


# --- the clock --------------------------------------------------------------------------------------------------------


def _check_clock(plan: Plan) -> None:
    """Functions of the present instant see each event's own; a loop over a batch has one instant."""
    if plan.timestamp is None:
        return
    for expression in _per_event(plan):
        for node in expression.walk():
            if isinstance(node, Apply) and node.function.context:
                raise Refused(f"{node.function.name}() depends on the instant of each event", node.span)


def _per_event(plan: Plan) -> Iterator[Bound]:
    for condition in (plan.sources[0].filter, plan.where, plan.having):
        if condition is not None:
            yield condition
    for analytic in plan.analytics:
        yield from analytic.args
    yield from (item.value for item in plan.items)
