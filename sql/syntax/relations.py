"""Statements about relations: named windows, tables, indexes, triggers, and on-demand statements."""

from __future__ import annotations

from typing import Literal

from sql.syntax.expressions import Call, Expr, SelectItem
from sql.syntax.node import Node
from sql.syntax.select import Assignment, InsertInto, Select, Statement
from sql.syntax.sources import Source, StreamSource, WindowCall
from sql.syntax.statements import ColumnDefinition, ColumnType


class CreateWindow(Statement):
    """`create window W#view [as] (T | (columns) | select … from T) [insert [where e]]`.

    Its row type is that of `like`, the listed `columns`, or the columns of `select`. `fill`: rows of the
    window `like` that pass `where` are copied.
    """

    name: str
    windows: tuple[WindowCall, ...]
    retain: Literal["union", "intersection"] | None = None
    columns: tuple[ColumnDefinition, ...] = ()
    like: str | None = None
    select: Select | None = None
    fill: bool = False
    where: Expr | None = None


class TableColumn(Node):
    """A column of a table: of a plain type, or an aggregation, written as a call over types, `sum(double)`,
    or over columns `of` an event type, `sorted(n desc) @type(E)`."""

    name: str
    type: ColumnType | None = None
    aggregate: Call | None = None
    primary: bool = False
    of: str | None = None


class CreateTable(Statement):
    """`create table T (k string primary key, total sum(double), note string)`."""

    name: str
    columns: tuple[TableColumn, ...]


class IndexColumn(Node):
    """`col [hash|btree]`."""

    name: str
    kind: Literal["hash", "btree"] = "hash"


class CreateIndex(Statement):
    """`create [unique] index I on W (col [hash|btree], …)`."""

    name: str
    relation: str
    columns: tuple[IndexColumn, ...]
    unique: bool = False


class OnSelect(Statement):
    """`on trigger [insert into S] select [and delete] … from W …`; the relation is the one source of
    `select`."""

    trigger: Source
    select: Select
    delete: bool = False


class OnDelete(Statement):
    """`on trigger delete from W [where e]`."""

    trigger: Source
    relation: StreamSource
    where: Expr | None = None


class OnUpdate(Statement):
    """`on trigger update W set c = e, … [where e]`."""

    trigger: Source
    relation: StreamSource
    assignments: tuple[Assignment, ...]
    where: Expr | None = None


class MergeAction(Node):
    """One action of a branch. An insert without `into` goes into the relation merged into."""

    kind: Literal["insert", "update", "delete"]
    into: str | None = None
    columns: tuple[str, ...] = ()
    items: tuple[SelectItem, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    where: Expr | None = None


class MergeBranch(Node):
    """`when [not] matched [and e] then action (then action)*`. `matched` None: `insert` without WHEN, which
    acts whatever rows there are."""

    matched: bool | None
    condition: Expr | None
    actions: tuple[MergeAction, ...]


class OnMerge(Statement):
    """`on trigger merge W [where e] branch+`; `insert select …` without `when` is one
    branch that always inserts."""

    trigger: Source
    relation: StreamSource
    where: Expr | None
    branches: tuple[MergeBranch, ...]


class SplitBranch(Node):
    """`insert into S select items [where e]` of a split stream."""

    into: InsertInto
    items: tuple[SelectItem, ...]
    where: Expr | None = None


class Split(Statement):
    """`on trigger insert into A select … [where e] insert into B … [output first|all]`."""

    trigger: Source
    branches: tuple[SplitBranch, ...]
    all: bool = False


class DeleteRows(Statement):
    """`delete from W [where e]`, on demand."""

    relation: StreamSource
    where: Expr | None = None


class UpdateRows(Statement):
    """`update W set c = e, … [where e]`, on demand."""

    relation: StreamSource
    assignments: tuple[Assignment, ...]
    where: Expr | None = None


class InsertRows(Statement):
    """`insert into W [(columns)] values (…), (…)`, on demand."""

    into: InsertInto
    rows: tuple[tuple[Expr, ...], ...]
