"""From the text of a rule to its plan: parse, bind, and the checks that need the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sql.aggregates
import sql.functions  # noqa: F401 - fill the registries
from sql import syntax as ast
from sql.binder.statements.any_statement import bind_statement, is_bound
from sql.binder.statements.declarations import bind_index
from sql.binder.statements.variables import plan_variable
from sql.catalog.stores import STORES
from sql.catalog.streams import Catalog, Stream, declare_in_context
from sql.errors import Span, SqlError, did_you_mean
from sql.language import parse
from sql.plan.clauses import SourcePlan
from sql.plan.declared import (
    Bounds,
    IndexDeclaration,
    LookupDeclaration,
    TableDeclaration,
    VariableDeclaration,
    WindowDeclaration,
)
from sql.plan.logical import Plan
from sql.plan.options import RuleOptions
from sql.plan.relation_plan import RelationPlan
from sql.record import replace

SECTIONS: dict[type[ast.Statement], str] = {
    ast.CreateStream: "streams",
    ast.CreateWindow: "tables",
    ast.CreateTable: "tables",
    ast.CreateIndex: "tables",
    ast.CreateContext: "contexts",
    ast.CreateVariable: "variables",
    ast.CreateExpression: "expressions",
}
"""The section of a rule file in which a declaration stands."""


class Declared:
    """A relation with its declaration only, in the interface that binders use."""

    def __init__(self, declaration: WindowDeclaration | TableDeclaration) -> None:
        self.declaration = declaration
        self.kind = "window" if isinstance(declaration, WindowDeclaration) else "table"
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.named: dict[str, Any] = {}
        """Its declared indexes, by name."""


def plan_rule(
    text: str, catalog: Catalog, options: RuleOptions | None = None, context: str | None = None
) -> Plan:
    """The plan of a rule's SQL, in the partitions of `context` if that is given.

    Raises SqlError holding every problem; `plan.warnings` has what is only odd.
    """
    statements = parse(text)
    first = statements[0]
    if len(statements) != 1 or not is_bound(first) or type(first) in SECTIONS:
        extra = statements[1].span if len(statements) > 1 else Span(0, len(text))
        is_own = isinstance(first, ast.CreateVariable) and first.context is not None
        section = "tables" if is_own else SECTIONS.get(type(first))
        hint = "write one rule for each statement" if section is None else f"declare it under {section}:"
        what = "a rule is one statement: SELECT, UPDATE ISTREAM, or ON … with what it does"
        raise SqlError.of("B001", what, extra, hint, text=text)
    if context is not None and first.context not in (None, context):
        what = f"the statement names context '{first.context}', the rule '{context}'"
        raise SqlError.of("B820", what, first.in_context, "name it once", text=text)
    statement = first if context is None else replace(first, context=context)
    if isinstance(statement, ast.Select) and statement.source is None and statement.context is None:
        what = "a rule reads at least one stream: FROM is missing"
        raise SqlError.of("B002", what, statement.span, text=text)
    return bind_statement(statement, catalog, options or RuleOptions(), text)


def plan_relation(
    name: str, text: str, catalog: Catalog, options: RuleOptions, bounds: Bounds
) -> RelationPlan:
    """The plan of `create window` or `create table` with the indexes behind it, or of a variable of a
    context; declared in the catalog.

    Raises SqlError, and then the catalog is as before.
    """
    statements = parse(text)
    first, *rest = statements
    wrong = next((item for item in rest if not isinstance(item, ast.CreateIndex)), None)
    if not isinstance(first, ast.CreateWindow | ast.CreateTable | ast.CreateVariable):
        wrong = first
    if wrong is not None:
        what = "a table is CREATE TABLE or CREATE WINDOW, and CREATE INDEX behind it"
        raise SqlError.of("B001", what, wrong.span, "write rules under rules:", text=text)
    assert isinstance(first, ast.CreateWindow | ast.CreateTable | ast.CreateVariable)
    if first.name != name:
        what = f"the statement declares '{first.name}', but its key is '{name}'"
        raise SqlError.of("B001", what, first.span, "make them equal", text=text)
    if isinstance(first, ast.CreateVariable):
        return _variable(first, rest, catalog, options, bounds, text)
    if isinstance(first, ast.CreateWindow) and first.fill:
        what = "INSERT copies rows once, when a statement is deployed by hand"
        raise SqlError.of("B001", what, first.span, "write a rule that inserts into it", text=text)
    plan = bind_statement(first, catalog, options, text)
    assert isinstance(plan.acts, WindowDeclaration | TableDeclaration)
    declared = replace(plan.acts, bounds=bounds)
    catalog.relations[name] = Declared(declared)
    try:
        indexes = tuple(_index(item, name, catalog, text) for item in rest)
    except SqlError:
        del catalog.relations[name], catalog.streams[name]
        raise
    return RelationPlan(replace(plan, acts=declared), indexes)


def _variable(
    first: ast.CreateVariable,
    rest: Sequence[ast.Statement],
    catalog: Catalog,
    options: RuleOptions,
    bounds: Bounds,
    text: str,
) -> RelationPlan:
    """The plan of a variable that each partition of a context has for itself."""
    if first.context is None:
        what = "only a variable of a context stands here"
        raise SqlError.of("B001", what, first.span, "declare it under variables:", text=text)
    if rest or bounds != Bounds():
        what = "a variable has neither an index nor bounds"
        raise SqlError.of("B001", what, first.span, "leave them out", text=text)
    plan = plan_variable(first, catalog, options, text)
    assert isinstance(plan.acts, VariableDeclaration)
    declare_in_context(catalog, first.context, plan.acts)
    return RelationPlan(plan)


def _index(statement: ast.Statement, name: str, catalog: Catalog, text: str) -> IndexDeclaration:
    assert isinstance(statement, ast.CreateIndex)
    if statement.relation != name:
        what = f"this index is on '{statement.relation}', not on '{name}'"
        raise SqlError.of("B001", what, statement.span, "declare it with its table", text=text)
    index = bind_index(statement, catalog, text)
    catalog.relations[name].named[index.name] = index
    return index


def plan_lookup(
    statement: ast.CreateStream, text: str, catalog: Catalog, options: RuleOptions
) -> RelationPlan:
    """The plan of a lookup table, which takes the place of its stream in the catalog. Raises SqlError.

    TYPE decides where the rows are:

    a store (sql, http, redis)   is queried for the rows of each event, before that enters the rule
    a source, with columns       fills a table with KEY as its primary key; joins look rows up in it by hash
    a source, without columns    fills a table that answers like a store, at once: the newest row of each KEY
    """
    stream = catalog.streams[statement.name]
    is_store = str(stream.options.get("TYPE", "")).lower() in STORES
    key = None if is_store else _key(statement, stream)
    declared: LookupDeclaration | TableDeclaration
    if key is None or stream.columns is None:
        declared = LookupDeclaration(stream.name, stream.columns, key)
        catalog.streams[stream.name] = replace(stream, kind="store")
    else:
        declared = TableDeclaration(
            stream.name, dict(stream.columns), (key,), bounds=Bounds(options.max_rows)
        )
        catalog.streams[stream.name] = replace(stream, kind="table")
        catalog.relations[stream.name] = Declared(declared)
    source = SourcePlan(stream.name, stream.name)
    return RelationPlan(Plan(text, "delta", (source,), (), options, reads={stream.name: None}, acts=declared))


def _key(statement: ast.CreateStream, stream: Stream) -> str:
    """The column that rows are looked up by."""
    option = next((option for option in statement.options if option.key.upper() == "KEY"), None)
    if option is None:
        span = next((item.span for item in statement.options if item.key.upper() == "KIND"), statement.span)
        how = "'key: column' in a rule file, KEY=\"column\" in CREATE TABLE"
        hint = f"name the column by which rows are looked up: {how}; only TYPE {', '.join(STORES)} needs none"
        raise SqlError.of("B532", f"lookup table '{stream.name}' has no KEY", span, hint)
    key = str(option.value)
    if stream.columns is not None and key not in stream.columns:
        what = f"KEY '{key}' is no column of '{stream.name}'"
        raise SqlError.of("B532", what, option.span, did_you_mean(key, stream.columns))
    return key
