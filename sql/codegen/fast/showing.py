"""Windows that show their rows instead of groups: the loop keeps the events, the look writes a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from sql.codegen.fast.bounded import BoundedQuery
from sql.codegen.fast.generations import CountBatchQuery, SessionQuery, TumblingQuery
from sql.codegen.fast.panes import CountQuery, HoppingQuery, Pane, PaneQuery
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.source import SourceWriter
from sql.runtime.state import pack_row


class RowTable:
    """The rows of one window, or of one pane, in the place of its groups."""

    def __init__(self) -> None:
        self.groups: list[Any] = []
        self.dropped = 0
        """Events in the window that WHERE has dropped."""

    def looks(self) -> Iterator[tuple[Any, Sequence[Any]]]:
        """Each row; there are no aggregates beside it."""
        return zip(self.groups, repeat(()), strict=False)

    def settle_all(self) -> None:
        """There is nothing to fold."""

    def snapshot(self) -> Any:
        return {"rows": [pack_row(row) for row in self.groups], "dropped": self.dropped}

    def restore(self, state: Any, make_row: Any) -> None:
        # Once it was the rows alone.
        rows, self.dropped = (state, 0) if isinstance(state, list) else (state["rows"], state["dropped"])
        self.groups += map(make_row, rows)


class RowsQuery(BoundedQuery):
    """What such windows have in common, before the window itself in the order of bases."""

    def new_table(self) -> Any:
        return RowTable()

    def write_table(self, writer: SourceWriter) -> None:
        writer.line("table = q.table")
        writer.line("append = table.groups.append")

    def write_event(self, loop: LoopWriter, table: Any) -> None:
        loop.line("append(e)")

    def retained(self) -> int:
        return len(self.table.groups) + self.table.dropped


class TumblingRowsQuery(RowsQuery, TumblingQuery):
    """TUMBLINGWINDOW."""


class SessionRowsQuery(RowsQuery, SessionQuery):
    """SESSIONWINDOW."""


class CountBatchRowsQuery(RowsQuery, CountBatchQuery):
    """COUNTWINDOW(n)."""


class RowPanesQuery(RowsQuery, PaneQuery):
    """Windows that overlap: the rows of their panes, one after the other."""

    def _join(self, pane: Pane) -> None:
        self.panes.append(pane)

    def drop(self) -> Pane:
        return self.panes.popleft()

    def show(self, start_ms: int, end_ms: int) -> None:
        rows = chain.from_iterable(pane.groups for pane in self.panes)
        self.emit(zip(rows, repeat(()), strict=False), start_ms, end_ms)

    def retained(self) -> int:
        return super().retained() + sum(len(pane.groups) + pane.dropped for pane in self.panes)


class HoppingRowsQuery(RowPanesQuery, HoppingQuery):
    """HOPPINGWINDOW."""


class CountRowsQuery(RowPanesQuery, CountQuery):
    """COUNTWINDOW(n, k)."""

    def retained(self) -> int:
        """Those in the window; the rest of the oldest pane is of no use to anybody, and goes with it."""
        return min(self.in_panes + self.count, self.window.size)


SHOWING: dict[type[FastQuery], type[FastQuery]] = {
    TumblingQuery: TumblingRowsQuery, SessionQuery: SessionRowsQuery, CountBatchQuery: CountBatchRowsQuery,
    HoppingQuery: HoppingRowsQuery, CountQuery: CountRowsQuery,
}  # fmt: skip
"""The query that shows rows, by the one that shows groups of the same window."""
