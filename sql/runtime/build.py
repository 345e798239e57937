"""From a plan's windows to operators: parameters are evaluated once, when the instance starts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import isfinite
from typing import Any

from sql.aggregates.base import Accumulator, Removal
from sql.binder.select import key_names
from sql.calendar.grid import Grid
from sql.calendar.period import Period
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet, constant_value
from sql.codegen.support import Warnings
from sql.errors import DataError
from sql.functions.registry import Context
from sql.plan.bound import Bound
from sql.plan.logical import LotPlan, PeriodArgument, PredicatePlan, SourcePlan, WindowPlan
from sql.plan.options import RuleOptions
from sql.rows import Shape, as_dict, as_dicts
from sql.runtime.groups import AggregateSet
from sql.windows import catalog as windows
from sql.windows.catalog import Start, WindowSpec
from sql.windows.combine import Join, Key, Meet, Reclaim
from sql.windows.derived import Derived
from sql.windows.event import Event
from sql.windows.gate import Batch, Trigger
from sql.windows.lots import Hold, Latest
from sql.windows.operator import Chain, LastRow, Operator, Pass
from sql.windows.predicate import Predicate, WhenTrue, WhileTrue
from sql.windows.retain import Count, Forever, Lifetime, Policy


class WindowBuilder:
    """Builds the operator of one source of FROM."""

    def __init__(self, source: SourcePlan, options: RuleOptions, catalog: Catalog, context: Context,
                 warnings: Warnings, shape: Shape, new_event: Callable[[Any, int], Event],
                 subqueries: Sequence[Callable[[Event], Any]] = ()) -> None:  # fmt: skip
        self.source = source
        self.options = options
        self.shape = shape
        self.catalog = catalog
        self.context = context
        self.warnings = warnings
        self.new_event = new_event
        self.functions = FunctionSet(catalog, context, warnings, shape=shape, joined=source.rows_are_tuples,
                                     subqueries=subqueries)  # fmt: skip
        self.watchers: list[Any] = []
        """Expression windows, to be told when a variable changes."""

    def build(self, now_ms: int) -> Operator:
        """The operator for the source's windows, starting at `now_ms`."""
        if self.source.lot is not None:
            return self._lot(self.source.lot, now_ms)
        plans = list(self.source.windows)
        if not plans:
            return LastRow() if self.source.keeps_last else Pass()
        if plans[0].name != "groupwin":
            return self._stages(plans, {}, now_ms)
        return self._grouped(plans)

    def _grouped(self, plans: list[WindowPlan]) -> Operator:
        group, *inner = plans
        merge = next((i for i, plan in enumerate(inner) if plan.name == "merge"), len(inner))
        rest = inner[merge + 1 :]
        names = [] if rest else key_names(group)
        keys = group.arguments["keys"]
        values = [self.functions.value(key) for key in keys]

        def make(key: Hashable, first: Event) -> Operator:
            columns = {name: value(first) for name, value in zip(names, values, strict=False)}
            return self._stages(inner[:merge], columns, first.time_ms)

        hint = self.source.reclaim_ms
        reclaim = Reclaim(*hint) if hint else None
        grouped = Key(self.functions.key(keys), make, reclaim, self.options.max_groups)
        return Chain(grouped, self._stages(rest, {}, 0)) if rest else grouped

    def _stages(self, plans: list[WindowPlan], key_columns: dict[str, Any], now_ms: int) -> Operator:
        """Data windows as one intersection or union, then a derived-value window if there is one."""
        members: list[Policy | Batch] = []
        derived: Operator | None = None
        for plan in plans:
            spec = windows.lookup(plan.name)
            assert spec is not None
            made = self._make(spec, plan, now_ms)
            if spec.role == "derived":
                derived = self._derived(plan, made, key_columns)
            else:
                members.append(Batch(made) if isinstance(made, Trigger) else made)
        data = self._combine(members)
        if derived is None:
            return data
        return derived if isinstance(data, Pass) else Chain(data, derived)

    def _combine(self, members: list[Policy | Batch]) -> Operator:
        if not members:
            return Pass()
        if self.source.union:
            return Join(*members)
        policies = [member for member in members if isinstance(member, Policy)]
        batch = next((member for member in members if isinstance(member, Batch)), None)
        return Meet(*policies, batch=batch)

    def _make(self, spec: WindowSpec, plan: WindowPlan, now_ms: int) -> Any:
        assert spec.make is not None
        start = Start(now_ms, self.context.zone)
        arguments = {
            parameter.name: self._argument(parameter.kind, plan.arguments.get(parameter.name))
            for parameter in spec.parameters
            if spec.role != "derived"
        }
        made = spec.make(start, **arguments)
        if isinstance(made, WhileTrue | WhenTrue):
            self.watchers.append(made)
        return made

    def _argument(self, kind: str, argument: Any) -> Any:
        if argument is None:
            return None
        if kind == "period":
            return period(argument, self.functions)
        if kind == "size":
            return size(argument, self.functions)
        if kind in ("reference", "include"):
            return constant_value(argument, self.functions)
        if kind == "value":
            return _time_of(self.functions.value(argument))
        if kind == "keys":
            return self.functions.key(argument)
        if kind == "criteria":
            return self.functions.criteria(argument, nulls_lowest=True)
        if kind == "predicate":
            return self._predicate(argument)
        return argument

    def _predicate(self, plan: PredicatePlan) -> Predicate:
        aggregates = AggregateSet(plan.aggregates, self.functions, Removal.ANY)

        def fresh() -> list[Accumulator]:
            return aggregates.fresh()

        return Predicate(self.functions.value(plan.test), aggregates.arguments, fresh)

    def _derived(self, plan: WindowPlan, statistic: Any, key_columns: dict[str, Any]) -> Derived:
        spec = windows.lookup(plan.name)
        assert spec is not None
        values = [self.functions.value(plan.arguments[p.name]) for p in spec.parameters if p.kind == "value"]
        value = _tuple_of(values)
        extras = [(name, self.functions.value(bound)) for name, bound in plan.arguments.get("extras", ())]

        def extra_columns(event: Event | None) -> dict[str, Any]:
            row: dict[str, Any] = {}
            for name, function in extras:
                if name is not None:
                    row[name] = None if event is None else function(event)
                elif isinstance(event, Event) and isinstance(event.row, tuple):
                    row |= self._tags(event.row)
                elif event is not None:
                    row |= {column: item for column, item in as_dict(event.row).items() if column != "$meta"}
            return row

        return Derived(statistic, value, extra_columns, self.new_event, key_columns, plan.name == "size")

    def _tags(self, match: tuple[Any, ...]) -> dict[str, Any]:
        """A match as columns: its tags with their events."""
        assert self.source.pattern is not None
        return {
            tag.name: None if value is None else as_dicts(value) if tag.is_list else as_dict(value)
            for tag, value in zip(self.source.pattern.tags, match, strict=True)
        }

    # --- stream queries -----------------------------------------------------------------------------------------------

    def _lot(self, lot: LotPlan, now_ms: int) -> Operator:
        if not lot.partition_by:
            return self._lot_window(lot, now_ms)
        return Key(self.functions.key(lot.partition_by), lambda key, event: self._lot_window(lot, now_ms))

    def _lot_window(self, lot: LotPlan, now_ms: int) -> Operator:
        policies: list[Policy] = []
        if lot.within is not None:
            policies.append(Lifetime(period(lot.within, self.functions), self.context.zone))
        if lot.retain is not None:
            policies.append(Count(size(lot.retain, self.functions)))
        if lot.retain_all:
            policies.append(Forever())
        if not policies:
            return Pass()
        stages: list[Operator] = [Meet(*policies)]
        if lot.every_period is not None:
            every = period(lot.every_period, self.functions)
            stages.append(Hold(period_ms=every.millis, origin_ms=self._origin(every, now_ms)))
        elif lot.every_count is not None:
            stages.append(Hold(count=size(lot.every_count, self.functions)))
        if lot.unique:
            stages.append(Latest(self.functions.key(lot.unique)))
        return stages[0] if len(stages) == 1 else Chain(*stages)

    def _origin(self, every: Period, now_ms: int) -> int | None:
        """Where update points count from (`align`); None: the first event's arrival."""
        align = self.options.align
        if align == "local":
            return Grid(every.millis, self.context.zone).floor(now_ms)
        return {"creation": now_ms, "epoch": 0, "first_event": None}[align]


