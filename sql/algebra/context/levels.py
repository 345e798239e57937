"""From the plan of a context to its life cycle: the kinds of levels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sql.algebra.context.context_conditions import ConditionBuilder
from sql.algebra.context.initiated import (
    InitiatedDefinition,
    NonOverlappingLevel,
    OverlappingDefinition,
    OverlappingLevel,
)
from sql.algebra.context.keyed import (
    CategoryDefinition,
    CategoryLevel,
    HashedDefinition,
    KeyedDefinition,
    KeyedLevel,
)
from sql.algebra.context.level import LiveLevel
from sql.algebra.context.lifecycle import Bodies, Lifecycle, MakeLevel
from sql.algebra.context.partition import LevelDefinition
from sql.plan.context_plan import (
    CategoriesPlan,
    ContextPlan,
    HashedPlan,
    KeyedPlan,
    KindPlan,
    LevelPlan,
    OverlappingPlan,
    SpanPlan,
)

Define = Callable[[LevelPlan, int, ConditionBuilder], LevelDefinition]

KINDS: dict[type[KindPlan], tuple[Define, type[LiveLevel]]] = {
    KeyedPlan: (KeyedDefinition, KeyedLevel),
    HashedPlan: (HashedDefinition, KeyedLevel),
    CategoriesPlan: (CategoryDefinition, CategoryLevel),
    SpanPlan: (InitiatedDefinition, NonOverlappingLevel),
    OverlappingPlan: (OverlappingDefinition, OverlappingLevel),
}


def life_of(plan: ContextPlan, build: ConditionBuilder, bodies: Bodies) -> Lifecycle:
    """The life cycle of a context, not yet active."""
    makers: list[MakeLevel] = []
    for depth, level in enumerate(plan.levels):
        define, make = KINDS[type(level.kind)]
        makers.append(partial(make, define(level, depth, build)))
    return Lifecycle(makers, bodies, plan.max_partitions, oldest_first=plan.oldest_first)
