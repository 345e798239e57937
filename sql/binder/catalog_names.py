"""Names of the catalog in a statement: the stream that one means, and the reports of unknown ones."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sql.algebra.windows.catalog import WINDOWS
from sql.binder.scope import Site
from sql.binder.statement_kind import EPL, StatementKind
from sql.catalog.streams import Stream
from sql.errors import Problems, Span, did_you_mean
from sql.syntax.window_words import GROUP_WINDOWS

DECLARE = "declare it with CREATE STREAM or under streams:"
DECLARE_RELATION = "declare it with CREATE WINDOW or CREATE TABLE, or under tables:"


def stream_named(site: Site, name: str, span: Span, hint: str = DECLARE) -> Stream | None:
    """The stream of a name. Where there is none, that is reported, with the nearest name or this hint."""
    streams = site.catalog.streams
    if name not in streams:
        at = place_of(name, span, site.text)
        hint = place_of_window(name) or did_you_mean(name, streams) or hint
        site.problems.error("B202", f"unknown stream '{name}'", at, hint)
    return streams.get(name)


def place_of(name: str, span: Span, text: str) -> Span:
    """The place of a name within the text of what it belongs to, behind a tag if there is one; the whole
    where the name does not stand in it as it is. A problem marked there hides none of the filter."""
    found = re.compile(rf"(?<!\w){re.escape(name)}(?!\w|\s*=)").search(text, span.start, span.end)
    return span if found is None else Span(*found.span())


def unknown_relation(site: Site, name: str, span: Span) -> None:
    """Report the name of a relation that is not there, with the nearest name, or how one is declared."""
    hint = did_you_mean(name, site.catalog.relations) or DECLARE_RELATION
    at = place_of(name, span, site.text)
    site.problems.error("B202", f"unknown named window or table '{name}'", at, hint)


def unknown_column(
    problems: Problems, name: str, owner: str, columns: Iterable[str], span: Span, hint: str | None = None
) -> None:
    """Report a column that its owner lacks, with the nearest name or this hint."""
    message = f"unknown column '{name}' in '{owner}'"
    problems.error("B201", message, span, did_you_mean(name, columns) or hint)


def place_of_window(name: str, kind: StatementKind = EPL) -> str | None:
    """A hint that tells the clause of the window of this name in such a statement; None if there is none."""
    word = name.lower()
    if kind.mode == "lots" and (word in GROUP_WINDOWS or word in WINDOWS):
        return "the windows of stream queries stand behind the stream: in m within d every p retain n"
    if word in GROUP_WINDOWS:
        return f"it stands in GROUP BY: GROUP BY {name.upper()}(…)"
    return f"it stands behind the stream in FROM: {WINDOWS[word].example}" if word in WINDOWS else None
