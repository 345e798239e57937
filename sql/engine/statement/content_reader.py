"""The present content of a statement as rows: for reads, subqueries and output limits that show it."""

from __future__ import annotations

from typing import Any

from sql.algebra.event import NOTHING
from sql.emission import Out
from sql.engine.statement.into import TableFold
from sql.engine.statement.statement_core import StatementCore
from sql.engine.statement.statement_sources import Sources


class ContentReader:
    """Makes rows of what one running statement holds."""

    def __init__(self, statement: StatementCore, sources: Sources, into: TableFold | None) -> None:
        self.statement = statement
        self.sources = sources
        self.into = into

    def present_rows(self) -> list[Any]:
        """The rows of the present content, as `show` makes them."""
        with self.statement.earlier.queue_noted():
            return self._shown()

    def _shown(self) -> list[Any]:
        statement = self.statement
        reader, kind = statement.program.text.reader, statement.plan.row_kind
        rows: list[Any] = []
        if kind == "aggregate":
            into = self.into
            whole = statement.groups.whole if into is None else into.group_at((), NOTHING)
            reader["show"](statement, NOTHING, whole, rows, True)
        elif kind == "group" and not statement.plan.sources[0].keeps:
            for group in statement.groups.by_key.values():
                reader["show"](statement, group.first, group, rows, True)
        else:
            counted = reader["counted"](statement, list(self.sources.content()))
            if kind == "group":  # the oldest event of each, groups in the order of their newest events
                counted = reversed(dict(reversed(counted)).items())
            for key, event in counted:
                reader["show"](statement, event, statement.groups.of(key, event), rows, True)
        return rows

    def current(self, key: object) -> list[Out]:
        """The present row of a group, also of one that has become empty; none where HAVING drops it."""
        statement = self.statement
        event, into = statement.groups.representatives[key], self.into
        group = statement.groups.of(key, event) if into is None else into.group_at(key, event)
        rows: list[Out] = []
        statement.program.text.reader["show"](statement, event, group, rows, True)
        return rows
