"""The present content of a statement as rows: for reads, subqueries and output limits that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sql.algebra.event import Event
from sql.algebra.output.given import Everything
from sql.algebra.output.row_order import in_order
from sql.emission import Out

if TYPE_CHECKING:
    from sql.engine.running.running_statement import RunningStatement


class ContentReader:
    """Makes rows of what one running statement holds."""

    def __init__(self, statement: RunningStatement) -> None:
        self.statement = statement

    def present_rows(self) -> list[Any]:
        """The rows of the present content, as `show` makes them."""
        with self.statement.earlier.queue_noted():
            return self._shown()

    def _shown(self) -> list[Any]:
        statement = self.statement
        reader, kind = statement.program.text.reader, statement.plan.row_kind
        rows: list[Any] = []
        if kind == "aggregate":
            into = statement.into
            whole = statement.groups.whole if into is None else into.group_at((), NOTHING)
            reader["show"](statement, NOTHING, whole, rows, True)
        elif kind == "group" and not statement.plan.sources[0].keeps:
            for group in statement.groups.by_key.values():
                reader["show"](statement, group.first, group, rows, True)
        elif kind == "group":
            reader["present"](statement, self._newest_of_groups(), rows)
        else:
            reader["present"](statement, list(statement.sources.content()), rows)
        return rows

    def _newest_of_groups(self) -> list[Event]:
        """The oldest event of each group in the content, groups in the order of their newest events."""
        statement = self.statement
        keys = statement.program.text.reader["keys"](statement, list(statement.sources.content()))
        shown = dict(reversed(keys))
        return list(reversed(shown.values()))

    def current(self, key: object) -> list[Out]:
        """The present row of a group, also of one that has become empty; none where HAVING drops it."""
        statement = self.statement
        event, into = statement.groups.representatives[key], statement.into
        group = statement.groups.of(key, event) if into is None else into.group_at(key, event)
        rows: list[Out] = []
        statement.program.text.reader["show"](statement, event, group, rows, True)
        return rows

    def present(self) -> list[dict[str, Any]]:
        """The rows of the present content; while a batch is being released, that is this batch."""
        self.statement.begin(self.statement.now_ms)
        plan, rows = self.statement.plan, self.present_rows()
        outs = (
            rows
            if plan.order_by or self.statement.program.text.show.makes_outs
            else [Out(row) for row in rows]
        )
        return in_order(outs, plan, (None, 0), self.statement.output.spreads)

    def read(self) -> list[dict[str, Any]]:
        """The rows of the content between two steps; of a batch window what it collects."""
        statement = self.statement
        limit = statement.output.limit
        kind, given = statement.plan.row_kind, None if limit is None else limit.given
        output = statement.plan.output
        shows_all = output is not None and output.mode == "all"
        if kind == "aggregate" and isinstance(given, Everything) and not shows_all:
            return [row.row for row in given.shown]  # rows held back are not in it yet
        if kind == "group" and not any(source.windows for source in statement.plan.sources):
            return []
        for window in statement.windows:
            window.end_step()
        with statement.reading():
            return self.present()


NOTHING = Event(None, 0, -1)
"""The event of rows that no event has caused."""
