"""Plans of relations and of what acts on them. Plain data, as `sql.plan.logical`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sql.aggregates.base import Aggregate
from sql.errors import NOWHERE, Span
from sql.plan.bound import Bound
from sql.plan.logical import ItemPlan, Plan, SourcePlan, SubqueryPlan
from sql.syntax import Expr
from sql.types import Type


@dataclass(frozen=True, slots=True)
class WindowDeclaration:
    """A named window: its data windows (those of `source`) and its columns."""

    name: str
    source: SourcePlan
    columns: dict[str, Type]

    @property
    def keys(self) -> tuple[str, ...]:
        """A window has no primary key."""
        return ()


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """A column of a table that `into table` keeps: an aggregate over values of these types."""

    definition: Aggregate
    types: tuple[Type, ...] = ()
    constants: tuple[Any, ...] = ()
    distinct: bool = False
    criteria: tuple[Expr, ...] = ()
    """Columns of the aggregated events that the declaration names: what `sorted(n desc)` sorts by."""


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """A table: its columns, those of its primary key, and those that aggregate."""

    name: str
    columns: dict[str, Type]
    keys: tuple[str, ...] = ()
    aggregates: dict[str, AggregateColumn] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexDeclaration:
    """An index: columns found by equality, then at most one found by range."""

    name: str
    equal: tuple[str, ...]
    ordered: str | None = None
    unique: bool = False


Assignments = tuple[tuple[str, Bound], ...]
"""`set` of a relation: column and value, in order."""


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """One action of a branch. `into` None: into, or on, the relation itself."""

    kind: Literal["insert", "update", "delete"]
    into: str | None = None
    items: tuple[ItemPlan, ...] = ()
    assignments: Assignments = ()
    where: Bound | None = None


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """A branch of merge, or the one branch that update and delete are."""

    matched: bool
    condition: Bound | None
    actions: tuple[ActionPlan, ...]


@dataclass(frozen=True, slots=True)
class TriggerPlan:
    """What an event of `trigger` does to a relation. Expressions read it as source 0, the row of the relation as
    source 1, and the row before the statement, `initial`, as source 2.

    shows   what the statement posts: `rows` (the rows deleted, as inserts) or `changes` (+changed −old)
    """

    text: str
    trigger: SourcePlan | None
    relation: str
    alias: str
    where: Bound | None
    branches: tuple[BranchPlan, ...]
    shows: Literal["rows", "changes"]
    subqueries: tuple[SubqueryPlan, ...] = ()
    relations: frozenset[str] = frozenset()
    priority: int = 0


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A split stream: rows for the streams whose condition holds, the first or all of them."""

    text: str
    trigger: SourcePlan
    branches: tuple[ActionPlan, ...]
    all: bool
    subqueries: tuple[SubqueryPlan, ...] = ()
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ChoicePlan:
    """A select over the present rows of relations: an on-select (`trigger` is source 0 of the plan), or on demand."""

    plan: Plan
    trigger: bool
    delete: bool = False
    span: Span = NOWHERE