def _time_of(value: Callable[[Event], Any]) -> Callable[[Event], Any]:
    """An event's own time in ms, or None; DataError where it is anything but a finite number or NULL."""

    def time_of(event: Event) -> Any:
        found = value(event)
        if found is None or found.__class__ is int or (found.__class__ is float and isfinite(found)):
            return found
        raise DataError(f"a time stamp is a number of milliseconds, not {found!r}")

    return time_of


def _tuple_of(values: list[Callable[..., Any]]) -> Callable[[Event], Any]:
    if not values:
        return lambda event: None
    if len(values) == 1:
        return values[0]
    return lambda event: tuple(value(event) for value in values)


def period(argument: PeriodArgument, functions: FunctionSet) -> Period:
    """The length of time of a parameter, with the present values of variables."""
    amounts: dict[str, Any] = {}
    for bound, unit in argument.parts:
        amount = constant_value(bound, functions)
        if amount.__class__ not in (int, float):
            raise DataError(f"a length of time is a number, not {amount!r}", argument.span)
        amounts[unit] = amount
    try:
        return Period.of(amounts)
    except ValueError as error:
        raise DataError(str(error), argument.span) from error


def size(argument: Bound, functions: FunctionSet) -> int:
    """The size of a parameter, with the present values of variables."""
    value = constant_value(argument, functions)
    if value.__class__ is not int or value < 1:
        raise DataError(f"a size is a whole number of at least 1, not {value!r}", argument.span)
    return value
