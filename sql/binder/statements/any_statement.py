"""The plan of any statement that the engine runs: queries, triggered statements on relations,
declarations.

The plan of a statement that is no query has `acts`, its action; its sources are the streams that trigger it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sql import syntax as ast
from sql.binder.annotations import priority_of
from sql.binder.contexts.statement_checks import check_statement, context_named
from sql.binder.reads import Reads
from sql.binder.scope import Site
from sql.binder.select_binder import bind
from sql.binder.statements.declarations import bind_table, bind_window
from sql.binder.statements.event_types import check_types
from sql.binder.statements.trigger_binder import TriggerBinder, bind_choice
from sql.binder.statements.update_stream_binder import bind_update_stream
from sql.catalog.streams import Catalog
from sql.errors import Problems, SqlError
from sql.plan.clauses import SourcePlan
from sql.plan.declared import Declaration
from sql.plan.logical import Acts, Plan, SetPlan, SplitPlan, TriggerPlan
from sql.plan.options import RuleOptions
from sql.record import replace
from sql.syntax.declared_expressions import written_out

Bind = Callable[[Any, Site], Plan]


def bind_statement(statement: ast.Statement, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    """The plan of a statement; relations that it declares, and streams that it fills, are added to the
    catalog's streams. Raises SqlError, and then adds none."""
    before = dict(catalog.streams)
    try:
        return _bound(statement, catalog, options, text)
    except SqlError:
        catalog.streams.clear()
        catalog.streams.update(before)
        raise


def _bound(statement: ast.Statement, catalog: Catalog, options: RuleOptions, text: str) -> Plan:
    statement = written_out(statement, catalog.expressions, text)
    plan = BINDERS[type(statement)](statement, Site(catalog, options, text))
    problems = Problems()
    _check_ownership(problems, plan, catalog, statement)
    check_types(problems, plan, catalog, statement.span)
    problems.raise_if_any(text)
    return plan


def _check_ownership(problems: Problems, plan: Plan, catalog: Catalog, statement: ast.Statement) -> None:
    """Report a statement that uses a relation of a context in whose partitions it does not run.

    Any statement may select from a named window, and then reads all partitions; and any may insert into it: a
    row goes to the partitions that it belongs to.
    """
    mine = None if plan.context is None else plan.context.name
    free = (
        {source.stream for source in plan.sources if source.relation == "window"}
        if plan.acts is None
        else set()
    )
    used = set(plan.relations)
    if isinstance(plan.acts, TriggerPlan):
        used.add(plan.acts.relation)
    if plan.into_table is not None:
        used.add(plan.into_table.table)
    for name in sorted(used - free):
        owner = catalog.streams[name].context if name in catalog.streams else None
        if owner is not None and owner != mine:
            message = f"'{name}' has rows of its own in each partition of context '{owner}'"
            problems.error("B821", message, statement.span, f"write CONTEXT {owner} before the statement")


def is_bound(statement: ast.Statement) -> bool:
    """True if a statement has a plan: others are declarations, or run on demand."""
    return type(statement) in BINDERS


def _delete(statement: ast.OnDelete, site: Site) -> Plan:
    binder = TriggerBinder(statement.trigger, statement.relation, site, statement.context)
    return _triggered(statement, binder, binder.delete(statement.where))


def _update(statement: ast.OnUpdate, site: Site) -> Plan:
    binder = TriggerBinder(statement.trigger, statement.relation, site, statement.context)
    return _triggered(statement, binder, binder.update(statement.assignments, statement.where))


def _merge(statement: ast.OnMerge, site: Site) -> Plan:
    binder = TriggerBinder(statement.trigger, statement.relation, site, statement.context)
    return _triggered(statement, binder, binder.merge(statement))


def _split(statement: ast.Split, site: Site) -> Plan:
    binder = TriggerBinder(statement.trigger, None, site, statement.context)
    return _triggered(statement, binder, binder.split(statement))


def _on_set(statement: ast.OnSet, site: Site) -> Plan:
    binder = TriggerBinder(statement.source, None, site, statement.context)
    return _triggered(statement, binder, binder.assign(statement.assignments))


def _update_stream(statement: ast.UpdateStream, site: Site) -> Plan:
    return _plan(statement, site, bind_update_stream(statement, site), (statement.stream,))


def _window(statement: ast.CreateWindow, site: Site) -> Plan:
    declaration, stream = bind_window(statement, site)
    site.catalog.add(stream)
    return _plan(statement, site, declaration, (stream.name,))


def _table(statement: ast.CreateTable, site: Site) -> Plan:
    declaration, stream = bind_table(statement, site)
    site.catalog.add(stream)
    return _plan(statement, site, declaration, ())


def _triggered(
    statement: ast.Statement, binder: TriggerBinder, acts: TriggerPlan | SplitPlan | SetPlan
) -> Plan:
    """The plan of what acts at each event of a trigger; it reads the streams of its subqueries too."""
    assert acts.trigger is not None
    streams = [*acts.trigger.streams, *(name for part in acts.subqueries for name in part.plan.reads)]
    return replace(
        _plan(statement, binder.site, acts, streams),
        subqueries=acts.subqueries,
        relations=acts.relations if isinstance(acts, TriggerPlan) else frozenset(),
        lookups=binder.lookup_plans,
    )


def _plan(statement: ast.Statement, site: Site, acts: Acts | Declaration, streams: Iterable[str]) -> Plan:
    """The plan under which the engine runs a statement that is no query."""
    problems = Problems()
    context = None
    reads: Reads = dict.fromkeys(streams)
    sources = tuple(SourcePlan(name, name) for name in reads)
    if statement.context is not None:
        context = context_named(site.catalog, statement.context, problems, statement.in_context)
    if context is not None:
        check_statement(problems, context, set(reads), statement.span, site.catalog)
        reads = dict.fromkeys((*reads, *context.reads))
    problems.raise_if_any(site.text)
    return Plan(
        text=site.text,
        mode="delta",
        sources=sources,
        items=(),
        options=site.options,
        reads=reads,
        context=context,
        priority=priority_of(statement),
        acts=acts,
    )


BINDERS: dict[type[ast.Statement], Bind] = {
    ast.Select: bind,
    ast.OnSelect: bind_choice,
    ast.OnDelete: _delete,
    ast.OnUpdate: _update,
    ast.OnMerge: _merge,
    ast.Split: _split,
    ast.OnSet: _on_set,
    ast.UpdateStream: _update_stream,
    ast.CreateWindow: _window,
    ast.CreateTable: _table,
}
"""The function that binds each kind of statement."""
