"""The row of a window that is shown with every event, written into the loop.

Only where there is one row, made of aggregates and bounds alone: SLIDINGWINDOW without groups.
"""

from __future__ import annotations

from typing import Any

from sql.algebra.sample.content import Content
from sql.algebra.sample.running import RunningGroups
from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.functions import FunctionSet
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import write_row
from sql.emission import Emission, singles
from sql.plan.bound import Bound, Read, reads_clock, slot_kinds
from sql.plan.logical import Plan


class InlineRow:
    """Writes the one row of a sliding window: `start`, `end` and `trigger` are texts of instants."""

    def __init__(self, plan: Plan, content: RunningGroups, functions: FunctionSet, *, is_timed: bool) -> None:
        self.plan = plan
        self.content = content
        self.functions = functions
        self.is_timed = is_timed

    def write_begin(self, loop: LoopWriter) -> None:
        """Before the loop whose rows these are."""
        loop.line("query = core.owner.query")
        if self.is_timed:
            loop.line("rule = query.name")
            loop.line("out = query.out")
        else:
            loop.line("made = []")

    def write_end(self, loop: LoopWriter, at: str) -> None:
        """Behind it; `at` is the instant of the rows."""
        if not self.is_timed:
            emission = f"{loop.names.bind(singles, 'singles')}(query.name, {at}, made)"
            with loop.block("if made:"):
                loop.line(f"query.out.append({emission})")

    def write(self, loop: LoopWriter, start: str, end: str, trigger: str, row: str) -> None:
        """The row, of the window [start, end) or what it is; `row` is what cannot be evaluated."""
        content = self.content
        if content.fold.counts:
            with loop.block("if not whole.n:"):
                loop.line("continue")
        for place, result in enumerate(content.results(loop, "whole.")):
            loop.line(f"v_{place} = {result}")
        self._write_row(loop, start, end, trigger, row if content.keeps_values else "whole.events[0].row")

    def _write_row(self, loop: LoopWriter, start: str, end: str, trigger: str, row: str) -> None:
        plan, names = self.plan, loop.names
        now = Code(trigger, False, True, NUMBER)
        slots: dict[Any, Code] = {
            ("aggregate", i): Code(f"v_{i}", True, True) for i in range(len(plan.aggregates))
        }
        slots |= {("window", "end"): Code(end, False, True, NUMBER), ("window", "trigger"): now}
        slots |= {("window", "start"): Code(start, False, True, NUMBER), ("event_time", None): now}
        inner = self.functions.loop(loop.source, slots)
        with loop.source.attempt(f"core.owner.failed({row}, error, {trigger})"):
            inner.skip_unless(plan.having)
            if self.is_timed:
                out = f"out.append({names.bind(Emission, 'Emission')}(rule, {trigger}, 'rows', ["
                write_row(inner, plan, out, "]))")
            else:
                write_row(inner, plan, "made.append(", ")")


def inline_row(plan: Plan, content: Content, functions: FunctionSet, *, is_timed: bool) -> InlineRow | None:
    """The writer of each trigger's row of a sliding window; None where a sample is more than that."""
    if not isinstance(content, RunningGroups) or plan.window is None:
        return None
    several = plan.group_by or plan.numberings or plan.order_by or plan.spreads or plan.hits or plan.distinct
    limited = plan.limit is not None or plan.offset is not None or plan.options.emit_empty
    shown = [*(item.value for item in plan.items), *([] if plan.having is None else [plan.having])]
    if several or limited or plan.window.partition_by or any(map(_reads_more, shown)):
        return None
    return InlineRow(plan, content, functions, is_timed=is_timed)


def _reads_more(expression: Bound) -> bool:
    reads_columns = any(isinstance(node, Read) for node in expression.walk())
    return reads_columns or reads_clock(expression) or "analytic" in slot_kinds(expression)
