"""A statement over a derived-value window as one over the window below it: the columns that it reads become
aggregates.

    select average, stddev from m#length(10)#uni(x)   ->   a row per update of m#length(10), from running sums

The window would post a row with all of its columns at each update, as an event of its own.
Only a statement without groups, aggregates, old rows, output limits and earlier rows is folded:
it shows each row once and keeps none.
"""

from __future__ import annotations

from collections.abc import Iterator

from sql.algebra.windows.catalog import WINDOWS
from sql.catalog.streams import Catalog
from sql.plan.bound import AggregateCall, Apply, Bound, Const, Op, Read, Slot
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan
from sql.plan.rewriting import rewritten
from sql.record import replace


def folded(plan: Plan, catalog: Catalog) -> Plan:
    """The plan without its derived-value window, or the plan itself where that would change its results."""
    calls = _calls(plan)
    if not calls:
        return plan
    places = {column: place for place, column in enumerate(calls)}

    def change(node: Read | Slot) -> Bound:
        if isinstance(node, Slot) or node.column is None:
            return node
        return Slot("aggregate", places[node.column], type=node.type, span=node.span)

    source = plan.sources[0]
    below = replace(source, windows=source.windows[:-1], columns=catalog.streams[source.stream].columns)
    return replace(
        plan,
        sources=(below,),
        items=tuple(replace(item, value=rewritten(item.value, change)) for item in plan.items),
        aggregates=tuple(calls.values()),
        where=None,
        having=None if plan.where is None else rewritten(plan.where, change),
        row_kind="aggregate",
    )


def _calls(plan: Plan) -> dict[str, AggregateCall]:
    """The aggregates of a foldable statement by the column for which they stand;
    none if it is not foldable."""
    if not _shows_each_row(plan):
        return {}
    *below, window = plan.sources[0].windows or (None,)
    if window is None or any(WINDOWS[plan.name].role != "retain" for plan in below):
        return {}
    aggregates = WINDOWS[window.name].aggregates
    expressions = [item.value for item in plan.items] + ([] if plan.where is None else [plan.where])
    columns = dict.fromkeys(column for bound in expressions for column in _columns(bound))
    if window.arguments.get("extras") or not (aggregates and set(columns) <= set(aggregates)):
        return {}
    value = window.arguments["x"]
    return {
        column: AggregateCall(aggregates[column], (value,), span=window.span) for column in columns if column
    }


def _shows_each_row(plan: Plan) -> bool:
    """True if the plan has one source and no clauses but SELECT, WHERE and INSERT INTO."""
    if len(plan.sources) != 1:
        return False
    source = plan.sources[0]
    only = SourcePlan(source.stream, source.alias, source.filter, source.windows)
    return source == only and plan == Plan(
        text=plan.text, mode="delta", sources=plan.sources, items=plan.items, options=plan.options,
        name=plan.name, where=plan.where, insert=plan.insert, timestamp=plan.timestamp,
        timestamps=plan.timestamps, output_columns=plan.output_columns, reads=plan.reads,
        warnings=plan.warnings, priority=plan.priority,
    )  # fmt: skip


def _columns(bound: Bound) -> Iterator[str | None]:
    """The columns that an expression reads; None for anything else that depends on the event."""
    for node in bound.walk():
        if isinstance(node, Read):
            yield node.column
        elif not isinstance(node, Const | Op | Apply) and not (
            isinstance(node, Slot) and node.kind == "variable"
        ):
            yield None
