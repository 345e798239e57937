"""The text of `push` for `into table` from a stream without windows: each event is
counted in the row of its key.

row = get(key)
accumulators = row.accumulators
acc_0 = accumulators[0]
acc_0.add(f_0, x)
"""

from __future__ import annotations

from typing import Any

from sql.codegen.expression_code import Code
from sql.codegen.output_rows import write_row
from sql.codegen.source import SourceWriter
from sql.compiler.statement.statement_frame import StatementFrame


class FeedingText:
    """Writes the loop of one statement."""

    def __init__(self, frame: StatementFrame) -> None:
        self.frame = frame
        self.plan = frame.plan
        self.parts = frame.fold.kept.accumulated
        calls = [part.call for part in self.parts.values()]
        self.needs_event = any(call.distinct or not call.definition.invertible for call in calls)
        """True if some accumulator may keep the event that a value came with."""

    def write(self, source: SourceWriter) -> None:
        """The function `push`."""
        with source.block("def push(q, rows, now):"):
            source.line("fail, made, seq, table = q.fail, q.made, q.seq, q.into.table")
            source.line("get = table.rows.by_key.get")
            source.line("wrote = table.bounded.wrote if table.bounded.is_kept else None")
            source.line("table.version += 1")
            source.line("stamp = next(table.rows.stamps)")
            if not self.needs_event:
                source.line("x = None")
                source.line("seq += len(rows)")
            with source.block("for e in rows:"):
                if self.needs_event:
                    source.line("seq += 1")
                    source.line("x = Event(e, now, seq)")
                with source.attempt("fail(e, error)", "continue"):
                    self._write_row(source)
                self._write_counted(source)
                self._write_shown(source)
            source.line("q.seq = seq")
        source.line("")

    @property
    def _slots(self) -> dict[Any, Code]:
        slots = self.frame.slots("", "now", "True")
        return slots | {
            ("aggregate", place): Code(part.result("", "x")) for place, part in self.parts.items()
        }

    def _write_row(self, source: SourceWriter) -> None:
        """The row of the event's key, and what it is to count."""
        plan = self.plan
        loop = self.frame.make_loop(source, self._slots)
        loop.skip_unless(plan.sources[0].filter)
        loop.skip_unless(plan.where)
        loop.key(plan.group_by, "key") if plan.group_by else source.line("key = ()")
        for part in self.parts.values():
            part.prepare(loop)
        source.line("row = get(key)")
        values = ", ".join(loop.value(node) for node in plan.group_by)
        with source.block("if row is None:"):
            source.line(f"row = table.row_for([{values}], now)")
        source.line("accumulators = row.accumulators")
        assert plan.into_table is not None
        columns = list(self.frame.catalog.relations[plan.into_table.table].declaration.aggregates)
        for place, part in self.parts.items():
            source.line(f"acc_{place} = accumulators[{columns.index(plan.into_table.columns[place])}]")
            part.check(loop, "")

    def _write_counted(self, source: SourceWriter) -> None:
        loop = self.frame.make_loop(source, self._slots)
        for part in self.parts.values():
            part.write(loop, "", enters=True)
        source.line("row.stale = True")
        source.line("row.stamp = stamp")
        with source.block("if wrote is not None:"):
            source.line("wrote(row, now)")

    def _write_shown(self, source: SourceWriter) -> None:
        """The statement posts the row."""
        loop = self.frame.make_loop(source, self._slots)
        with source.attempt("fail(e, error)"):
            loop.skip_unless(self.plan.having)
            write_row(loop, self.plan, "made.append(", ")")
