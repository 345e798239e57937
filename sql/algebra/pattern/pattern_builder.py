"""From the plan of a pattern to its nodes: expressions become functions once, nodes are made for each
instance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import cached_property, partial, singledispatchmethod
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.atoms import FilterNode
from sql.algebra.pattern.every import DistinctNode, EveryNode
from sql.algebra.pattern.filter_conditions import listening_of
from sql.algebra.pattern.guards import WhileNode, WithinNode
from sql.algebra.pattern.logic import AbsentNode, AllOfNode, AnyOfNode
from sql.algebra.pattern.machine import Machine, Pattern
from sql.algebra.pattern.nodes import PatternPart
from sql.algebra.pattern.pairs import Pairs
from sql.algebra.pattern.partials import PartialBounds
from sql.algebra.pattern.pattern_timers import CrontabNode, IntervalNode, ScheduleNode
from sql.algebra.pattern.repeat import RepeatNode
from sql.algebra.pattern.sequence import FollowedByNode
from sql.algebra.pattern.shapes import pair_of
from sql.algebra.pattern.step_parameters import StepParameters
from sql.calendar.crontab import Crontab
from sql.plan import pattern_plan as plans
from sql.plan.bound import Const
from sql.plan.pattern_plan import PatternPlan

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
        self.parameters = StepParameters(functions)

    def pattern(self) -> Pattern:
        """A pattern, not yet started."""
        return Pattern(self)

    def fastest(self) -> Callable[[], Pattern | Pairs]:
        """Makes patterns, not yet started, in the form that costs least."""
        pair = pair_of(self.plan, self.functions, self.parameters.length)
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
        raise TypeError(f"no node for a {type(step).__name__}")

    @_step.register
    def _(self, step: plans.FilterPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        own, listening = listening_of(step.condition, self.functions)
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
        length = self.parameters.length(step.length)
        return lambda machine: self._made(IntervalNode, machine, length)

    @_step.register
    def _(self, step: plans.AtPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        crontab = Crontab.parse([part.text for part in step.fields], self.zone)
        return lambda machine: self._made(CrontabNode, machine, crontab)

    @_step.register
    def _(self, step: plans.SchedulePlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        schedule = self.parameters.schedule(step)
        return lambda machine: self._made(ScheduleNode, machine, schedule, stays=stays)

    @_step.register
    def _(self, step: plans.FollowedByPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        steps = [self._step(part, stays=False) for part in step.steps]
        maxima = [None if item is None else self.parameters.count(item) for item in step.maxima]
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
        length = None if step.length is None else self.parameters.length(step.length)
        return lambda machine: self._made(DistinctNode, machine, operand(machine), key, length)

    @_step.register
    def _(self, step: plans.RepeatPlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        operand = self._step(step.operand, stays=True)
        until = None if step.until is None else self._step(step.until, stays=True)
        low = None if step.low is None else self.parameters.count(step.low)
        high = (
            low if step.high is step.low else None if step.high is None else self.parameters.count(step.high)
        )
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
            self.parameters.length(step.length),
            None if step.maximum is None else self.parameters.count(step.maximum),
        )
        queued = all(isinstance(amount, Const) for amount, _ in step.length.parts)
        return lambda machine: self._made(
            WithinNode, machine, operand(machine), length, maximum, queued=queued
        )

    @_step.register
    def _(self, step: plans.WhilePlan, *, stays: bool) -> Callable[[Machine], PatternPart]:
        operand, condition = self._step(step.operand, stays=False), self.functions.value(step.condition)
        return lambda machine: self._made(WhileNode, machine, operand(machine), condition)
