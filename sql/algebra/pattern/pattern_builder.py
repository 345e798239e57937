"""From the plan of a pattern to its nodes: expressions become functions once, nodes are made for each
instance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import cached_property, partial, singledispatchmethod
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.atoms import FilterNode
from sql.algebra.pattern.every import DistinctNode, EveryNode
from sql.algebra.pattern.filter_conditions import MIRRORED, conjuncts, joined, sides, tags
from sql.algebra.pattern.guards import WhileNode, WithinNode
from sql.algebra.pattern.listening import ByKey, ByRange, InOrder, Listening
from sql.algebra.pattern.logic import AbsentNode, AllOfNode, AnyOfNode
from sql.algebra.pattern.machine import Machine, Pattern
from sql.algebra.pattern.nodes import Binding, PatternPart
from sql.algebra.pattern.pairs import Pairs
from sql.algebra.pattern.partials import PartialBounds
from sql.algebra.pattern.pattern_timers import CrontabNode, IntervalNode, Length, ScheduleNode
from sql.algebra.pattern.repeat import RepeatNode
from sql.algebra.pattern.sequence import FollowedByNode
from sql.algebra.pattern.shapes import pair_of
from sql.calendar.crontab import Crontab
from sql.calendar.period import Period
from sql.calendar.schedule import Schedule, parse_schedule
from sql.errors import DataError
from sql.plan import pattern_plan as plans
from sql.plan.bound import Bound, Const
from sql.plan.pattern_plan import LengthPlan, PatternPlan

if TYPE_CHECKING:
    from sql.codegen.functions import FunctionSet

Build = Callable[[Machine, int], PatternPart]
"""Makes a node, given its place in the tree."""


class PatternBuilder:
    """Everything about a pattern that its instances share. `functions` read by `PatternReader`."""

    def __init__(
        self, plan: PatternPlan, functions: FunctionSet, zone: tzinfo, bounds: PartialBounds | None = None
    ) -> None:
        self.plan = plan
        self.functions = functions
        self.zone = zone
        self.bounds = bounds or PartialBounds()

    def pattern(self) -> Pattern:
        """A pattern, not yet started."""
        return Pattern(self)

    def fastest(self) -> Callable[[], Pattern | Pairs]:
        """Makes patterns, not yet started, in the form that costs least."""
        pair = pair_of(self.plan, self.functions, self._length)
        return self.pattern if pair is None else partial(Pairs, self.bounds, self.zone, pair)

    def nodes(self, machine: Machine, into: list[PatternPart]) -> PatternPart:
        """The tree of nodes for one machine; each is appended to `into` as it is made."""
        self._into = into
        return self._build(machine)

    @cached_property
    def _build(self) -> Callable[[Machine], PatternPart]:
        return self._step(self.plan.root, stays=False)

    def _made(
        self, kind: Callable[..., PatternPart], machine: Machine, *parts: Any, **keywords: Any
    ) -> PatternPart:
        node = kind(machine, len(self._into), *parts, **keywords)
        self._into.append(node)
        return node

    # --- the kinds of nodes ---------------------------------------------------------------------------------

    @singledispatchmethod
    def _step(self, step: Any, *, stays: bool) -> Callable[[Machine], PatternPart]:
        """Makes the node of a step. `stays`: its parent is one under which filters go on listening."""
        raise NotImplementedError(type(step))

    @_step.register
    def _(self, step: plans.FilterPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        own, listening = self._condition(step.condition)
        return lambda machine: self._made(
            FilterNode,
            machine,
            stream=step.stream,
            tag=step.tag,
            consume=step.consume,
            stays=stays,
            own=own,
            listening=listening(),
        )

    @_step.register
    def _(self, step: plans.IntervalPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        length = self._length(step.length)
        return lambda machine: self._made(IntervalNode, machine, length)

    @_step.register
    def _(self, step: plans.AtPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        crontab = Crontab.parse([part.text for part in step.fields], self.zone)
        return lambda machine: self._made(CrontabNode, machine, crontab)

    @_step.register
    def _(self, step: plans.SchedulePlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        schedule = self._schedule(step)
        return lambda machine: self._made(ScheduleNode, machine, schedule, stays=stays)

    @_step.register
    def _(self, step: plans.FollowedByPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        steps = [self._step(part, stays=False) for part in step.steps]
        maxima = [None if item is None else self._count(item) for item in step.maxima]
        return lambda machine: self._made(FollowedByNode, machine, [make(machine) for make in steps], maxima)

    @_step.register
    def _(self, step: plans.AllOfPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        parts = [self._step(part, stays=False) for part in step.parts]
        return lambda machine: self._made(AllOfNode, machine, [make(machine) for make in parts])

    @_step.register
    def _(self, step: plans.AnyOfPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        parts = [self._step(part, stays=False) for part in step.parts]
        return lambda machine: self._made(AnyOfNode, machine, [make(machine) for make in parts])

    @_step.register
    def _(self, step: plans.AbsentPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        operand = self._step(step.operand, stays=False)
        return lambda machine: self._made(AbsentNode, machine, operand(machine))

    @_step.register
    def _(self, step: plans.EveryPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        operand = self._step(step.operand, stays=True)
        if not step.keys:
            return lambda machine: self._made(EveryNode, machine, operand(machine))
        key = self.functions.key(step.keys)
        length = None if step.length is None else self._length(step.length)
        return lambda machine: self._made(DistinctNode, machine, operand(machine), key, length)

    @_step.register
    def _(self, step: plans.RepeatPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        operand = self._step(step.operand, stays=True)
        until = None if step.until is None else self._step(step.until, stays=True)
        low = None if step.low is None else self._count(step.low)
        high = low if step.high is step.low else None if step.high is None else self._count(step.high)
        return lambda machine: self._made(
            RepeatNode,
            machine,
            operand(machine),
            None if until is None else until(machine),
            low,
            high,
            step.tags,
        )

    @_step.register
    def _(self, step: plans.WithinPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        operand = self._step(step.operand, stays=False)
        length, maximum = (
            self._length(step.length),
            None if step.maximum is None else self._count(step.maximum),
        )
        queued = all(isinstance(amount, Const) for amount, _ in step.length.parts)
        return lambda machine: self._made(
            WithinNode, machine, operand(machine), length, maximum, queued=queued
        )

    @_step.register
    def _(self, step: plans.WhilePlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        operand, condition = self._step(step.operand, stays=False), self.functions.value(step.condition)
        return lambda machine: self._made(WhileNode, machine, operand(machine), condition)

    # --- parameters -----------------------------------------------------------------------------------------

    def _length(self, plan: LengthPlan) -> Length:
        amounts = [(self.functions.value(bound), unit) for bound, unit in plan.parts]

        def length(binding: Binding) -> Period | None:
            values = {unit: amount(None, binding) for amount, unit in amounts}
            if any(value is None for value in values.values()):
                return None
            try:
                return Period.of(values, zero_allowed=True)
            except ValueError as error:
                raise DataError(str(error), plan.span) from error

        if all(isinstance(bound, Const) for bound, _ in plan.parts):
            constant = length(())
            return lambda binding: constant
        return length

    def _count(self, bound: Bound) -> Callable[[Binding], int | None]:
        value = self.functions.value(bound)
        return lambda binding: value(None, binding)

    def _schedule(self, step: plans.SchedulePlan) -> Callable[[Binding], Schedule | None]:
        iso, date, repetitions = (
            None if bound is None else self.functions.value(bound)
            for bound in (step.iso, step.date, step.repetitions)
        )
        length = None if step.length is None else self._length(step.length)

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

    # --- conditions -----------------------------------------------------------------------------------------

    def _condition(
        self, condition: Bound | None
    ) -> tuple[Callable[[Any], bool] | None, Callable[[], Listening]]:
        """The part that reads no tag, and what finds the listeners by the rest."""
        parts = [] if condition is None else list(conjuncts(condition))
        alone = [part for part in parts if not tags(part)]
        rest = [part for part in parts if tags(part)]
        own = None if not alone else self.functions.true(joined(alone))
        keys = [(part, found) for part in rest if (found := sides(part, ("=", "is"))) is not None]
        if keys:
            left = self._rest([part for part in rest if all(part is not key for key, _ in keys)])
            nulls = [operator == "is" for _, (_, _, operator) in keys]
            of_row = self.functions.wanted_key([row for _, (row, _, _) in keys], nulls)
            of_binding = self.functions.wanted_key([tag for _, (_, tag, _) in keys], nulls)
            return own, lambda: ByKey(left, of_row, of_binding)
        ranges = [(part, found) for part in rest if (found := sides(part, MIRRORED)) is not None]
        if ranges:
            chosen, (row, tag, operator) = ranges[0]
            left = self._rest([part for part in rest if part is not chosen])
            row_value, tag_value = self.functions.value(row), self.functions.value(tag)
            return own, lambda: ByRange(left, row_value, tag_value, operator)
        left = self._rest(rest)
        return own, partial(InOrder, left)

    def _rest(self, parts: list[Bound]) -> Callable[..., bool] | None:
        return self.functions.true(joined(parts)) if parts else None
