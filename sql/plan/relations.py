"""Plans of relations and of what acts on them. Plain data, as `sql.plan.logical`."""

from __future__ import annotations

from typing import Any, Literal

from sql.aggregates.base import Aggregate
from sql.plan.bound import Bound
from sql.plan.logical import ItemPlan, Plan, SourcePlan, SubqueryPlan
from sql.record import Record, field
from sql.syntax import Expr
from sql.types import Type


class Bounds(Record):
    """How many rows a relation may hold, and how long a row stays after it was written
    last (ms; None: for ever).

    Beyond `max_rows` a new row is refused, or with `oldest_first` the row goes that was written longest ago.
    """

    max_rows: int = 1_000_000
    oldest_first: bool = False
    ttl_ms: int | None = None


class WindowDeclaration(Record):
    """A named window: its data windows (those of `source`) and its columns."""

    beside = Record.beside | {"bounds"}

    name: str
    source: SourcePlan
    columns: dict[str, Type]
    like: str | None = None
    """The stream whose events its rows are shaped like."""
    bounds: Bounds = Bounds()

    @property
    def keys(self) -> tuple[str, ...]:
        """A window has no primary key."""
        return ()


class AggregateColumn(Record):
    """A column of a table that `into table` keeps: an aggregate over values of these types."""

    definition: Aggregate
    types: tuple[Type, ...] = ()
    constants: tuple[Any, ...] = ()
    distinct: bool = False
    criteria: tuple[Expr, ...] = ()
    """Columns of the aggregated events that the declaration names: what `sorted(n desc)` sorts by."""


class TableDeclaration(Record):
    """A table: its columns, those of its primary key, and those that aggregate."""

    beside = Record.beside | {"bounds"}

    name: str
    columns: dict[str, Type]
    keys: tuple[str, ...] = ()
    aggregates: dict[str, AggregateColumn] = field(default_factory=dict)
    bounds: Bounds = Bounds()


class AskedDeclaration(Record):
    """A table that a store outside answers for. `columns` None: those that the store gives.

    key     the column whose newest row counts, of a table that its source fills; None: a store is asked
    """

    name: str
    columns: dict[str, Type] | None = None
    key: str | None = None


class IndexDeclaration(Record):
    """An index: columns found by equality, then at most one found by range."""

    name: str
    equal: tuple[str, ...]
    ordered: str | None = None
    unique: bool = False


Assignments = tuple[tuple[str, Bound], ...]
"""`set` of a relation: column and value, in order."""


class ActionPlan(Record):
    """One action of a branch. `into` None: into, or on, the relation itself."""

    kind: Literal["insert", "update", "delete"]
    into: str | None = None
    items: tuple[ItemPlan, ...] = ()
    assignments: Assignments = ()
    where: Bound | None = None


class BranchPlan(Record):
    """A branch of merge, or the one branch that update and delete are."""

    matched: bool
    condition: Bound | None
    actions: tuple[ActionPlan, ...]


class SetPlan(Record):
    """`on … set`: variables and their new values, each perhaps at an index of an array, in order."""

    beside = Record.beside | {"subqueries"}

    trigger: SourcePlan
    assignments: tuple[tuple[str, Bound, Bound | None], ...]
    subqueries: tuple[SubqueryPlan, ...] = ()


class VariableDeclaration(Record):
    """`context C create variable`: a variable with this first value in each partition."""

    name: str
    type: Type
    value: Any = None
    constant: bool = False


class TriggerPlan(Record):
    """What an event of `trigger` does to a relation. Expressions read it as source 0, the row of the relation
    as source 1, and the row before the statement, `initial`, as source 2.

    shows   what the statement posts: `rows` (the rows deleted, as inserts) or `changes` (+changed −old)
    """

    beside = Record.beside | {"subqueries"}

    trigger: SourcePlan | None
    relation: str
    alias: str
    where: Bound | None
    branches: tuple[BranchPlan, ...]
    shows: Literal["rows", "changes"]
    subqueries: tuple[SubqueryPlan, ...] = ()
    relations: frozenset[str] = frozenset()


class SplitPlan(Record):
    """A split stream: rows for the streams whose condition holds, the first or all of them."""

    beside = Record.beside | {"subqueries"}

    trigger: SourcePlan
    branches: tuple[ActionPlan, ...]
    all: bool
    subqueries: tuple[SubqueryPlan, ...] = ()


class ChoicePlan(Record):
    """A select over the present rows of relations: an on-select (`trigger` is source 0 of
    the plan), or on demand."""

    beside = Record.beside | {"plan"}

    plan: Plan
    trigger: bool
    delete: bool = False


Declaration = WindowDeclaration | TableDeclaration | VariableDeclaration | AskedDeclaration
"""What a declaring statement makes."""

Acts = TriggerPlan | SplitPlan | ChoicePlan | SetPlan
"""What a triggered statement does."""
