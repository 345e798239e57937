"""Plans of relations and of the statements that act on them. Plain data, like `sql.plan.logical`."""

from __future__ import annotations

from typing import Any, Literal

from sql.aggregates.base import Aggregate
from sql.plan.bound import Bound
from sql.plan.logical import ItemPlan, Plan, SourcePlan, SubqueryPlan
from sql.record import Record, field
from sql.syntax import Expr
from sql.types import Type


class Bounds(Record):
    """The bounds of a relation: its rows, and the time that a row stays after it was written last (ms; None:
    for ever).

    Beyond `max_rows` a new row is refused, or with `oldest_first` the row that was written longest ago is
    deleted.
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
    """The stream whose shape its rows have."""
    bounds: Bounds = Bounds()

    @property
    def keys(self) -> tuple[str, ...]:
        """No columns: a window has no primary key."""
        return ()


class AggregateColumn(Record):
    """A column of a table that `into table` maintains: an aggregate over values of these types."""

    definition: Aggregate
    types: tuple[Type, ...] = ()
    constants: tuple[Any, ...] = ()
    distinct: bool = False
    criteria: tuple[Expr, ...] = ()
    """The columns of the aggregated events that are sort keys: the n of `sorted(n desc)`."""


class TableDeclaration(Record):
    """A table: its columns, its primary key, and its aggregate columns."""

    beside = Record.beside | {"bounds"}

    name: str
    columns: dict[str, Type]
    keys: tuple[str, ...] = ()
    aggregates: dict[str, AggregateColumn] = field(default_factory=dict)
    bounds: Bounds = Bounds()


class AskedDeclaration(Record):
    """A table whose rows an external store answers for. `columns` None: those of the store.

    key     the column whose newest row counts, of a table that its source fills; None: a store is queried
    """

    name: str
    columns: dict[str, Type] | None = None
    key: str | None = None


class IndexDeclaration(Record):
    """An index: columns with equality, then at most one with a range."""

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
    """A branch of merge, or the only branch of update and delete."""

    matched: bool
    condition: Bound | None
    actions: tuple[ActionPlan, ...]


class SetPlan(Record):
    """`on … set`: variables and their new values, in order, each perhaps at an index of an array."""

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
    """A statement that an event of `trigger` executes on a relation. Expressions read the event as source 0,
    the row of the relation as source 1, and the row before the statement, `initial`, as source 2.

    shows   the emitted rows: `rows` (the rows deleted, as inserts) or `changes` (+changed −old)
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
    """A select over the current rows of relations: an on-select (`trigger` is source 0 of the plan), or on
    demand."""

    beside = Record.beside | {"plan"}

    plan: Plan
    trigger: bool
    delete: bool = False


Declaration = WindowDeclaration | TableDeclaration | VariableDeclaration | AskedDeclaration
"""The declarations of a declaring statement."""

Acts = TriggerPlan | SplitPlan | ChoicePlan | SetPlan
"""The actions of a triggered statement."""


class RelationPlan(Record):
    """A named window or table, and its declared indexes."""

    plan: Plan
    indexes: tuple[IndexDeclaration, ...] = ()

    @property
    def declaration(self) -> WindowDeclaration | TableDeclaration | AskedDeclaration:
        """The declaration of the relation."""
        acts = self.plan.acts
        assert isinstance(acts, WindowDeclaration | TableDeclaration | AskedDeclaration)
        return acts


def relations_of(plan: Plan) -> frozenset[str]:
    """The named windows and tables that a statement reads or writes."""
    target = plan.into_table.table if plan.into_table is not None else plan.insert_into
    acts = plan.acts.relation if isinstance(plan.acts, TriggerPlan) else None
    written = {name for name in (target, acts) if name is not None}
    return plan.relations | written | {ask.table for ask in plan.asks}
