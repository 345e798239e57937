"""Queries on demand: select, insert, update and delete over named windows and tables, between two events.

A query is parsed, bound and answered once. A change is a step: consumers process it before the answer
is returned. A refused query changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sql import syntax as ast
from sql.algebra.context.selectors import Selector
from sql.algebra.event import Event
from sql.binder.scope import Site
from sql.binder.statements.trigger_binder import TriggerBinder, bind_question
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.compiler.acting import ActingText, Changed, Forward
from sql.compiler.program import finder_of, looking_code, subqueries_of
from sql.compiler.shared_code import Environment, SharedCode
from sql.emission import Emission, Row
from sql.engine.context.spread import SpreadRelation
from sql.engine.questions.question_parameters import Parameters, with_parameters
from sql.engine.relations.on_change import Insert
from sql.engine.statement.evaluation import Choice
from sql.engine.statement.running_statement import RunningStatement
from sql.engine.statement.subqueries import Subqueries
from sql.errors import DataError, Fail, SqlError, did_you_mean
from sql.language import parse
from sql.plan.logical import Plan, TriggerPlan
from sql.plan.options import RuleOptions
from sql.record import replace
from sql.syntax.declared_expressions import written_out

OPTIONS = RuleOptions()


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
) -> list[Row]:
    """The rows that answer one query. Raises SqlError for an invalid query, DataError for one
    that cannot be carried out.

    Rows that a change inserts elsewhere go to `forward`. `read_only` refuses everything but SELECT.
    """
    statements = parse(text)
    catalog = with_parameters(text, catalog, parameters)
    if len(statements) != 1:
        raise _refused(text, statements[1], "one question at a time")
    statement = written_out(statements[0], catalog.expressions, text)
    question = Question(text, catalog, now_ms, forward)
    if isinstance(statement, ast.Select) and statement.insert_into is None and statement.into_table is None:
        return question.select(statement)
    if read_only:
        raise _refused(text, statement, "only SELECT may be asked here: nothing is changed")
    if isinstance(statement, ast.DeleteRows | ast.UpdateRows):
        return question.change(statement)
    if isinstance(statement, ast.InsertRows):
        return question.insert(statement)
    if isinstance(statement, ast.Select) and statement.insert_into is not None and statement.source is None:
        row = tuple(item.expr for item in statement.items)
        named = tuple(item.alias or item.text for item in statement.items)
        into = statement.insert_into
        into = into if into.columns else ast.InsertInto(into.stream, "istream", named, span=into.span)
        return question.insert(ast.InsertRows(into, (row,), span=statement.span))
    raise _refused(
        text,
        statement,
        "a question selects from, deletes from, updates or inserts into a relation",
        "deploy it as a statement",
    )


def is_question(statement: ast.Statement, catalog: Catalog) -> bool:
    """True for what reads or changes the rows of relations, and runs over no stream."""
    if not isinstance(statement, ast.Select):
        return isinstance(statement, ast.DeleteRows | ast.UpdateRows | ast.InsertRows)
    if statement.source is None or statement.insert_into is not None or statement.into_table is not None:
        return statement.source is None and statement.insert_into is not None
    if statement.selector is not None or statement.output is not None:
        return False
    names = [
        source.name if isinstance(source, ast.StreamSource) else ""
        for source in (statement.source, *(join.source for join in statement.joins))
    ]
    return all(name in catalog.relations for name in names)


def planned(text: str, catalog: Catalog, parameters: Parameters = ()) -> Plan:
    """The plan of a SELECT on demand. Raises SqlError for anything else."""
    statement, *further = parse(text)
    catalog = with_parameters(text, catalog, parameters)
    if further or not isinstance(statement, ast.Select) or statement.source is None:
        raise _refused(text, (*further, statement)[0], "what is explained here is one SELECT … FROM …")
    choice = bind_question(written_out(statement, catalog.expressions, text), catalog, OPTIONS, text)
    return replace(choice.plan, acts=choice)


def chosen(catalog: Catalog, selector: Selector) -> Catalog:
    """The catalog in which relations of contexts have the rows of the chosen partitions only."""
    found = catalog.relations.items()
    narrowed = {name: item.chosen(selector) for name, item in found if isinstance(item, SpreadRelation)}
    return catalog.within({}, narrowed)


def _refused(text: str, statement: ast.Statement, message: str, hint: str | None = None) -> SqlError:
    return SqlError.of("B557", message, statement.span, hint, text=text)


class Question:
    """One query on demand, and how its kinds are answered."""

    def __init__(self, text: str, catalog: Catalog, now_ms: int, forward: Forward) -> None:
        self.text = text
        self.catalog = catalog
        self.env = Environment("question", catalog, now_ms)
        self.forward = forward

    def select(self, statement: ast.Select) -> list[Row]:
        """The rows that a SELECT finds."""
        if statement.source is None:
            raise _refused(self.text, statement, "a question reads a named window or a table", "add FROM")
        plan = bind_question(statement, self.catalog, OPTIONS, self.text).plan
        program = looking_code(plan, self.env)
        query = RunningStatement(program, self.env)
        rows = Choice(query, finder_of(program)).rows()
        for error in query.take():
            raise DataError(error.error or "a row could not be evaluated")
        return rows

    def change(self, statement: ast.DeleteRows | ast.UpdateRows) -> list[Row]:
        """The rows of a named window that DELETE has removed, or UPDATE has written."""
        binder = TriggerBinder(None, statement.relation, Site(self.catalog, OPTIONS, self.text))
        if isinstance(statement, ast.DeleteRows):
            plan = binder.delete(statement.where)
        else:
            plan = binder.update(statement.assignments, statement.where)
        functions = self._functions(plan)
        relation, changed = self.catalog.relations[plan.relation], Changed(_raising(functions))
        work = ActingText(plan, relation, functions).over(relation, self.forward)
        work(changed, [{}], self.env.now_ms)
        return [] if relation.kind == "table" else changed.came

    def insert(self, statement: ast.InsertRows) -> list[Row]:
        """The rows of INSERT into a named window, those too that its data windows keep back or refuse."""
        name = statement.into.stream
        relation = self.catalog.relations.get(name)
        if relation is None:
            hint = did_you_mean(name, self.catalog.relations)
            raise _refused(self.text, statement, f"unknown named window or table '{name}'", hint)
        columns = statement.into.columns or relation.columns
        rows = [self._row(statement, values, columns) for values in statement.rows]
        relation.change(rows, (), self.env.now_ms)
        whole = [{name: row.get(name) for name in relation.columns} for row in rows]
        return [] if relation.kind == "table" else whole

    def _row(self, statement: ast.InsertRows, values: tuple[ast.Expr, ...], columns: tuple[str, ...]) -> Row:
        if len(values) != len(columns):
            message = f"values for {', '.join(columns)} are expected, and there are {len(values)}"
            raise _refused(self.text, statement, message)
        items = tuple(
            ast.SelectItem(value, name, span=value.span) for value, name in zip(values, columns, strict=True)
        )
        into = statement.into
        branch = ast.MergeBranch(
            None, None, (ast.MergeAction("insert", None, columns, items, span=statement.span),)
        )
        relation = ast.StreamSource(into.stream, into.stream, span=into.span)
        merge = ast.OnMerge(relation, relation, None, (branch,), span=statement.span)
        plan = TriggerBinder(None, relation, Site(self.catalog, OPTIONS, self.text)).merge(merge)
        functions = self._functions(plan)
        insert = Insert(plan.branches[0].actions[0], functions)
        try:
            row: Row = insert.row(Event(({}, None, None), self.env.now_ms, 0))
        except DATA_ERRORS as error:
            raise functions.failure(error) from error
        return row

    def _functions(self, plan: TriggerPlan) -> FunctionSet:
        code = SharedCode(self.env, OPTIONS)
        codes = subqueries_of(plan.subqueries, code)
        subqueries = Subqueries(codes, code.warnings, self.env, RunningStatement, _raise_reason)
        return code.function_set(text=self.text, joined=True, subqueries=subqueries.answers)


def _raising(functions: FunctionSet) -> Fail:
    """Raise what cannot be evaluated, with its place in the question."""

    def fail(row: object, error: BaseException) -> None:
        raise functions.failure(error) from error

    return fail


def _raise_reason(row: Row, why: str) -> None:
    raise DataError(why)
