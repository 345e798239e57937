"""Windows whose content is looked at once and then gone: tumbling and session."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from math import inf
from typing import Any

from sql.calendar.grid import Grid
from sql.codegen.fast.grouped import GroupedQuery
from sql.codegen.fast.query import runs
from sql.codegen.fast.shared import Gatherer, SharedWindow
from sql.codegen.fast.source import SourceWriter


class GenerationQuery(GroupedQuery):
    """Base: closing looks at the groups and begins anew."""

    def close(self, start_ms: int, end_ms: int) -> None:
        """Give out the rows of the open window and empty it."""
        table, self.table = self.table, self.new_table()
        self.since_settled = 0
        if table.groups:
            self.emit(table.looks(), start_ms, end_ms)


class TumblingQuery(SharedWindow, GenerationQuery):
    """TUMBLINGWINDOW: closes at each boundary of the grid."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.grid = Grid(self.window.length_ms, self.context.zone)

    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        if times is None:
            if self.end_ms is None and rows:
                self.end_ms = self.grid.next(self.now_ms)
            self.gather(rows)
            return
        first, count = 0, len(rows)
        while first < count:
            self.step_to(times[first])
            if self.end_ms is None:
                self.end_ms = self.grid.next(times[first])
            last = runs(times, first, self.end_ms)
            self.gather(rows if last - first == count else rows[first:last])
            first = last

    def fire(self, end_ms: int) -> None:
        self.end_ms = None
        self.close(self.grid.floor(end_ms - 1), end_ms)

    def is_empty(self) -> bool:
        return not self.table.groups

    def reset(self) -> None:
        self.end_ms = None
        self.table = self.new_table()

    def own_state(self) -> Any:
        return {"end": self.end_ms, "groups": self.table.snapshot()}

    def _put_back(self, state: Any, store: Any) -> None:
        self.end_ms = state["end"]
        self.table.restore(state["groups"], self.row_of)


class TumblingGatherer(Gatherer, TumblingQuery):
    """A tumbling window that several rules show."""


TumblingQuery.gatherer_class = TumblingGatherer


class SessionQuery(GenerationQuery):
    """SESSIONWINDOW: closes at last + timeout, or at the maximum's first tick T with T - first >= maximum."""

    reads_times = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.ticks = Grid(self.window.length_ms, self.context.zone)
        self.first_ms: int | None = None
        self.tick_ms: float = inf
        self.due_ms: float = inf

    # --- code ---------------------------------------------------------------------------------------------------------

    def write_start(self, writer: SourceWriter) -> None:
        super().write_start(writer)
        writer.line("tick = q.tick_ms")
        writer.line("due = q.due_ms")

    def write_before(self, writer: SourceWriter) -> None:
        with writer.block("if at >= due:"):
            writer.line("q.due_ms = due")
            writer.line("q.step_to(at)")
            GenerationQuery.write_start(self, writer)
            writer.line("tick = due = q.due_ms")

    def write_after(self, writer: SourceWriter) -> None:
        assert self.plan.window is not None
        with writer.block("if tick == INFINITY:"):
            writer.line("tick = q.open(at)")
        writer.line(f"due = at + {self.plan.window.timeout_ms}")
        with writer.block("if due > tick:"):
            writer.line("due = tick")

    def write_end(self, writer: SourceWriter) -> None:
        writer.line("q.due_ms = due")

    # --- driving ------------------------------------------------------------------------------------------------------

    def open(self, first_ms: int) -> float:
        """A session begins; the tick at which it ends at the latest."""
        self.first_ms = first_ms
        self.tick_ms = self.ticks.next(first_ms + self.window.length_ms - 1)
        return self.tick_ms

    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        self.gather(rows, repeat(self.now_ms) if times is None else times)

    def next_deadline(self) -> int | None:
        return None if self.first_ms is None else int(self.due_ms)

    def advance_to(self, now_ms: int) -> None:
        if self.first_ms is not None and self.due_ms <= now_ms:
            start_ms, end_ms = self.first_ms, int(self.due_ms)
            self.first_ms, self.tick_ms, self.due_ms = None, inf, inf
            self.close(start_ms, end_ms)

    def flush(self, now_ms: int) -> list[Any]:
        if (deadline := self.next_deadline()) is not None:
            self.advance_to(deadline)
        return self.take()

    def _state(self) -> Any:
        marks = [self.first_ms, self.tick_ms, self.due_ms]
        return {"session": None if self.first_ms is None else marks, "groups": self.table.snapshot()}

    def _put_back(self, state: Any, store: Any) -> None:
        if state["session"] is not None:
            self.first_ms, self.tick_ms, self.due_ms = state["session"]
        self.table.restore(state["groups"], self.row_of)


class CountBatchQuery(GenerationQuery):
    """COUNTWINDOW(n): each n events in turn."""

    reads_times = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.count = 0
        self.first_ms = 0

    # --- code ---------------------------------------------------------------------------------------------------------

    def write_start(self, writer: SourceWriter) -> None:
        super().write_start(writer)
        writer.line("count = q.count")

    def write_after(self, writer: SourceWriter) -> None:
        assert self.plan.window is not None
        with writer.block("if not count:"):
            writer.line("q.first_ms = at")
        writer.line("count += 1")
        with writer.block(f"if count == {self.plan.window.size}:"):
            writer.line("q.full(at)")
            writer.line("count = q.count = 0")
            super().write_start(writer)

    def write_end(self, writer: SourceWriter) -> None:
        writer.line("q.count = count")

    # --- driving ------------------------------------------------------------------------------------------------------

    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        self.gather(rows, repeat(self.now_ms) if times is None else times)

    def full(self, at_ms: int) -> None:
        """The last event of the window has come."""
        self.now_ms = max(self.now_ms, at_ms)
        self.close(self.first_ms, at_ms)
        self.tell_errors()

    def flush(self, now_ms: int) -> list[Any]:
        """An unfinished count window stays unfinished."""
        return self.take()

    def _state(self) -> Any:
        return {"count": self.count, "first": self.first_ms, "groups": self.table.snapshot()}

    def _put_back(self, state: Any, store: Any) -> None:
        self.count, self.first_ms = state["count"], state["first"]
        self.table.restore(state["groups"], self.row_of)
