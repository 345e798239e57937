"""The parameters of a pattern's steps: lengths of time, counts and schedules, which may read tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sql.algebra.pattern.nodes import Binding
from sql.algebra.pattern.pattern_timers import Length
from sql.calendar.period import Period
from sql.calendar.schedule import Schedule, parse_schedule
from sql.errors import DataError
from sql.plan.bound import Bound, Const
from sql.plan.pattern_plan import LengthPlan, SchedulePlan

if TYPE_CHECKING:
    from sql.codegen.functions import FunctionSet


class StepParameters:
    """Makes of each parameter a function over the tags."""

    def __init__(self, functions: FunctionSet) -> None:
        self.functions = functions

    def length(self, plan: LengthPlan) -> Length:
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

    def count(self, bound: Bound) -> Callable[[Binding], int | None]:
        value = self.functions.value(bound)
        return lambda binding: value(None, binding)

    def schedule(self, step: SchedulePlan) -> Callable[[Binding], Schedule | None]:
        iso, date, repetitions = (
            None if bound is None else self.functions.value(bound)
            for bound in (step.iso, step.date, step.repetitions)
        )
        length = None if step.length is None else self.length(step.length)

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
