"""Windows whose events are gathered into groups and looked at when the window closes: the two generated functions.

gather(rows)            the loop: filter, key, arguments; a plain number is appended to its group's list
look(looks, …)          the rows of the groups: HAVING, ORDER BY keys and SELECT over the aggregates' values
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.codegen.expressions import Names
from sql.codegen.fast.folding import FoldingQuery
from sql.codegen.fast.groups import PENDING_MAX, PENDING_PER_GROUP, GroupTable
from sql.codegen.fast.reader import WINDOW_SLOTS, LoopWriter
from sql.codegen.fast.source import SourceWriter
from sql.runtime.emission import Emission
from sql.types import key_of


class GroupedQuery(FoldingQuery):
    """Base of tumbling, session, hopping and count windows."""

    steps_itself = True
    reads_times = False
    """Whether the loop needs each event's time: it closes windows itself."""
    counts_dropped = False
    """Whether events that WHERE drops are counted: they are in the window, and take up room."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        assert plan.window is not None
        self.window = plan.window
        self.table = self.new_table()
        self.since_settled = 0
        self.counts["windows_empty_skipped"] = 0

    # --- code ---------------------------------------------------------------------------------------------------------

    def _write(self, writer: SourceWriter, names: Names) -> None:
        names.bind(key_of, "key_of")
        self._write_gather(writer)
        writer.line("")
        self.write_look(writer, names, WINDOW_SLOTS)

    def _write_gather(self, writer: SourceWriter) -> None:
        assert self.plan.window is not None
        loop = self.loop_writer(writer, {})
        table = self.new_table()
        with writer.block(f"def gather(rows{', times' if self.reads_times else ''}):"):
            self.write_start(writer)
            with writer.block("for e, at in zip(rows, times):" if self.reads_times else "for e in rows:"):
                self.write_before(writer)
                with writer.block("try:"):
                    loop.skip_unless(self.plan.window.filter)
                    if self.plan.where is None or not (self.reads_times or self.counts_dropped):
                        loop.skip_unless(self.plan.where)
                        self.write_event(loop, table)
                    else:
                        self._write_where(loop, table)
                    self.write_after(writer)
                with writer.block("except DATA_ERRORS as error:"):
                    writer.line("fail(e, error)")
            self.write_end(writer)

    def _write_where(self, loop: LoopWriter, table: GroupTable) -> None:
        """WHERE of a window whose bounds follow from all its events, or that counts them."""
        writer, where = loop.source, self.plan.where
        assert where is not None
        condition = loop.expressions.true(where)
        loop.reader.load(writer)
        with writer.block(f"if {condition}:", where.span):
            self.write_event(loop, table)
        if self.counts_dropped:
            with writer.block("else:"):
                writer.line("table.dropped += 1")

    def write_start(self, writer: SourceWriter) -> None:
        """Before the loop."""
        self.write_table(writer)

    def write_table(self, writer: SourceWriter) -> None:
        """What the loop needs of the open window's table."""
        writer.line("table = q.table")
        self.write_names(writer)

    def write_before(self, writer: SourceWriter) -> None:
        """Before an event is looked at."""

    def write_after(self, writer: SourceWriter) -> None:
        """After an event has come into the window."""

    def write_end(self, writer: SourceWriter) -> None:
        """After the loop."""

    # --- events -------------------------------------------------------------------------------------------------------

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        self.now_ms = max(self.now_ms, times[0])
        return super().push_timed(rows, times)

    def gather(self, rows: Sequence[Any], times: Iterable[int] | None = None) -> None:
        """Put events into the groups of the open window."""
        if times is None:
            self.code["gather"](rows)
        else:
            self.code["gather"](rows, times)
        self.since_settled += len(rows)
        if self.since_settled > PENDING_MAX + PENDING_PER_GROUP * len(self.table.groups):
            self.since_settled = 0
            self.table.settle_all()

    def step_to(self, until_ms: int) -> None:
        super().step_to(until_ms)
        self.tell_errors()

    # --- looking ------------------------------------------------------------------------------------------------------

    def emit(self, looks: Iterable[tuple[Any, Sequence[Any]]], start_ms: int, end_ms: int) -> None:
        """The rows of a window [start, end): `looks` are each group's first row and aggregates."""
        self.context.now_ms = end_ms
        bad: list[tuple[Any, BaseException]] = []
        rows = self.in_order(self.code["look"](looks, start_ms, end_ms, end_ms, bad))
        if rows:
            self.counts["rows_out"] += len(rows)
            self.out.append(Emission(self.name, end_ms, "rows", rows, (), None))
        for row, error in bad:
            self.counts["errors"] += 1
            self.errors.append(self.failure(row, error, end_ms))

    # --- state --------------------------------------------------------------------------------------------------------

    def retained(self) -> int:
        """Groups and values that wait; the events themselves are not kept."""
        return sum(map(len, self.table.groups.values()))
