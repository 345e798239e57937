"""The detection of patterns of two events, and their plans for `pairs`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sql.algebra.pattern.filter_conditions import conjuncts, joined, sides, tags
from sql.algebra.pattern.pair_text import First, KeyText, Second, pair_text
from sql.algebra.pattern.pairs import Hear, PairPlan
from sql.calendar.period import Period
from sql.plan import pattern_plan as plans
from sql.plan.bound import Bound, Const
from sql.plan.pattern_plan import FilterPlan, LengthPlan, PatternPlan, StepPlan

if TYPE_CHECKING:
    from sql.algebra.pattern.pattern_timers import Length
    from sql.codegen.functions import FunctionSet

Shape = tuple[FilterPlan, FilterPlan, LengthPlan | None, bool]
"""The first event, the second, the time between them, whether the second must not come."""


Sides = tuple[Bound, Bound, str]
"""The expression over the second event, that over the tag of the first, and the operator between them."""


def pair_of(
    plan: PatternPlan, functions: FunctionSet, length_of: Callable[[LengthPlan], Length]
) -> PairPlan | None:
    """The pattern as one of two events; None for all others, and where no key leads from
    the second to the first."""
    shape = _shape(plan)
    if shape is None:
        return None
    first, second, span, is_absence = shape
    parts = [] if second.condition is None else list(conjuncts(second.condition))
    bound = [part for part in parts if tags(part)]
    keys = [(part, found) for part in bound if (found := sides(part, ("=", "is"))) is not None]
    if bound and not keys:
        return None
    length = None if span is None else length_of(span)(())
    if span is not None and not _is_positive(length):
        return None
    left = [part for part in bound if all(part is not key for key, _ in keys)]
    nulls = [operator == "is" for _, (_, _, operator) in keys]
    alone = [part for part in parts if not tags(part)]
    return PairPlan(
        first.tag,
        second.tag,
        len(plan.tags),
        _loops(functions, first, second, alone, [found for _, found in keys]),
        functions.wanted_key([tag for _, (_, tag, _) in keys], nulls),
        functions.true(joined(left)) if left else None,
        length,
        is_absence,
    )


def _shape(plan: PatternPlan) -> Shape | None:
    root = plan.root
    if plan.suppress or plan.discard or not isinstance(root, plans.FollowedByPlan) or root.maxima != (None,):
        return None
    every, then = root.steps
    if not isinstance(every, plans.EveryPlan) or every.keys or not _is_plain(every.operand):
        return None
    found: tuple[StepPlan, LengthPlan | None, bool] | None = None
    match then:
        case FilterPlan():
            found = then, None, False
        case plans.WithinPlan(operand, length, None):
            found = operand, length, False
        case plans.AllOfPlan((plans.IntervalPlan(length), plans.AbsentPlan(operand))) | plans.AllOfPlan(
            (plans.AbsentPlan(operand), plans.IntervalPlan(length))
        ):
            found = operand, length, True
    if found is None or not _is_plain(found[0]):
        return None
    if found[1] is not None and not all(isinstance(amount, Const) for amount, _ in found[1].parts):
        return None
    assert isinstance(every.operand, FilterPlan) and isinstance(found[0], FilterPlan)
    return every.operand, found[0], found[1], found[2]


def _is_plain(step: StepPlan) -> bool:
    return isinstance(step, FilterPlan) and not step.consume


def _is_positive(length: Period | None) -> bool:
    return length is not None and (length.millis > 0 or length.months > 0)


def _loops(
    functions: FunctionSet, first: FilterPlan, second: FilterPlan, alone: list[Bound], keys: Sequence[Sides]
) -> dict[str, Hear]:
    """The effect of an event, by stream."""
    nulls = [operator == "is" for _, _, operator in keys]
    begins = First(first.condition, first.tag, KeyText([tag for _, tag, _ in keys], nulls))
    ends = Second(joined(alone) if alone else None, KeyText([row for row, _, _ in keys], nulls))
    if first.stream == second.stream:
        return {first.stream: pair_text(functions, begins, ends)}
    return {
        first.stream: pair_text(functions, begins, None),
        second.stream: pair_text(functions, None, ends),
    }
