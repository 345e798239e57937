"""What loops show of a change: rows of the event that came, of groups that have changed, of what has left."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from sql.aggregates.base import Removal
from sql.codegen.expressions import Code
from sql.codegen.fast.arguments import Kept
from sql.codegen.fast.handover import HandingOver
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.rows import criteria_text, write_row
from sql.codegen.fast.source import SourceWriter
from sql.plan.logical import Plan
from sql.runtime.emission import Out
from sql.runtime.query import in_order, row_limit


class ShowingChanges(HandingOver):
    """Base of running loops: the rows."""

    removal = Removal.FIFO
    """How events leave."""
    kind: str
    """What a change shows."""
    leaves_beside = True
    """Whether events leave in the same change in which one enters."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        plan: Plan = args[1]
        self.aggregates = Kept(plan.aggregates, self.removal)
        self.shows_old = plan.mode == "delta" and plan.selector != "istream"
        """Whether rows of the remove stream are given out: what has left, or what groups were before."""
        if self.shows_old:
            self.kind = {"event": "group_event", "aggregate": "group"}.get(self.kind, self.kind)
        self.has_groups = bool(plan.group_by) or self.kind == "look" or (self.shows_old and self.kind != "plain")
        self.has_ghosts = plan.where is not None
        """Whether there may be events in the window that WHERE has dropped: they take up room and show nothing."""
        self.many_rows = self.kind in ("group", "look") or self.shows_old
        self.owner = "g." if self.has_groups else ""
        super().__init__(*args, **keywords)

    def slots(self) -> dict[Any, Code]:
        """How rows read what operators keep."""
        slots: dict[Any, Code] = {("istream", None): Code("True", False, True, "boolean")}
        arguments, fed = self.aggregates.arguments, self.aggregates.fed
        for place, call in enumerate(self.plan.aggregates):
            if place in fed:
                slots["aggregate", place] = Code(f"{self.owner}{fed[place].name}.result()", True, False)
            elif call.args and call.definition.inline is not None:
                text = arguments[call.args[0]].result(call.definition.inline, self.owner)
                slots["aggregate", place] = Code(f"({text})", True, False)
            else:
                slots["aggregate", place] = Code(self.number_of_events, False, False, "number")
        return slots

    @property
    def number_of_events(self) -> str:
        """The text of count(*)."""
        return f"{self.owner}n" if self.has_groups or self.has_ghosts else "len(window)"

    def write_shown(self, loop: LoopWriter) -> None:
        writer = loop.source
        if self.shows_old:
            self.write_both_rows(writer, comes=True)
        elif self.leaves_beside and self.kind == "group":
            self.write_group_rows(writer)
        elif not self.has_ghosts:
            self.write_row(loop)
        elif self.leaves_beside and self.kind == "aggregate":
            with writer.block("if touched is not None:"):
                writer.line("e = touched")
                self.write_row(self.loop_writer(writer, self.slots()))
        else:
            with writer.block("if passes:"):
                self.write_row(loop)

    def write_show(self, writer: SourceWriter) -> None:
        """The function that makes rows where there are new and old ones: from a group (or None) and an event."""
        plan = self.plan
        loop = self.loop_writer(writer, {**self.slots(), ("istream", None): Code("is_new", False, True, "boolean")})
        with writer.block("def show(g, e, now_ms, rows, bad, is_new):"):
            with writer.block("try:"):
                if plan.having is not None:
                    condition = loop.expressions.true(plan.having)
                    loop.reader.load(writer)
                    with writer.block(f"if not ({condition}):", plan.having.span):
                        writer.line("return")
                self._write_appended(loop)
            with writer.block("except DATA_ERRORS as error:"), writer.block("if is_new:"):
                writer.line("bad.append((e, error))")
        writer.line("")

    def write_row(self, loop: LoopWriter, event: str = "e") -> None:
        """The single row of a change, read from `e`; its errors are those of `event`."""
        writer = loop.source
        with writer.block("try:"):
            loop.skip_unless(self.plan.having)
            write_row(loop, self.plan, self.functions.names, "out.append(Emission(rule, now_ms, 'rows', [", "]))")
        with writer.block("except DATA_ERRORS as error:"):
            writer.line(f"fail({event}, error)")

    def write_group_rows(self, writer: SourceWriter) -> None:
        """A row for each group in `changed`, read from the event beside it."""
        self.write_rows(writer, "for g, e in changed.items():", "")

    def write_rows(self, writer: SourceWriter, header: str, first: str) -> None:
        """Several rows, in one emission; errors follow it."""
        plan = self.plan
        writer.line("rows, bad = [], []")
        with writer.block(header):
            if first:
                writer.line(first)
            loop = self.loop_writer(writer, self.slots())
            with writer.block("try:"):
                loop.skip_unless(plan.having)
                self._write_appended(loop)
            with writer.block("except DATA_ERRORS as error:"):
                writer.line("bad.append((e, error))")
        self._write_ordered(writer, "rows")
        with writer.block("if rows:"):
            writer.line("out.append(Emission(rule, now_ms, 'rows', rows))")
        with writer.block("for e, error in bad:"):
            writer.line("fail(e, error)")

    def _write_appended(self, loop: LoopWriter) -> None:
        """The row becomes one of `rows`."""
        plan, names = self.plan, self.functions.names
        order = f", None, {criteria_text(loop, plan.order_by, names)})" if plan.order_by else ""
        out = f"{names.bind(Out, 'Out')}(" if order else ""
        write_row(loop, plan, names, f"rows.append({out}", f"{order})")

    def _write_ordered(self, writer: SourceWriter, rows: str) -> None:
        limit = row_limit(self.plan, self.functions)
        if self.plan.order_by or self.plan.distinct or limit != (None, 0):
            writer.line(f"{rows} = {self.functions.names.bind(self._ordering(limit), 'ordered')}({rows})")

    def write_both_rows(self, writer: SourceWriter, *, comes: bool) -> None:
        """New and old rows of a change; `comes`: an event has come, besides what has left."""
        writer.line("rows, bad = [], []")
        if self.kind == "group":
            with writer.block("for g, e in changed.items():"):
                writer.line("show(g, e, now_ms, rows, bad, True)")
        else:
            if comes:
                group = "g" if self.has_groups else "None"
                with writer.block("if passes:") if self.has_ghosts else nullcontext():
                    writer.line(f"show({group}, e, now_ms, rows, bad, True)")
            with writer.block("for g, e in gone:"):
                writer.line("show(g, e, now_ms, old, None, False)")
        self._write_ordered(writer, "rows")
        self._write_ordered(writer, "old")
        if self.plan.selector == "rstream":
            with writer.block("if old:"):
                writer.line("out.append(Emission(rule, now_ms, 'rows', old))")
        else:
            with writer.block("if rows or old:"):
                writer.line("out.append(Emission(rule, now_ms, 'rows', rows, old or ()))")
        with writer.block("for e, error in bad:"):
            writer.line("fail(e, error)")

    def _ordering(self, limit: tuple[int | None, int]) -> Any:
        has_order = bool(self.plan.order_by)
        return lambda rows: in_order(rows if has_order else [Out(row) for row in rows], self.plan, limit)
