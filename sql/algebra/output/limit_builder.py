"""From the plan of an output limit to the condition that decides when and the keeper of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from sql.algebra.output.last_valid import LastValid, Value
from sql.algebra.output.limited_output import LimitedOutput
from sql.algebra.output.limited_rows import (
    AllGroupEvents,
    AllGroups,
    Everything,
    FirstPerGroup,
    FirstUpdate,
    LastOfTouched,
    LastPerGroup,
    LastRows,
    LastValue,
    LimitedRows,
    Snapshot,
)
from sql.algebra.output.output_triggers import (
    After,
    Always,
    AtInstants,
    CountedCondition,
    Counters,
    EveryEvents,
    Never,
    OutputTrigger,
    WhenExpression,
)
from sql.algebra.output.suppression import Suppression, SuppressionForEvents, SuppressionUntil
from sql.algebra.windows.parameters import period, size
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet, constant_value
from sql.emission import Out
from sql.plan.bound import Bound
from sql.plan.clauses import OutputPlan, PeriodArgument
from sql.plan.logical import Assignments, Plan
from sql.plan.walk import variables_in
from sql.record import Record


class LimitBuilder(Record):
    """Builds the output limit of one query, at the instant `now_ms`."""

    plan: Plan
    functions: FunctionSet
    catalog: Catalog
    now_ms: int
    zone: ZoneInfo
    present: Callable[[], list[Out]]
    """The rows of the present content."""

    current: Callable[[Any], list[Out]]
    """The present row of one group, by its key."""

    report: Callable[[object], None]
    """Takes the reason why a parameter cannot have the value that a variable gives it."""

    touched: Callable[[], list[Out]] | None = None
    """The present rows of the groups that have changed since it was called last, where rows are made then."""

    def build(self, output: OutputPlan) -> LimitedOutput:
        """The limit, with its parameters as they are now."""
        functions = self.functions
        opens = None if output.after is None else period(output.after, functions).add(self.now_ms, self.zone)
        swallowed = constant_value(output.after_events, functions)
        after = After(swallowed, opens) if opens is not None or swallowed else None
        end = output.terminated
        at_end = None if end is None else self._met(end.condition, end.then_set)
        condition, parameter = self._condition(output)
        parameter = parameter if parameter is not None and parameter.variables else None
        return LimitedOutput(condition, self._given(output), after, at_end, parameter)

    def _condition(self, output: OutputPlan) -> tuple[OutputTrigger, LastValid[Any] | None]:
        """The condition, and its parameter if that reads variables again and again."""
        functions, zone = self.functions, self.zone
        if output.every is not None:
            every = self._last_valid(partial(period, output.every, functions), output.every)
            moved = every.has_moved if every.variables else None
            return AtInstants(lambda now, origin: every().next_after(now, origin, zone), moved), every
        if output.every_events is not None:
            count = self._last_valid(partial(size, output.every_events, functions), output.every_events)
            return EveryEvents(count), count
        return self._other_condition(output), None

    def _other_condition(self, output: OutputPlan) -> OutputTrigger:
        if output.at:
            following = self._crontab(output)
            return AtInstants(lambda now, origin: following(now))
        if output.when is not None:
            return WhenExpression(self._met(output.when, output.then_set), variables_in(output.when))
        return Always() if output.terminated is None else Never()

    def _last_valid(self, read: Callable[[], Value], part: Bound | PeriodArgument) -> LastValid[Value]:
        return LastValid(
            read, variables_in(part), self.catalog, lambda error: self.report(self.functions.failure(error))
        )

    def _crontab(self, output: OutputPlan) -> Callable[[int], int]:
        """From an instant to the next one of `output at`."""
        from sql.calendar.crontab import Crontab

        return Crontab.parse([field.text for field in output.at], self.zone).next_after

    def _met(self, condition: Bound | None, then_set: Assignments) -> CountedCondition:
        return counted_condition(condition, then_set, self.functions, self.catalog, self.now_ms)

    def _given(self, output: OutputPlan) -> LimitedRows:
        kind, mode = self.plan.row_kind, output.mode
        grouped = kind in ("group", "group_event") and bool(self.plan.group_by)
        if mode == "snapshot":
            return Snapshot(self.present)
        if mode == "first":
            return self._first_of(output, grouped=grouped)
        if mode == "all" and grouped:
            return (AllGroups if kind == "group" else AllGroupEvents)(self.current)
        if self.touched is not None:
            return LastOfTouched(self.touched)
        if mode == "last" and grouped:
            return LastPerGroup(is_of_groups=kind == "group")
        if mode == "last":
            return LastValue(self.present) if kind == "aggregate" else LastRows()
        return Everything(self.present if kind == "aggregate" else None, ends_empty=kind == "plain")

    def _first_of(self, output: OutputPlan, *, grouped: bool) -> LimitedRows:
        mute = self._mute(output) if grouped else None
        if mute is None:
            return FirstUpdate(self.plan.selector)
        return FirstPerGroup(mute, is_of_events=self.plan.row_kind == "group_event")

    def _mute(self, output: OutputPlan) -> Suppression | None:
        """The pause of each group after a row of it; None where one condition holds for all groups."""
        functions, zone, every, count = self.functions, self.zone, output.every, output.every_events
        if every is not None:
            return SuppressionUntil(lambda now: period(every, functions).add(now, zone))
        if output.at:
            return SuppressionUntil(self._crontab(output))
        return None if count is None else SuppressionForEvents(lambda: size(count, functions))


def counted_condition(
    condition: Bound | None, then_set: Assignments, functions: FunctionSet, catalog: Catalog, start_ms: int
) -> CountedCondition:
    """A condition over counters, and what is set where it holds; without a condition it always does."""
    test = None if condition is None else functions.true(condition)
    setters = [(name, functions.value(value)) for name, value in then_set]

    def assign(counters: Counters) -> None:
        for name, value in setters:
            catalog.assign(name, value(None, None, counters))

    return CountedCondition(
        lambda counters: test is None or bool(test(None, None, counters)), assign, start_ms
    )
