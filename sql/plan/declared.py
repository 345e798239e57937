"""Declarations of relations and variables. Plain data, like `sql.plan.logical`."""

from __future__ import annotations

from typing import Any

from sql.aggregates.base import Aggregate
from sql.plan.bound import Read
from sql.plan.clauses import SourcePlan
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

    def replaces(self, columns: tuple[str, ...]) -> bool:
        """True if a data window lets go of a row when another with the same values of these columns comes."""
        windows = {window.name: window.arguments for window in self.source.windows}
        if self.source.union or "groupwin" in windows:
            return False
        keys = windows.get("unique", {}).get("keys")
        by_key = keys is not None and all(isinstance(key, Read) and key.column in columns for key in keys)
        return by_key or "lastevent" in windows


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


class LookupDeclaration(Record):
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


class VariableDeclaration(Record):
    """`context C create variable`: a variable with this first value in each partition."""

    beside = Record.beside | {"event"}

    name: str
    type: Type
    value: Any = None
    constant: bool = False
    element: Type = Type.ANY
    event: str = ""


Declaration = WindowDeclaration | TableDeclaration | VariableDeclaration | LookupDeclaration
"""The declarations of a declaring statement."""
