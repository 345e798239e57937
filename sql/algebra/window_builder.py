"""From the windows of a plan to operators.

Expressions of parameters are compiled once per plan; lengths and sizes are evaluated when an instance starts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

from sql.aggregates.base import Removal
from sql.algebra.accumulators import argument_of, maker_of
from sql.algebra.derived.statistics import Derived, Owner
from sql.algebra.event import Event
from sql.algebra.gate.batch import EventBatch
from sql.algebra.gate.gate import Gate
from sql.algebra.gate.gated_queue import CountedQueue, PeriodicQueue, UpdatePoints
from sql.algebra.gate.triggers import Trigger
from sql.algebra.intersect import intersect
from sql.algebra.key import Key, Reclaim
from sql.algebra.operator import Chain, Current, LastRow, Operator, Pass
from sql.algebra.retain.by_key import LatestOf, LatestPerKey
from sql.algebra.retain.grouped import QueuePerKey
from sql.algebra.retain.policies import Policy
from sql.algebra.retain.predicate import Predicate
from sql.algebra.retain.queues import READ_NO_EVENT, Lifetime, Queue
from sql.algebra.union import Union
from sql.algebra.windows.catalog import WINDOWS, Computed, Start
from sql.algebra.windows.lots import LOT_ENTRIES
from sql.algebra.windows.parameters import Parameters, period, size, time_of
from sql.calendar.grid import Grid
from sql.calendar.period import Period
from sql.codegen.functions import FunctionSet, constant_value
from sql.plan.bound import Bound, reads_present
from sql.plan.clauses import (
    LotPlan,
    LotWindowPlan,
    PredicatePlan,
    SourcePlan,
    WindowPlan,
    key_names,
)
from sql.plan.options import RuleOptions
from sql.plan.rewriting import without_event
from sql.plan.walk import variables_in
from sql.rows import as_dict

P = ParamSpec("P")
R = TypeVar("R")

PER_KEY = ("length", "lastevent", "keepall", "time")
"""Windows that groupwin has in the loop."""


class WindowBuilder:
    """Builds the operators of one source of FROM."""

    def __init__(
        self,
        source: SourcePlan,
        options: RuleOptions,
        functions: FunctionSet,
        *,
        alone: bool = False,
        keeps_values: bool = False,
        shown_by: tuple[Bound, ...] = (),
    ) -> None:
        """`functions`: those of the filter and of parameters, over the rows of the source.
        `alone`: the only source of a statement, whose single window may be written into the loop.
        `keeps_values`: of its events only what they contribute is read.
        `shown_by`: the keys of its groups, where all that a step changes in a group is one row."""
        self.source = source
        self.options = options
        self.functions = functions
        self.zone = options.zone_info()
        self.read_at_start = variables_in((source.windows, source.lot))
        self.alone = alone
        self.keeps_values = keeps_values and _is_one_window(source)
        self.shown_by = shown_by
        self.parameters = Parameters(functions)

    def build(self, now_ms: int, owner: Owner, started: Callable[[], int]) -> Operator:
        """The operator for the source's windows, starting at `now_ms`; `started` returns the start of the
        statement, once it runs."""
        if self.source.lot is not None:
            return self._lot(self.source.lot, now_ms, started)
        plans = list(self.source.windows)
        if not plans:
            return LastRow() if self.source.keeps_last else Pass()
        if plans[0].name == "groupwin":
            return self._per_key(plans, now_ms) or self._grouped(plans, owner)
        return self._stages(plans, {}, now_ms, owner)

    def _per_key(self, plans: list[WindowPlan], now_ms: int) -> Operator | None:
        """One queue of the loop per key, if there is no more to it."""
        group, *inner = plans
        if not self.alone or len(inner) != 1 or self.source.reclaim_ms or inner[0].name not in PER_KEY:
            return None
        keys = group.arguments["keys"]
        if inner[0].name == "time" and keys == self.shown_by:
            return Lifetime(self._argument(inner[0], "period", "period"), self.zone, Removal.ANY)
        key = self.parameters.key(group, "keys", keys)
        make = self._as_at_start(lambda: self._line(inner[0], now_ms))
        return QueuePerKey(keys, key, make, self.options.max_groups)

    def _as_at_start(self, make: Callable[P, R]) -> Callable[P, R]:
        """Wrap `make` so that windows of keys that come later begin with the present values of variables."""
        began = self.functions.catalog.values_of(self.read_at_start)
        if not began:
            return make

        def made(*args: P.args, **kwargs: P.kwargs) -> R:
            with self.functions.catalog.holding(began):
                return make(*args, **kwargs)

        return made

    def _line(self, plan: WindowPlan, now_ms: int) -> Queue:
        window = self._make(plan, now_ms)
        assert isinstance(window, Queue)
        return window

    def _grouped(self, plans: list[WindowPlan], owner: Owner) -> Operator:
        group, *inner = plans
        merge = next((i for i, plan in enumerate(inner) if plan.name == "merge"), len(inner))
        rest = inner[merge + 1 :]
        names = [] if rest else key_names(group)
        keys = group.arguments["keys"]
        values = self.parameters.once(group, "values", lambda: [self.functions.value(key) for key in keys])

        def make(key: Hashable, first: Event) -> Operator:
            columns = {name: value(first) for name, value in zip(names, values, strict=False)}
            return self._stages(inner[:merge], columns, first.time_ms, owner)

        hint = self.source.reclaim_ms
        reclaim = Reclaim(*hint) if hint else None
        key_of = self.parameters.key(group, "keys", keys)
        grouped = Key(key_of, self._as_at_start(make), reclaim, self.options.max_groups)
        return Chain(grouped, self._stages(rest, {}, 0, owner)) if rest else grouped

    def _stages(
        self, plans: list[WindowPlan], key_columns: dict[str, Any], now_ms: int, owner: Owner
    ) -> Operator:
        """Data windows as one intersection or union, then a derived-value window if there is one."""
        members: list[Policy | EventBatch] = []
        derived: Operator | None = None
        for plan in plans:
            made = self._make(plan, now_ms)
            if WINDOWS[plan.name].role == "derived":
                derived = self._derived(plan, made, key_columns, owner)
            else:
                members.append(EventBatch(made) if isinstance(made, Trigger) else made)
        data = self._combine(members)
        if derived is None:
            return data
        return derived if isinstance(data, Pass) else Chain(data, derived)

    def _combine(self, members: list[Policy | EventBatch]) -> Operator:
        if not members:
            return Pass()
        policies = [member for member in members if isinstance(member, Policy)]
        if self.source.union:
            return Union(*members)
        batch = next((member for member in members if isinstance(member, EventBatch)), None)
        if batch is not None:
            return Gate(batch, policies)
        return self._kept(policies[0]) if self.alone and len(policies) == 1 else intersect(policies)

    def _kept(self, window: Policy) -> Policy:
        """The window, as one of what events contribute where it can be."""
        if self.keeps_values and isinstance(window, Queue) and type(window) in READ_NO_EVENT:
            window.keeps_values = True
        return window

    def _make(self, plan: WindowPlan, now_ms: int) -> Any:
        spec = WINDOWS[plan.name]
        assert spec.make is not None
        start = Start(now_ms, self.zone)
        arguments = {
            parameter.name: self._argument(plan, parameter.name, parameter.kind)
            for parameter in spec.parameters
            if spec.role != "derived"
        }
        return spec.make(start, **arguments)

    def _argument(self, plan: WindowPlan, name: str, kind: str) -> Any:
        argument = plan.arguments.get(name)
        if argument is None:
            return None
        if kind in ("period", "delay"):
            return period(argument, self.functions, zero_allowed=kind == "delay")
        if kind == "size":
            return size(argument, self.functions)
        if kind in ("reference", "include"):
            return constant_value(argument, self.functions)
        if kind == "timestamp":
            read = self.parameters.once(plan, name, lambda: self.functions.value(argument))
            own_time = self.parameters.of_arrival(plan, "time", lambda: time_of(read))
            return Computed(argument, own_time, read, not reads_present(argument))
        if kind == "keys":
            key = self.parameters.key(plan, name, argument)
            return Computed(argument, key, key)
        if kind == "criteria":
            return self.parameters.of_arrival(
                plan, name, lambda: self.functions.criteria(argument, nulls_lowest=True)
            )
        if kind == "predicate":
            return self._predicate(plan, name, argument)
        return argument

    def _predicate(self, plan: WindowPlan, name: str, predicate: PredicatePlan) -> Predicate:
        def compiled() -> Any:
            makers = [maker_of(call, Removal.ANY) for call in predicate.aggregates]
            arguments = [argument_of(call, self.functions) for call in predicate.aggregates]
            tests = [self.functions.value(test) for test in (predicate.test, without_event(predicate.test))]
            return *tests, arguments, lambda: [make() for make in makers]

        return Predicate(predicate.test, *self.parameters.once(plan, name, compiled))

    def _derived(
        self, plan: WindowPlan, statistic: Any, key_columns: dict[str, Any], owner: Owner
    ) -> Derived:
        spec = WINDOWS[plan.name]

        def compiled() -> Any:
            values = [
                self.functions.value(plan.arguments[p.name]) for p in spec.parameters if p.kind == "value"
            ]
            extras = [(name, self.functions.value(bound)) for name, bound in plan.arguments.get("extras", ())]
            return _tuple_of(values), extras

        value, extras = self.parameters.once(plan, "derived", compiled)

        def extra_columns(event: Event | None) -> dict[str, Any]:
            row: dict[str, Any] = {}
            for name, function in extras:
                if name is not None:
                    row[name] = None if event is None else function(event)
                elif event is not None and isinstance(event.row, tuple):
                    assert self.source.pattern is not None
                    row |= self.source.pattern.by_name(event.row)
                elif event is not None:
                    row |= {column: item for column, item in as_dict(event.row).items() if column != "$meta"}
            return row

        return Derived(statistic, value, extra_columns, owner, key_columns, plan.name == "size", plan.span)

    # --- stream queries -------------------------------------------------------------------------------------

    def _lot(self, lot: LotPlan, now_ms: int, started: Callable[[], int]) -> Operator:
        if not lot.partition_by:
            return self._lot_window(lot, now_ms)
        key_of = self.parameters.key(lot, "partition", lot.partition_by)
        return Key(key_of, self._as_at_start(lambda key, event: self._lot_window(lot, started())))

    def _lot_window(self, lot: LotPlan, now_ms: int) -> Operator:
        start = Start(now_ms, self.zone)
        if not lot.windows:
            return Current()
        line = intersect([self._lot_queue(window, start) for window in lot.windows])
        if not lot.unique and (lot.every_count is None or not line.has_timers):
            line = self._kept(line)
        assert isinstance(line, Queue)
        window = self._gated(line, lot, now_ms)
        if not lot.unique:
            return window
        latest = LatestPerKey(lot.unique, self.parameters.key(lot, "unique", lot.unique))
        return LatestOf(window, latest) if isinstance(window, Policy) else Chain(window, latest)

    def _gated(self, line: Queue, lot: LotPlan, now_ms: int) -> Operator:
        """The window, with a gate behind it where the query has `every`."""
        if lot.every_period is not None:
            every = period(lot.every_period, self.functions)
            return PeriodicQueue(line, UpdatePoints(every.millis, self._origin(every, now_ms)))
        if lot.every_count is not None:
            return CountedQueue(line, size(lot.every_count, self.functions))
        return line

    def _lot_queue(self, window: LotWindowPlan, start: Start) -> Queue:
        entry = LOT_ENTRIES[window.name]
        if window.length is not None:
            return entry.make(start, period(window.length, self.functions))
        return entry.make(start, None if window.count is None else size(window.count, self.functions))

    def _origin(self, every: Period, now_ms: int) -> int | None:
        """The instant update points count from (`align`); None: the first event's arrival."""
        align = self.options.align
        if align == "local":
            return Grid(every.millis, self.zone).floor(now_ms)
        return {"creation": now_ms, "epoch": 0, "first_event": None}[align]


def _tuple_of(values: list[Callable[..., Any]]) -> Callable[[Event], Any]:
    if not values:
        return lambda event: None
    if len(values) == 1:
        return values[0]
    return lambda event: tuple(value(event) for value in values)


def _is_one_window(source: SourcePlan) -> bool:
    """True if one window holds all events, and nothing stands behind it that reads them."""
    return len(source.windows) == 1 if source.lot is None else not source.lot.partition_by
