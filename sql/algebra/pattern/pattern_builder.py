"""From the plan of a pattern to its nodes: expressions become functions once, nodes are made for each
instance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

from sql.algebra.pattern.every import EveryNode
from sql.algebra.pattern.filter_conditions import tests_of
from sql.algebra.pattern.filters import FilterNode
from sql.algebra.pattern.guards import WhileNode, WithinNode
from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.logic import AbsentNode, AllOfNode, AnyOfNode
from sql.algebra.pattern.machine import Length
from sql.algebra.pattern.nodes import PatternPart
from sql.algebra.pattern.observers import ObserverNode, after, by_crontab, by_schedule
from sql.algebra.pattern.pair_builder import pair_of
from sql.algebra.pattern.pairs import Pairs
from sql.algebra.pattern.repeat import RepeatNode
from sql.algebra.pattern.running_pattern import Pattern, PatternProgram
from sql.algebra.pattern.sequence import FollowedByNode
from sql.calendar.crontab import Crontab
from sql.calendar.period import Period
from sql.calendar.schedule import Schedule, parse_schedule
from sql.codegen.functions import FunctionSet
from sql.errors import DataError, Fail
from sql.plan import pattern_plan as plans
from sql.plan.bound import Bound
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import LengthPlan, PatternPlan, SchedulePlan, StepPlan, is_constant
from sql.types import describe

Value = TypeVar("Value")


class PatternBuilder:
    """Everything about a pattern that its instances share. `functions` read by `PatternReader`."""

    def __init__(self, plan: PatternPlan, functions: FunctionSet, zone: tzinfo, options: RuleOptions) -> None:
        self.plan = plan
        self.functions = functions
        self.zone = zone
        self.options = options
        self.filters: list[FilterNode] = []
        """Those of the tree, from left to right."""

    @cached_property
    def pattern(self) -> Callable[[Fail], Pattern]:
        """Makes a pattern, not yet started, given what takes its errors."""
        root = self._step(self.plan.root)
        return partial(Pattern, PatternProgram(self.plan, root, tuple(self.filters), self.zone, self.options))

    def fastest(self) -> Callable[[Fail], Pattern | Pairs]:
        """Makes patterns, not yet started, in the form that costs least."""
        pair = pair_of(self.plan, self.functions, self._length)
        return self.pattern if pair is None else partial(Pairs, self.options, self.zone, pair)

    # --- the kinds of nodes ---------------------------------------------------------------------------------

    def _step(self, step: StepPlan, *, stays: bool = False) -> PatternPart:
        """The node of a step, with those below it. `stays`: its parent is one under which filters go on
        listening."""
        match step:
            case plans.FilterPlan():
                node = FilterNode(step, stays, tests_of(step.condition, self.functions))
                self.filters.append(node)
                return node
            case plans.IntervalPlan(length):
                return ObserverNode(step, partial(after, self._length(length)))
            case plans.AtPlan():
                return ObserverNode(step, partial(by_crontab, self._crontab(step)))
            case plans.SchedulePlan():
                return ObserverNode(
                    step, partial(by_schedule, self._schedule(step)), may_end=True, stays=stays
                )
            case plans.FollowedByPlan(steps, maxima):
                return FollowedByNode(self._steps(steps), [self._count(item) for item in maxima])
            case plans.AllOfPlan(parts):
                return AllOfNode(self._steps(parts), [isinstance(part, plans.AbsentPlan) for part in parts])
            case plans.AnyOfPlan(parts):
                return AnyOfNode(self._steps(parts))
            case plans.AbsentPlan(operand):
                return AbsentNode([self._step(operand)])
            case plans.EveryPlan():
                return self._every(step)
            case plans.RepeatPlan():
                return self._repeat(step)
            case plans.WithinPlan(operand, length, maximum):
                return WithinNode([self._step(operand)], self._length(length), self._count(maximum))
            case plans.WhilePlan(operand, condition):
                return WhileNode([self._step(operand)], over_tags(self.functions.value(condition)))
        raise TypeError(f"no node for a {type(step).__name__}")

    def _steps(self, steps: Iterable[StepPlan]) -> list[PatternPart]:
        return [self._step(step) for step in steps]

    def _every(self, step: plans.EveryPlan) -> EveryNode:
        key = over_tags(self.functions.key(step.keys)) if step.keys else None
        length = None if step.length is None else self._length(step.length)
        return EveryNode(self._step(step.operand, stays=True), key, length)

    def _repeat(self, step: plans.RepeatPlan) -> RepeatNode:
        operand = self._step(step.operand, stays=True)
        until = None if step.until is None else self._step(step.until, stays=True)
        low = self._count(step.low)
        high = low if step.high is step.low else self._count(step.high)
        return RepeatNode(operand, until, low, high, step.tags)

    # --- parameters of steps, as functions of the tags ------------------------------------------------------

    def _length(self, plan: LengthPlan, *, repeats: bool = False) -> Length:
        """A length of time. Below nothing it is nothing, unless it repeats."""
        amounts = [(self.functions.value(bound), unit) for bound, unit in plan.parts]

        def length(binding: Binding) -> Period | None:
            values = {unit: amount(None, binding) for amount, unit in amounts}
            if any(value is None for value in values.values()):
                return None
            try:
                if repeats:
                    return Period.of(values)
                lengths = {unit: _at_least_nothing(value) for unit, value in values.items()}
                return Period.of(lengths, zero_allowed=True)
            except ValueError as error:
                raise DataError(str(error), plan.span) from error

        if is_constant(plan):
            constant = length(())
            return lambda binding: constant
        return length

    def _count(self, bound: Bound | None) -> Callable[[Binding], int | None] | None:
        if bound is None:
            return None
        value, span = over_tags(self.functions.value(bound)), bound.span

        def count(binding: Binding) -> int | None:
            found = value(binding)
            if found is None or found.__class__ is int:
                return found
            raise DataError(f"a number of matches is a whole number, not {describe(found)}", span)

        return count

    def _crontab(self, step: plans.AtPlan) -> Callable[[Binding], Crontab | None]:
        texts = [part.text for part in step.fields]
        if not step.values:
            crontab = Crontab.parse(texts, self.zone)
            return lambda binding: crontab
        values = [None if bound is None else self.functions.value(bound) for bound in step.values]
        parse = lru_cache(maxsize=16)(partial(Crontab.parse, zone=self.zone))

        def computed(binding: Binding) -> Crontab | None:
            found = [None if value is None else value(None, binding) for value in values]
            if any(number is None and value is not None for number, value in zip(found, values, strict=True)):
                return None
            fields = (
                text if number is None else str(number) for text, number in zip(texts, found, strict=True)
            )
            try:
                return parse(tuple(fields))
            except ValueError as error:
                raise DataError(f"timer:at: {error}", step.span) from error

        return computed

    def _schedule(self, step: SchedulePlan) -> Callable[[Binding], Schedule | None]:
        iso, date, repetitions = (
            None if bound is None else self.functions.value(bound)
            for bound in (step.iso, step.date, step.repetitions)
        )
        length = None if step.length is None else self._length(step.length, repeats=True)

        def schedule(binding: Binding) -> Schedule | None:
            try:
                if iso is not None:
                    text = iso(None, binding)
                    return None if text is None else parse_schedule(text)
                at = None if date is None else date(None, binding)
                at = parse_schedule(at).date if isinstance(at, str) else at
                period = None if length is None else length(binding)
                return Schedule(None if repetitions is None else repetitions(None, binding), at, period)
            except ValueError as error:
                raise DataError(str(error), step.span) from error

        return schedule


def _at_least_nothing(amount: Any) -> Any:
    """A number below nothing is nothing. What is no number stays, for `Period` to refuse it."""
    return 0 if amount.__class__ in (int, float) and amount < 0 else amount


def over_tags(function: Callable[..., Value]) -> Callable[[Binding], Value]:
    """A function of an event and tags as one of the tags alone."""
    return lambda binding: function(None, binding)
