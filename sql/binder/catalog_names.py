"""Names of the catalog in a statement: the stream that one means, and the reports of unknown ones."""

from __future__ import annotations

from collections.abc import Iterable

from sql.binder.scope import Site
from sql.catalog.streams import Stream
from sql.errors import Problems, Span, did_you_mean

DECLARE = "declare it with CREATE STREAM or under streams:"
DECLARE_RELATION = "declare it with CREATE WINDOW or CREATE TABLE, or under tables:"


def stream_named(site: Site, name: str, span: Span, hint: str = DECLARE) -> Stream | None:
    """The stream of a name. Where there is none, that is reported, with the nearest name or this hint."""
    streams = site.catalog.streams
    if name not in streams:
        site.problems.error("B202", f"unknown stream '{name}'", span, did_you_mean(name, streams) or hint)
    return streams.get(name)


def unknown_relation(site: Site, name: str, span: Span) -> None:
    """Report the name of a relation that is not there, with the nearest name, or how one is declared."""
    hint = did_you_mean(name, site.catalog.relations) or DECLARE_RELATION
    site.problems.error("B202", f"unknown named window or table '{name}'", span, hint)


def unknown_column(
    problems: Problems, name: str, owner: str, columns: Iterable[str], span: Span, hint: str | None = None
) -> None:
    """Report a column that its owner lacks, with the nearest name or this hint."""
    message = f"unknown column '{name}' in '{owner}'"
    problems.error("B201", message, span, did_you_mean(name, columns) or hint)
