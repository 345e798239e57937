"""Queries on demand: select, insert, update and delete over named windows and tables, between two events.

A query is parsed, bound and answered once. A change is a step: consumers process it before the answer
is returned. A refused query changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sql import syntax as ast
from sql.algebra.context.selectors import Selector
from sql.algebra.event import Delta, Event
from sql.binder.statements.trigger_binder import TriggerBinder, bind_question
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet
from sql.compiler.acting import Changed
from sql.compiler.program import looking_code, subqueries_of
from sql.compiler.shared_code import Environment, SharedCode
from sql.compiler.subquery_code import finder_of
from sql.emission import Emission
from sql.engine.context.spread import SpreadRelation
from sql.engine.questions.question_parameters import Parameters, with_parameters
from sql.engine.relations.on_change import Insert, actor
from sql.engine.running.running_statement import RunningStatement
from sql.engine.statement.choice import Choice
from sql.engine.statement.subqueries import Subqueries
from sql.errors import DataError, Problem, SqlError, did_you_mean
from sql.language import parse
from sql.plan.logical import Plan, TriggerPlan
from sql.plan.options import RuleOptions
from sql.record import replace
from sql.syntax.declared_expressions import written_out

Row = dict[str, Any]
Forward = Callable[[str, Row], None]


@dataclass(slots=True)
class Answer:
    """The answer to a question: its rows, and the emissions of rules because of a change."""

    rows: list[Row]
    emissions: list[Emission] = field(default_factory=list)


def ask(
    text: str,
    catalog: Catalog,
    now_ms: int,
    forward: Forward,
    *,
    parameters: Parameters = (),
    read_only: bool = False,
    options: RuleOptions | None = None,
) -> list[Row]:
    """The rows that answer one query. Raises SqlError for an invalid query, DataError for one
    that cannot be carried out.

    Rows that a change inserts elsewhere go to `forward`. `read_only` refuses everything but SELECT.
    """
    statements = parse(text)
    catalog = with_parameters(text, catalog, parameters)
    options = options or RuleOptions()
    if len(statements) != 1:
        raise _refused(text, statements[1], "one question at a time")
    statement = written_out(statements[0], catalog.expressions, text)
    if isinstance(statement, ast.Select) and statement.insert_into is None and statement.into_table is None:
        return _select(statement, catalog, options, text, now_ms)
    if read_only:
        raise _refused(text, statement, "only SELECT may be asked here: nothing is changed")
    if isinstance(statement, ast.DeleteRows | ast.UpdateRows):
        return _change(statement, catalog, options, text, now_ms, forward)
    if isinstance(statement, ast.InsertRows):
        return _insert(statement, catalog, options, text, now_ms)
    if isinstance(statement, ast.Select) and statement.insert_into is not None and statement.source is None:
        row = tuple(item.expr for item in statement.items)
        named = tuple(item.alias or item.text for item in statement.items)
        into = statement.insert_into
        into = into if into.columns else ast.InsertInto(into.stream, "istream", named, span=into.span)
        return _insert(ast.InsertRows(into, (row,), span=statement.span), catalog, options, text, now_ms)
    raise _refused(
        text,
        statement,
        "a question selects from, deletes from, updates or inserts into a relation",
        "deploy it as a statement",
    )


def planned(text: str, catalog: Catalog, parameters: Parameters = ()) -> Plan:
    """The plan of a SELECT on demand. Raises SqlError for anything else."""
    statement, *further = parse(text)
    catalog = with_parameters(text, catalog, parameters)
    if further or not isinstance(statement, ast.Select) or statement.source is None:
        raise _refused(text, (*further, statement)[0], "what is explained here is one SELECT … FROM …")
    choice = bind_question(written_out(statement, catalog.expressions, text), catalog, RuleOptions(), text)
    return replace(choice.plan, acts=choice)


def chosen(catalog: Catalog, selector: Selector) -> Catalog:
    """The catalog in which relations of contexts have the rows of the chosen partitions only."""
    found = catalog.relations.items()
    narrowed = {name: item.chosen(selector) for name, item in found if isinstance(item, SpreadRelation)}
    return catalog.within({}, narrowed)


def _refused(text: str, statement: ast.Statement, message: str, hint: str | None = None) -> SqlError:
    return SqlError([Problem("B557", message, statement.span, hint)], text)


def _select(
    statement: ast.Select, catalog: Catalog, options: RuleOptions, text: str, now_ms: int
) -> list[Row]:
    if statement.source is None:
        raise _refused(text, statement, "a question reads a named window or a table", "add FROM")
    plan = bind_question(statement, catalog, options, text).plan
    env = Environment("question", catalog, now_ms)
    program = looking_code(plan, env)
    query = RunningStatement(program, env)
    rows = Choice(plan, query, finder_of(program)).rows()
    for error in query.take():
        raise DataError(error.error or "a row could not be evaluated")
    return rows


def _change(
    statement: ast.DeleteRows | ast.UpdateRows,
    catalog: Catalog,
    options: RuleOptions,
    text: str,
    now_ms: int,
    forward: Forward,
) -> list[Row]:
    binder = TriggerBinder(None, statement.relation, catalog, options, text)
    if isinstance(statement, ast.DeleteRows):
        plan = binder.delete(statement.where)
    else:
        plan = binder.update(statement.assignments, statement.where)
    work = actor(plan, catalog, _functions(plan, catalog, options, text, now_ms), forward)
    changed = Changed(_raised)
    work(changed, [{}], now_ms)
    return [] if catalog.relations[plan.relation].kind == "table" else changed.came


def _raised(row: object, error: BaseException) -> None:
    raise error


def _functions(
    plan: TriggerPlan, catalog: Catalog, options: RuleOptions, text: str, now_ms: int
) -> FunctionSet:
    env = Environment("question", catalog, now_ms)
    code = SharedCode(env, options)
    codes = subqueries_of(plan.subqueries, code)
    subqueries = Subqueries(codes, code.warnings, env, RunningStatement, _refuse)
    return FunctionSet(*code.settings, joined=True, text=text, subqueries=subqueries.answers)


def _refuse(row: Row, why: str) -> None:
    raise DataError(why)


def _insert(
    statement: ast.InsertRows, catalog: Catalog, options: RuleOptions, text: str, now_ms: int
) -> list[Row]:
    relation = catalog.relations.get(statement.into.stream)
    if relation is None:
        hint = did_you_mean(statement.into.stream, catalog.relations)
        raise _refused(text, statement, f"unknown named window or table '{statement.into.stream}'", hint)
    columns = statement.into.columns or relation.columns
    rows = [_row(statement, values, columns, catalog, options, text, now_ms) for values in statement.rows]
    delta: Delta = relation.change(rows, (), now_ms)
    return [] if relation.kind == "table" else [event.row for event in delta.inserted]


def _row(
    statement: ast.InsertRows,
    values: tuple[ast.Expr, ...],
    columns: tuple[str, ...],
    catalog: Catalog,
    options: RuleOptions,
    text: str,
    now_ms: int,
) -> Row:
    if len(values) != len(columns):
        raise _refused(text, statement, f"{len(columns)} columns and {len(values)} values")
    items = tuple(
        ast.SelectItem(value, name, span=value.span) for value, name in zip(values, columns, strict=True)
    )
    action = ast.MergeAction("insert", None, columns, items, span=statement.span)
    relation = ast.StreamSource(statement.into.stream, statement.into.stream, span=statement.into.span)
    merge = ast.OnMerge(
        relation, relation, None, (ast.MergeBranch(False, None, (action,)),), span=statement.span
    )
    plan = TriggerBinder(None, relation, catalog, options, text).merge(merge)
    insert = Insert(plan.branches[0].actions[0], _functions(plan, catalog, options, text, now_ms))
    row: Row = insert.row(Event(({}, None, None), now_ms, 0))
    return row
