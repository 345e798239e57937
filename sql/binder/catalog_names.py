"""Names of the catalog in a statement: the stream that one means, and the reports of unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.scope import Site
from sql.catalog.streams import Stream
from sql.errors import Problems, Span, did_you_mean
from sql.plan.bound import Bound
from sql.types import Type

DECLARE = "declare it with CREATE STREAM or under streams:"


def stream_named(site: Site, name: str, span: Span, hint: str = DECLARE) -> Stream | None:
    """The stream of a name. Where there is none, that is reported, with the nearest name or this hint."""
    streams = site.catalog.streams
    if name not in streams:
        site.problems.error("B202", f"unknown stream '{name}'", span, did_you_mean(name, streams) or hint)
    return streams.get(name)


def unknown_relation(site: Site, name: str, span: Span) -> None:
    """Report the name of a relation that is not there."""
    hint = did_you_mean(name, site.catalog.relations)
    site.problems.error("B202", f"unknown named window or table '{name}'", span, hint)


def unknown_column(
    problems: Problems, name: str, owner: str, columns: Iterable[str], span: Span, hint: str | None = None
) -> None:
    """Report a column that its owner lacks, with the nearest name or this hint."""
    message = f"unknown column '{name}' in '{owner}'"
    problems.error("B201", message, span, did_you_mean(name, columns) or hint)


def check_column(
    binder: Binding, item: ast.Assignment, value: Bound, owner: str, columns: Mapping[str, Type]
) -> None:
    """Report a column that its owner lacks, or that cannot take the value."""
    wanted = columns.get(item.name)
    if wanted is None:
        unknown_column(binder.problems, item.name, owner, columns, item.span)
    else:
        binder.expect(value, wanted, f"column '{item.name}' is {wanted.value}", item.span)


def check_assigned(binder: Binding, item: ast.Assignment, value: Bound) -> None:
    """Report a variable that is unknown or constant, or that cannot take the value.
    With an index the value is an element's."""
    variables = binder.site.catalog.variables
    variable = variables.get(item.name)
    if variable is None:
        hint = did_you_mean(item.name, variables)
        binder.problems.error("B207", f"unknown variable '{item.name}'", item.span, hint)
        return
    if variable.constant:
        binder.problems.error("B208", f"variable '{item.name}' is constant", item.span)
    if item.index is None:
        what = f"variable '{item.name}' is {variable.type.value}"
        binder.expect(value, variable.type, what, item.span)
