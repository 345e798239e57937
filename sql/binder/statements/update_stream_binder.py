"""Binding `update istream`, which changes the events of a stream, or the rows that enter a named window."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import no_subquery
from sql.binder.catalog_names import stream_named
from sql.binder.expressions.assignments import Target, assigned_column
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.scope import Scope, Site, SourceScope
from sql.plan.bound import Bound
from sql.plan.clauses import SourcePlan
from sql.plan.logical import UpdateStreamPlan

WHERE = Place("WHERE", analytics=False, aliases=False)
ASSIGNED = Place("an assignment", analytics=False, aliases=False)


def bind_update_stream(statement: ast.UpdateStream, site: Site) -> UpdateStreamPlan:
    """The change of the events of a stream, or of the rows that enter a named window. Raises SqlError."""
    stream = stream_named(site, statement.stream, statement.span)
    site.raise_if_any()
    assert stream is not None
    if stream.is_relation and stream.kind != "window":
        what, hint = f"table '{stream.name}' has no events", "write ON stream UPDATE to change its rows"
        site.problems.error("B533", f"{what} to change", statement.span, hint)
    source = SourceScope(statement.alias or stream.name, stream.name, stream.columns)
    binder = ExpressionBinder(Scope(site, [source]), no_subquery("B209", "in UPDATE ISTREAM"))
    target = Target(stream, (source.alias, stream.name))
    assignments: list[tuple[str, Bound]] = []
    for item in statement.assignments:
        before = dict(assignments).get(item.name) if item.index is not None else None
        assignments.append((item.name, assigned_column(binder, item, ASSIGNED, target, before)))
    where = binder.condition(statement.where, WHERE)
    site.raise_if_any()
    drops = any(note.name == "drop" for note in statement.annotations)
    trigger = SourcePlan(stream.name, source.alias, columns=stream.columns, filter=where)
    return UpdateStreamPlan(trigger, tuple(assignments), drops)
