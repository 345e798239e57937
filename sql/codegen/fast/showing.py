"""Windows that show their rows instead of groups: the loop keeps the events themselves, the look writes a row for each.

A window that keeps events is bounded: `maxWindowEvents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from sql.codegen.fast.generations import CountBatchQuery, SessionQuery, TumblingQuery
from sql.codegen.fast.grouped import GroupedQuery
from sql.codegen.fast.panes import CountQuery, HoppingQuery, Pane, PaneQuery
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.source import SourceWriter
from sql.codegen.functions import DATA_ERRORS
from sql.errors import DataError
from sql.runtime.state import pack_row
from sql.windows.event import Event


class RowTable:
    """The rows of one window, or of one pane, in the place of its groups."""

    def __init__(self) -> None:
        self.groups: list[Any] = []

    def looks(self) -> Iterator[tuple[Any, Sequence[Any]]]:
        """Each row; there are no aggregates beside it."""
        return zip(self.groups, repeat(()), strict=False)

    def settle_all(self) -> None:
        """There is nothing to fold."""

    def snapshot(self) -> Any:
        return [pack_row(row) for row in self.groups]

    def restore(self, state: Any, make_row: Any) -> None:
        self.groups += map(make_row, state)


class RowsQuery(GroupedQuery):
    """What such windows have in common, before the window itself in the order of bases."""

    @property
    def signature(self) -> Any:
        """None: each rule keeps its rows, within its own bound."""
        return None

    def new_table(self) -> Any:
        return RowTable()

    def write_table(self, writer: SourceWriter) -> None:
        writer.line("append = q.table.groups.append")

    def write_event(self, loop: LoopWriter, table: Any) -> None:
        loop.line("append(e)")

    def gather(self, rows: Sequence[Any], times: Iterable[int] | None = None) -> None:
        if self.budget.takes(self, len(rows)):
            super().gather(rows, times)
            return
        for row, at_ms in zip(rows, repeat(self.now_ms) if times is None else times, strict=False):
            if self.reads_times:
                self.step_to(at_ms)
            if self._fits(row, at_ms):
                super().gather((row,), (at_ms,) if self.reads_times else None)

    def _fits(self, row: Any, at_ms: int) -> bool:
        """Whether the window may take one more event; of one that FILTER drops, the loop finds out."""
        condition = self.window.filter
        try:
            if condition is not None and not self.functions.true(condition)(Event(row, at_ms, 0)):
                return True
        except DATA_ERRORS:
            return True
        try:
            self.budget.admit(self)
        except DataError as error:
            self.fail(row, error)
            return False
        return True

    def retained(self) -> int:
        return len(self.table.groups)


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
        return super().retained() + sum(len(pane.groups) for pane in self.panes)


class HoppingRowsQuery(RowPanesQuery, HoppingQuery):
    """HOPPINGWINDOW."""


class CountRowsQuery(RowPanesQuery, CountQuery):
    """COUNTWINDOW(n, k)."""


SHOWING: dict[type[FastQuery], type[FastQuery]] = {
    TumblingQuery: TumblingRowsQuery, SessionQuery: SessionRowsQuery, CountBatchQuery: CountBatchRowsQuery,
    HoppingQuery: HoppingRowsQuery, CountQuery: CountRowsQuery,
}  # fmt: skip
"""The query that shows rows, by the one that shows groups of the same window."""
