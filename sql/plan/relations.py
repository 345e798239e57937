"""Plans of relations and of what acts on them. Plain data, as `sql.plan.logical`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sql.aggregates.base import Aggregate
from sql.plan.bound import Bound
from sql.plan.logical import ItemPlan, Plan, SourcePlan, SubqueryPlan
from sql.syntax import Expr
from sql.types import Type


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many rows a relation may hold, and how long a row stays after it was written
    last (ms; None: for ever).

    Beyond `max_rows` a new row is refused, or with `oldest_first` the row goes that was written longest ago.
    """

    max_rows: int = 1_000_000
    oldest_first: bool = False
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WindowDeclaration:
    """A named window: its data windows (those of `source`) and its columns."""

    name: str
    source: SourcePlan
    columns: dict[str, Type]
    like: str | None = None
    """The stream whose events its rows are shaped like."""
    bounds: Bounds = field(default=Bounds(), compare=False)

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
    bounds: Bounds = field(default=Bounds(), compare=False)


@dataclass(frozen=True, slots=True)
class AskedDeclaration:
    """A table that a store outside answers for. `columns` None: those that the store gives.

    key     the column whose newest row counts, of a table that its source fills; None: a store is asked
    """

    name: str
    columns: dict[str, Type] | None = None
    key: str | None = None


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
class SetPlan:
    """`on … set`: variables and their new values, each perhaps at an index of an array, in order."""

    trigger: SourcePlan
    assignments: tuple[tuple[str, Bound, Bound | None], ...]
    subqueries: tuple[SubqueryPlan, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class VariableDeclaration:
    """`context C create variable`: a variable with this first value in each partition."""

    name: str
    type: Type
    value: Any = None
    constant: bool = False


@dataclass(frozen=True, slots=True)
class TriggerPlan:
    """What an event of `trigger` does to a relation. Expressions read it as source 0, the row of the relation
    as source 1, and the row before the statement, `initial`, as source 2.

    shows   what the statement posts: `rows` (the rows deleted, as inserts) or `changes` (+changed −old)
    """

    trigger: SourcePlan | None
    relation: str
    alias: str
    where: Bound | None
    branches: tuple[BranchPlan, ...]
    shows: Literal["rows", "changes"]
    subqueries: tuple[SubqueryPlan, ...] = field(default=(), compare=False)
    relations: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A split stream: rows for the streams whose condition holds, the first or all of them."""

    trigger: SourcePlan
    branches: tuple[ActionPlan, ...]
    all: bool
    subqueries: tuple[SubqueryPlan, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ChoicePlan:
    """A select over the present rows of relations: an on-select (`trigger` is source 0 of
    the plan), or on demand."""

    plan: Plan = field(compare=False)
    trigger: bool
    delete: bool = False


Declaration = WindowDeclaration | TableDeclaration | VariableDeclaration | AskedDeclaration
"""What a declaring statement makes."""

Acts = TriggerPlan | SplitPlan | ChoicePlan | SetPlan
"""What a triggered statement does."""
