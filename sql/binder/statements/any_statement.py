"""The plan of any statement that the engine runs: queries, triggered statements on relations,
declarations.

The plan of a statement that is no query has `acts`, its action; its sources are the streams that trigger it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sql import syntax as ast
from sql.binder.contexts.context_binder import priority_of
from sql.binder.contexts.statement_checks import check_statement, context_named
from sql.binder.select_binder import bind
from sql.binder.statements.declarations import bind_table, bind_window
from sql.binder.statements.ownership import check_ownership
from sql.binder.statements.trigger_binder import TriggerBinder, bind_choice
from sql.catalog.streams import Catalog
from sql.errors import Problems
from sql.plan.asks import AskPlan
from sql.plan.clauses import SourcePlan
from sql.plan.declared import Declaration
from sql.plan.logical import Acts, Plan, SubqueryPlan
from sql.plan.options import RuleOptions
from sql.syntax.declared_expressions import written_out

Bind = Callable[[Any, Catalog, RuleOptions, str], Plan]


def bind_statement(statement: ast.Statement, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    """The plan of a statement; relations that it declares are added to the catalog's streams. Raises
    SqlError."""
    statement = written_out(statement, catalog.expressions, text)
    plan = BINDERS[type(statement)](statement, catalog, options, text)
    problems = Problems()
    check_ownership(problems, plan, catalog, statement)
    problems.raise_if_any(text)
    return plan


def is_bound(statement: ast.Statement) -> bool:
    """True if a statement has a plan: others are declarations, or run on demand."""
    return type(statement) in BINDERS


def _acting(
    statement: ast.OnDelete | ast.OnUpdate | ast.OnMerge, catalog: Catalog, options: RuleOptions, text: str
) -> Plan:
    binder = TriggerBinder(statement.trigger, statement.relation, catalog, options, text, statement.context)
    if isinstance(statement, ast.OnDelete):
        acts = binder.delete(statement.where)
    elif isinstance(statement, ast.OnUpdate):
        acts = binder.update(statement.assignments, statement.where)
    else:
        acts = binder.merge(statement)
    assert acts.trigger is not None
    return _plan(
        statement,
        catalog,
        options,
        text,
        acts,
        _heard(acts.trigger, acts.subqueries),
        acts.subqueries,
        acts.relations,
        binder.asks,
    )


def _split(statement: ast.Split, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    binder = TriggerBinder(statement.trigger, None, catalog, options, text, statement.context)
    acts = binder.split(statement)
    heard = _heard(acts.trigger, acts.subqueries)
    return _plan(statement, catalog, options, text, acts, heard, acts.subqueries, asks=binder.asks)


def _on_set(statement: ast.OnSet, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    binder = TriggerBinder(statement.source, None, catalog, options, text, statement.context)
    acts = binder.assign(statement.assignments)
    heard = _heard(acts.trigger, acts.subqueries)
    return _plan(statement, catalog, options, text, acts, heard, acts.subqueries, asks=binder.asks)


def _window(statement: ast.CreateWindow, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    declaration, stream = bind_window(statement, catalog, options, text)
    catalog.add(stream)
    return _plan(statement, catalog, options, text, declaration, (stream.name,))


def _table(statement: ast.CreateTable, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    declaration, stream = bind_table(statement, catalog, options, text)
    catalog.add(stream)
    return _plan(statement, catalog, options, text, declaration, ())


def _heard(trigger: SourcePlan, subqueries: Iterable[SubqueryPlan]) -> tuple[str, ...]:
    """The streams a triggered statement reads: its trigger's, and those of the windows of its
    subqueries."""
    found = [*trigger.streams, *(name for part in subqueries for name in part.plan.reads)]
    return tuple(dict.fromkeys(found))


def _plan(
    statement: ast.Statement,
    catalog: Catalog,
    options: RuleOptions,
    text: str,
    acts: Acts | Declaration,
    heard: tuple[str, ...],
    subqueries: tuple[SubqueryPlan, ...] = (),
    relations: frozenset[str] = frozenset(),
    asks: tuple[AskPlan, ...] = (),
) -> Plan:
    """The plan under which the engine runs a statement that is no query."""
    problems = Problems()
    context = None
    reads: dict[str, frozenset[str] | None] = dict.fromkeys(heard)
    if statement.context is not None:
        context = context_named(catalog, statement.context, problems, statement.span)
    if context is not None:
        check_statement(problems, context, set(heard), statement.span, catalog)
        reads = dict.fromkeys((*reads, *context.reads))
    problems.raise_if_any(text)
    sources = tuple(SourcePlan(name, name) for name in heard)
    return Plan(text, "delta", sources, (), options, reads=reads, context=context, subqueries=subqueries,
                priority=priority_of(statement), relations=relations, asks=asks, acts=acts)  # fmt: skip


BINDERS: dict[type[ast.Statement], Bind] = {
    ast.Select: bind,
    ast.OnSelect: bind_choice,
    ast.OnDelete: _acting,
    ast.OnUpdate: _acting,
    ast.OnMerge: _acting,
    ast.Split: _split,
    ast.OnSet: _on_set,
    ast.CreateWindow: _window,
    ast.CreateTable: _table,
}
"""The function that binds each kind of statement."""
