"""State columns: what a column of the SELECT merges from, added to the plan where the SELECT lacks it.

    avg, deviations   the sum and the number of the values
    first, last       the instant of the event whose value it is
    percentiles       a sketch of the values; distinct counts too

Only the `cloud` action sees them (`Plan.states`); rows for other actions are those of the SELECT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from cloud_sync.moments import SAMPLE
from sql import Plan
from sql.aggregates.base import lookup
from sql.errors import NOWHERE, Span
from sql.plan.bound import AggregateCall, Bound, Op, Slot
from sql.plan.clauses import ItemPlan
from sql.record import replace
from sql.types import Type

PERCENTILES = ("median", "percentile_cont", "percentile_disc")
SKETCH = "sketch"
TIMED_AGGREGATES: dict[str, Literal["first", "last"]] = {
    "first": "first",
    "last": "last",
    "last_value": "last",
}
"""Aggregates whose result is the value of one event, and how it merges."""


def state_name(column: str, what: str) -> str:
    """The name of a state column. Sketches are columns of the fleet;
    no column of a query has a name like the others'.

    >>> state_name("mean", "sum"), state_name("p95", SKETCH)
    ('$mean sum', 'p95_sketch')
    """
    return f"{column}_{what}" if what == SKETCH else f"${column} {what}"


def aggregate_of(plan: Plan, item: ItemPlan | None) -> AggregateCall | None:
    """The aggregate that is the whole value of a column, if there is one."""
    value = item.value if item else None
    return plan.aggregates[value.key] if isinstance(value, Slot) and value.kind == "aggregate" else None


def companion(
    plan: Plan,
    columns: Sequence[str],
    call: AggregateCall,
    names: Sequence[str],
    *,
    distinct: bool | None = None,
) -> str | None:
    """The one of `columns`, or the state, with another aggregate of the same values;
    `distinct` overrides that of `call`."""
    same = (call.args, call.distinct if distinct is None else distinct, call.filter, call.group_by)
    for item in plan.items:
        other = aggregate_of(plan, item)
        is_there = item.name in columns or item.name in plan.states
        if not is_there or other is None or other.definition.name not in names:
            continue
        if (other.args, other.distinct, other.filter, other.group_by) == same:
            return item.name
    return None


def with_states(plan: Plan, columns: Sequence[str]) -> Plan:
    """The plan with the states of these columns of its SELECT that it lacks."""
    if plan.selector != "istream" or plan.distinct or plan.insert is not None or plan.spreads:
        return plan
    for name in columns:
        item = next(item for item in plan.items if item.name == name)
        call = aggregate_of(plan, item)
        if call is not None and call.group_by is None:
            for what, needed in _needed(plan, columns, call):
                if state_name(name, what) not in (*columns, *plan.states):
                    plan = _with(plan, state_name(name, what), needed, item.value.span)
    return plan


def _needed(plan: Plan, columns: Sequence[str], call: AggregateCall) -> Iterator[tuple[str, AggregateCall]]:
    """The aggregates that the state of a column lacks, each with a word for it."""
    name = call.definition.name
    if counts_distinct(call):
        same = companion(plan, columns, call, ("theta_sketch",), distinct=False)
        if same is None and lookup("theta_sketch") is not None:
            yield SKETCH, replace(_another(call, "theta_sketch"), distinct=False)
    elif call.distinct:
        return
    elif name == "avg" or name in SAMPLE:
        for what in ("sum", "count"):
            if companion(plan, columns, call, (what, f"lot_{what}")) is None:
                yield what, _another(call, what)
    elif name in PERCENTILES and companion(plan, columns, call, ("kll_sketch",)) is None:
        yield SKETCH, _another(call, "kll_sketch")
    elif timed(call) is not None and plan.mode == "sample" and not plan.joins:
        yield "at", _instant(call)


def counts_distinct(call: AggregateCall) -> bool:
    """True for a number of distinct values."""
    return (call.definition.name == "count" and call.distinct) or call.definition.name == "countunique"


def timed(call: AggregateCall) -> Literal["first", "last"] | None:
    """The merge of the first or the last value, which goes by instants; None for other aggregates."""
    name = call.definition.name
    if call.distinct or (name in ("first", "last") and call.constants not in ((), (0,))):
        return None
    return TIMED_AGGREGATES.get(name)


def _another(call: AggregateCall, name: str) -> AggregateCall:
    """Another aggregate of the same values."""
    definition = lookup(name)
    assert definition is not None
    return replace(call, definition=definition, constants=(), span=NOWHERE)


def _instant(call: AggregateCall) -> AggregateCall:
    """The instant of the event whose value a `first` or `last` is."""
    ignores_null = call.definition.name == "last_value" and call.constants == (True,)
    time = Slot("event_time", type=Type.INTEGER)
    found = replace(_another(call, TIMED_AGGREGATES[call.definition.name]), args=(time,))
    if not ignores_null:
        return found
    is_there: Bound = Op("not", (Op("isnull", call.args, type=Type.BOOLEAN),), type=Type.BOOLEAN)
    both = is_there if call.filter is None else Op("and", (call.filter, is_there), type=Type.BOOLEAN)
    return replace(found, filter=both)


def _with(plan: Plan, name: str, call: AggregateCall, span: Span) -> Plan:
    """The plan with a column that no row shows. Equal calls share one accumulator."""
    aggregates = plan.aggregates if call in plan.aggregates else (*plan.aggregates, call)
    kind = call.definition.result_type([value.type for value in call.args])
    item = ItemPlan(name, Slot("aggregate", aggregates.index(call), type=kind, span=span))
    return replace(plan, aggregates=aggregates, items=(*plan.items, item), states=(*plan.states, name))
