"""From events to output rows: SELECT, GROUP BY, HAVING, ORDER BY, LIMIT over a list of events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cmp_to_key, partial
from typing import Any

from sql.plan.bound import AggregateCall, Bound, Slot
from sql.plan.clauses import Criterion, ItemPlan
from sql.plan.logical import Plan
from sql.types import key_of, order_key
from tests.reference.aggregates import AGGREGATES, distinct
from tests.reference.expressions import Place, Row, evaluate, holds


@dataclass(frozen=True, eq=False)
class Event:
    """One event: its instant on the query's clock, its place in the order of arrival, its columns."""

    time_ms: int
    seq: int
    row: Row


def key(nodes: Iterable[Bound], event: Event) -> tuple[Any, ...]:
    """The group key of an event: NULL is a key, 1 and '1' are two."""
    return tuple(key_of(evaluate(node, Place((event.row,)))) for node in nodes)


def groups(nodes: tuple[Bound, ...], events: Iterable[Event]) -> dict[Any, list[Event]]:
    """The events by group, groups in order of first appearance."""
    out: dict[Any, list[Event]] = {}
    for event in events:
        out.setdefault(key(nodes, event), []).append(event)
    return out


def aggregate(call: AggregateCall, events: list[Event], at: Event | None = None) -> Any:
    """The value of one aggregate over events, oldest first. `group_by:` narrows them to those like `at`."""
    if call.group_by is not None and at is not None:
        events = [event for event in events if key(call.group_by, event) == key(call.group_by, at)]
    events = [event for event in events if holds(call.filter, Place((event.row,)))]
    values = [evaluate(call.args[0], Place((event.row,))) if call.args else True for event in events]
    return AGGREGATES[call.definition.name](distinct(values) if call.distinct else values, *call.constants)


@dataclass(frozen=True)
class Values:
    """What the slots of a row read: the events its aggregates cover, its window,
    whether it is an insert row."""

    plan: Plan
    covered: list[Event]
    event: Event | None = None
    window: dict[str, int] | None = None
    inserted: bool = True
    """Whether it is an insert row."""
    chosen: int = 0
    """The place of its grouping set."""

    def __call__(self, slot: Slot) -> Any:
        match slot.kind:
            case "aggregate":
                if self.plan.aggregates[slot.key].definition.ever:
                    raise NotImplementedError("only statements of the reference remember what has left")
                return aggregate(self.plan.aggregates[slot.key], self.covered, self.event)
            case "window":
                assert self.window is not None
                return self.window[slot.key]
            case "event_time":
                return (
                    self.window["end"]
                    if self.window and self.plan.aggregates and not self.plan.judges_windows
                    else self.event and self.event.time_ms
                )
            case "istream":
                return self.inserted
            case "grouping":
                return slot.key[self.chosen]
        raise NotImplementedError(f"the reference evaluator has no {slot.kind}")

    @property
    def place(self) -> Place:
        return Place((self.event.row if self.event else {},), self)


def project(items: tuple[ItemPlan, ...], place: Place, columns: dict[str, Any] | None) -> Row:
    """One output row. An unnamed item spreads an event into its columns; declared columns
    that are absent are NULL."""
    out: Row = {}
    for item in items:
        value = evaluate(item.value, place)
        if item.invisible:
            continue
        if item.name is not None:
            out[item.name] = value
        elif value is not None:
            whole = value if columns is None else {name: value.get(name) for name in columns}
            out.update({name: part for name, part in whole.items() if name not in item.excluded})
    return out


def output(plan: Plan, candidates: list[Values]) -> list[Row]:
    """The rows of one output batch: HAVING, SELECT, DISTINCT, ORDER BY, LIMIT, in this order."""
    kept = [values for values in candidates if holds(plan.having, values.place)]
    pairs = [(project(plan.items, values.place, plan.sources[0].columns), values) for values in kept]
    if plan.distinct:
        first: dict[Any, tuple[Row, Values]] = {}
        for row, values in pairs:
            first.setdefault(key_of(row), (row, values))
        pairs = list(first.values())
    if plan.order_by:
        order = cmp_to_key(partial(_compare, plan.order_by))
        pairs.sort(key=lambda pair: order(pair[1].place))
    start = 0 if plan.offset is None else evaluate(plan.offset, Place())
    count = None if plan.limit is None else evaluate(plan.limit, Place())
    rows = [row for row, _ in pairs][start:]
    return rows if count is None or count < 0 else rows[:count]


def _compare(criteria: tuple[Criterion, ...], a: Place, b: Place) -> int:
    """ORDER BY: NULL last in either direction unless NULLS FIRST."""
    for item in criteria:
        left, right = evaluate(item.value, a), evaluate(item.value, b)
        if (left is None) != (right is None):
            return -1 if (left is None) == bool(item.nulls_first) else 1
        keys = order_key(left), order_key(right)
        if keys[0] != keys[1]:
            return -1 if (keys[0] < keys[1]) != item.descending else 1
    return 0
