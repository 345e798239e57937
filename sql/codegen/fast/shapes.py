"""Which plans the fast path covers, and why not the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sql.catalog.streams import Catalog
from sql.codegen.fast.batches import BatchQuery
from sql.codegen.fast.data_batches import DataBatchQuery
from sql.codegen.fast.every_event import (
    DataClockQuery,
    KeepAllQuery,
    LatestQuery,
    LengthQuery,
    TimeQuery,
)
from sql.codegen.fast.feeding import FEEDING, is_numeric
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import Refused
from sql.codegen.fast.stateless import StatelessQuery
from sql.errors import Span
from sql.plan.bound import AggregateCall, Apply, Bound, Slot
from sql.plan.logical import Plan
from sql.rows import Shape
from sql.runtime.groups import is_checked

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


def _batched(plan: Plan) -> type[FastQuery]:
    if plan.analytics:
        raise Refused("an analytic function runs before the window", plan.analytics[0].span)
    _check_variables(plan)
    _check_stamp(plan)
    for call in plan.aggregates:
        if not is_numeric(call) and is_checked(call):
            raise Refused(f"aggregate {call.definition.name} may refuse a value because of the batch before", call.span)
    return _fed(plan, DataBatchQuery if plan.sources[0].windows[0].name == "ext_timed_batch" else BatchQuery)


def _running(plan: Plan) -> type[FastQuery]:
    window = plan.sources[0].windows[0]
    if plan.analytics:
        raise Refused("an analytic function runs before the window", plan.analytics[0].span)
    _check_running(plan, may_order=plan.row_kind == "group" or plan.selector != "istream")
    _check_stamp(plan)
    return _RUNNING[window.name]


def _check_running(plan: Plan, *, may_order: bool) -> None:
    """What a loop that shows rows for every event cannot have."""
    if not may_order and (plan.order_by or plan.limit is not None or plan.offset is not None):
        raise Refused("it has ORDER BY or LIMIT for single rows")
    for call in plan.aggregates:
        if call.definition.ever:
            raise Refused(f"aggregate {call.definition.name} keeps what has left", call.span)
        if call.group_by is not None:
            raise Refused(f"aggregate {call.definition.name} has its own GROUP BY", call.span)
    _check_variables(plan)


def _check_stamp(plan: Plan) -> None:
    """The time stamp of an event that is held is the one it came with."""
    stamp = plan.sources[0].windows[0].arguments.get("timestamp")
    if stamp is not None:
        _check_instants(plan, [stamp])


def _check_variables(plan: Plan) -> None:
    """What an event is taken in with must be what it is taken out with."""
    for expression in _per_event(plan, with_items=False):
        for node in expression.walk():
            if isinstance(node, Slot) and node.kind in ("variable", "arrived"):
                raise Refused(f"variable {node.key} may change while an event is held", node.span)


def _fed(plan: Plan, query: type[FastQuery]) -> type[FastQuery]:
    """The query, or the one in its place where an aggregate looks at more than numbers."""
    calls = [call for call in plan.aggregates if not is_numeric(call)]
    for call in calls:
        definition = call.definition
        if query not in _FED or call.group_by is not None:
            _check_aggregate(call)
        if definition.needs_event or definition.ever or (not call.args and definition.of_numbers is None):
            raise Refused(f"aggregate {definition.name} looks at the events themselves", call.span)
    return _FED[query] if calls else query


def _check_aggregate(call: AggregateCall) -> None:
    if call.definition.of_numbers is None or len(call.args) > 1 or call.constants:
        raise Refused(f"aggregate {call.definition.name} looks at more than numbers", call.span)
    if call.distinct or call.filter is not None or call.group_by is not None:
        raise Refused(f"aggregate {call.definition.name} has DISTINCT, FILTER or its own GROUP BY", call.span)


_RUNNING: dict[str, type[FastQuery]] = {
    "length": LengthQuery, "lastevent": LengthQuery, "keepall": KeepAllQuery, "time": TimeQuery,
    "ext_timed": DataClockQuery, "unique": LatestQuery,
}  # fmt: skip

_FED = FEEDING

BATCHES = ("length_batch", "time_batch", "time_length_batch", "ext_timed_batch")


# --- the clock --------------------------------------------------------------------------------------------------------


def _check_clock(plan: Plan) -> None:
    """Functions of the present instant see each event's own; a loop over a batch has one instant."""
    if plan.mode == "delta" and plan.timestamp is None:
        return
    _check_instants(plan, _per_event(plan))


def _check_instants(plan: Plan, expressions: Iterable[Bound]) -> None:
    for expression in expressions:
        for node in expression.walk():
            if isinstance(node, Apply) and node.function.context:
                raise Refused(f"{node.function.name}() depends on the instant of each event", node.span)


def _per_event(plan: Plan, *, with_items: bool = True) -> Iterator[Bound]:
    if plan.sources[0].filter is not None:
        yield plan.sources[0].filter
    if plan.window is not None and plan.window.filter is not None:
        yield plan.window.filter
    if plan.where is not None:
        yield plan.where
    for window in plan.sources[0].windows:
        if (stamp := window.arguments.get("timestamp")) is not None:
            yield stamp
    yield from plan.group_by
    for aggregate in plan.aggregates:
        yield from aggregate.args
        if aggregate.filter is not None:
            yield aggregate.filter
    for analytic in plan.analytics:
        yield from analytic.args
    if plan.mode == "delta" and with_items:
        yield from (item.value for item in plan.items)
