"""Statements other than SELECT."""

from __future__ import annotations

from typing import Literal

from sql.syntax.expressions import Expr
from sql.syntax.node import Node
from sql.syntax.select import Assignment, Statement
from sql.syntax.sources import StreamSource


class ColumnType(Node):
    """A declared type: `bigint`, `float`, `string`, `boolean`, `datetime`, `bytea`, `array(element)`,
    `struct(fields)`.

    EPL's names (long, int, double, …) are kept as written, in lower case; `sql.types` knows both.
    """

    name: str
    element: ColumnType | None = None
    fields: tuple[ColumnDefinition, ...] = ()


class ColumnDefinition(Node):
    """`name type [DEFAULT v]`."""

    name: str
    type: ColumnType
    default: None | bool | int | float | str = None


class Option(Node):
    """`KEY="value"` of WITH; `key` is upper case."""

    key: str
    value: None | bool | int | float | str


class CreateStream(Statement):
    """`CREATE STREAM|TABLE name (columns) WITH (options)`. EPL's `create schema Name as (…)` gives
    `kind='schema'`."""

    name: str
    columns: tuple[ColumnDefinition, ...] = ()
    options: tuple[Option, ...] = ()
    kind: Literal["stream", "table", "schema"] = "stream"
    like: tuple[str, ...] = ()
    """`create schema Name as A, B` and `copyfrom A`: the types whose columns it also has."""
    inherits: tuple[str, ...] = ()
    """The types that its events also belong to; it has their columns."""


class CreateVariable(Statement):
    """`create [constant] variable type[[]] name [= expr]`."""

    name: str
    type_name: str
    value: Expr | None = None
    constant: bool = False
    array: bool = False


class CreateExpression(Statement):
    """`create expression name { x => e }`, or `expression name { … }` before a statement: an expression that
    is called by this name. Without parameters it may be written without parentheses."""

    name: str
    body: Expr
    parameters: tuple[str, ...] = ()


class OnSet(Statement):
    """`on Stream(filter) [as s] set a = e, …`."""

    source: StreamSource
    assignments: tuple[Assignment, ...]


class UpdateStream(Statement):
    """`update istream Stream [as alias] set a = e, … [where e]`:
    changes events before other statements read them."""

    stream: str
    assignments: tuple[Assignment, ...]
    where: Expr | None = None
    alias: str | None = None
