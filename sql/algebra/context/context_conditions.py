"""The conditions that start and end partitions, as functions: made once from their plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sql.algebra.context.by_property import Sides
from sql.algebra.context.end_atoms import compiled
from sql.algebra.context.pattern_watch import PatternCondition, Properties, Report
from sql.algebra.event import Event
from sql.algebra.pattern import PatternBuilder
from sql.calendar.crontab import Crontab
from sql.calendar.period import Period
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet, PatternReader, constant_value
from sql.codegen.support import Warnings
from sql.errors import DataError
from sql.functions.definition import Context
from sql.plan.bound import Bound
from sql.plan.clauses import PeriodArgument
from sql.plan.context_plan import (
    ContextPlan,
    CrontabPlan,
    EndPlan,
    EventPointPlan,
    NowPlan,
    PatternPointPlan,
    StartPlan,
)
from sql.rows import as_dict

Test = Callable[[Event, Properties], bool]


@dataclass(slots=True)
class EventCondition:
    """An event of `stream` that passes, and the place it is kept at.

    sides      those of an equality that must hold as well: partitions are found by hash
    asks_each  true if `passes` reads the partition, and no key finds it
    """

    stream: str
    passes: Test | None = None
    place: int | None = None
    sides: Sides | None = None
    asks_each: bool = False

    def fits(self, event: Event, row: Properties) -> bool:
        """True if an event fulfils the condition for the partition of `row`."""
        if self.sides is not None and not self.sides.fit(event, row):
            return False
        return self.passes is None or self.passes(event, row)

    def keep(self, event: Event, values: list[Any]) -> None:
        """Put the event among the partition's values, where it has a name."""
        if self.place is not None:
            values[self.place] = as_dict(event.row)


@dataclass(slots=True)
class TimeCondition:
    """A crontab or a period: when it comes, seen from the instant at which it begins to be watched."""

    next_ms: Callable[[int], int]


End = EventCondition | TimeCondition | PatternCondition | None
Start = EventCondition | TimeCondition | PatternCondition | NowPlan


class ConditionBuilder:
    """Makes the conditions of one context. `report` gets what a pattern could not evaluate."""

    def __init__(self, plan: ContextPlan, functions: FunctionSet, catalog: Catalog, report: Report) -> None:
        self.options = plan.options
        self.idle_ms = plan.idle_ms
        self.functions = functions
        self.catalog = catalog
        self.report = report
        self.zone = plan.options.zone_info()

    def passes(self, condition: Bound | None) -> Any:
        """A filter as a function; None where there is none."""
        return None if condition is None else self.functions.true(condition)

    def start(self, plan: StartPlan) -> Start:
        return plan if isinstance(plan, NowPlan) else self._condition(plan)

    def end(self, plan: EndPlan | None) -> End:
        """The condition that ends them; None where they end with the partition around them only."""
        return None if plan is None else self._condition(plan)

    def event(self, plan: EventPointPlan) -> EventCondition:
        """An event that passes a filter."""
        functions, found = self.functions, plan.correlation
        sides = None if found is None else Sides.of(found, functions, functions)
        return EventCondition(plan.stream, self.passes(plan.filter), plan.place, sides, plan.asks_each)

    def _condition(self, plan: EndPlan) -> EventCondition | TimeCondition | PatternCondition:
        if isinstance(plan, EventPointPlan):
            return self.event(plan)
        if isinstance(plan, PatternPointPlan):
            return self._pattern(plan)
        return TimeCondition(
            self._crontab(plan) if isinstance(plan, CrontabPlan) else self._after(plan.period)
        )

    def _pattern(self, plan: PatternPointPlan) -> PatternCondition:
        pattern = plan.pattern
        places = plan.places or (None,) * len(pattern.tags)
        at_work: list[Any] = []
        clock = Context(zone=self.zone, partition=at_work)
        functions = FunctionSet(self.catalog, clock, Warnings(), text=pattern.text, kind=PatternReader)
        builder = PatternBuilder(pattern, functions, self.zone, self.options)
        atoms = compiled(pattern, functions, self.functions)
        return PatternCondition(
            builder, self.report, functions, clock, at_work, atoms, places, plan.place, plan.inclusive
        )

    def _crontab(self, plan: CrontabPlan) -> Callable[[int], int]:
        crontabs = [Crontab.parse([field.text for field in fields], self.zone) for fields in plan.crontabs]
        # With a field of seconds and none of milliseconds those of the moment remain: once
        # a second, from now on.
        keeps_millis = min(len(fields) for fields in plan.crontabs) in (6, 7)

        def due(now_ms: int) -> int:
            millis = now_ms % 1000 if keeps_millis else 0
            return min(crontab.next_after(now_ms - millis) for crontab in crontabs) + millis

        return due

    def _after(self, plan: PeriodArgument) -> Callable[[int], int]:
        def due(now_ms: int) -> int:
            amounts = {unit: constant_value(bound, self.functions) for bound, unit in plan.parts}
            try:
                return Period.of(amounts, zero_allowed=True).add(now_ms, self.zone)
            except ValueError as error:
                raise DataError(str(error), plan.span) from error

        return due
