"""The kind of a statement: whether its language is Esper's or eKuiper's, which its clauses show, and what its
windows put out."""

from __future__ import annotations

from collections.abc import Sequence

from sql import functions
from sql import syntax as ast
from sql.binder.scope import Site
from sql.catalog.streams import Stream
from sql.plan.logical import Mode
from sql.record import Record

AGGREGATE_NAMES: dict[Mode, dict[str, str]] = {
    "delta": {},
    "sample": {"stddev": "stddev_pop", "var": "var_pop"},
    "lots": {"sum": "lot_sum", "nth": "lot_nth", "prior": "lot_prior", "count": "lot_count"},
}
"""Aggregates that the name means in a language: eKuiper's stddev and var are the population's; in stream
queries a sum of nothing is 0, and nth counts from the earliest."""


class StatementKind(Record):
    """The language of a statement, and what its expressions may use for it.

    epl         True for EPL and stream queries, False for eKuiper's rules
    mode        the output of its windows
    has_window  True if it has a window in GROUP BY, whose bounds can be read
    """

    epl: bool = True
    mode: Mode = "delta"
    has_window: bool = False

    def aggregate_name(self, name: str) -> str:
        """The aggregate that a name means."""
        return AGGREGATE_NAMES[self.mode].get(name, name)


EPL = StatementKind()
"""The kind of everything that is no SELECT: declarations, patterns, actions."""


def kind_of(select: ast.Select, streams: Sequence[Stream], site: Site) -> StatementKind:
    """The kind of a SELECT over these streams."""
    tables = any(stream.kind in ("scan", "lookup") for stream in streams)
    mode: Mode = "lots" if select.lots else "sample" if select.windows or tables else "delta"
    return StatementKind(_is_epl(select, streams, site), mode, bool(select.windows or _misspelt(select)))


def _misspelt(select: ast.Select) -> bool:
    """True if GROUP BY seems to name a window, in a call of a function that there is not."""
    calls = [item for item in select.group_by if isinstance(item, ast.Call)]
    return any("window" in call.name and functions.lookup(call.name) is None for call in calls)


def _is_epl(select: ast.Select, streams: Sequence[Stream], site: Site) -> bool:
    """True for a subquery, a question, what reads relations, and what has a clause that eKuiper's rules
    lack, or a context without a window of theirs."""
    if site.outer is not None or site.on_demand or (select.context is not None and not select.windows):
        return True
    if any(stream.is_relation and not stream.is_filled for stream in streams):
        return True
    if any(isinstance(source, ast.StreamSource) and _has_clause_of_epl(source) for source in select.sources):
        return True
    if any(isinstance(part, ast.GroupingSets) for part in select.group_by):
        return True
    clauses = (select.selector, select.output, select.insert_into, select.into_table)
    return bool(select.lots or select.annotations or any(clauses))


def _has_clause_of_epl(source: ast.StreamSource) -> bool:
    matches = source.pattern is not None or source.recognize is not None
    return bool(matches or source.windows or source.filter or source.unidirectional)
