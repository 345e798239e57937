"""The text of `push`: the loop over arriving events, up to the window."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property

from sql.codegen.expression_code import Code
from sql.codegen.loop import LoopWriter, batch_loop
from sql.codegen.source import SourceWriter
from sql.compiler.answer import answers_each
from sql.compiler.statement.enter import EnterText
from sql.compiler.statement.statement_frame import StatementFrame
from sql.plan.bound import reads_clock, slot_kinds


class PushText:
    """Writes the loop of one statement."""

    def __init__(self, frame: StatementFrame, enter: EnterText) -> None:
        self.frame = frame
        self.enter = enter
        self.plan = frame.plan
        self.show = frame.show
        self.window = frame.window
        self.gate = frame.gate
        is_read = enter.in_place or (frame.in_loop and frame.plan.where is not None)
        self.ahead = answers_each(frame.plan) if is_read and not (frame.is_timed or frame.in_cells) else []
        """The subqueries whose rows are looked up for a whole batch of events at once."""

    def write(self, source: SourceWriter) -> None:
        """The function `push`."""
        if self.frame.in_cells:
            self._write_in_cells(source)
            return
        arguments = "q, rows, times" if self.frame.is_timed else "q, rows, now"
        with source.block(f"def push({arguments}):"):
            self._write_loads(source)
            if self._keeps_aside:
                self._write_stored(source)
            else:
                self._write_loop(source)
            if not self.frame.keeps_values:
                source.line("q.seq = seq")
        source.line("")

    def _write_loads(self, source: SourceWriter) -> None:
        self.frame.write_state(source)
        if self.enter.in_locals:
            names = self.frame.fold.attributes
            source.line(f"{', '.join(names)} = {', '.join(f'whole.{name}' for name in names)}")
        if self.enter.makes_rows:
            source.line("made = q.made")
        else:
            source.line("out = q.out")
            source.line("name = q.name")
        if not self.frame.keeps_values:
            source.line("seq = q.seq")
        if self.plan.subqueries:
            source.line(f"takes = q.sources.subqueries.takes({self.plan.sources[0].stream!r})")
            if self.ahead:
                source.line("ahead = q.sources.subqueries.ahead")
        if self.frame.has_window:
            source.line("is_roomy = q.budget.takes(len(rows))")
        if self.window is not None:
            self.window.write_load(source, "q.windows[0]")
        elif self.frame.has_window:
            source.line("operator = q.windows[0]")
            if self.gate is not None:
                self.gate.write_load(source)

    def _write_loop(self, source: SourceWriter) -> None:
        with source.block("for e, now in zip(rows, times):" if self.frame.is_timed else self._batch):
            self._write_event(source)

    @property
    def _batch(self) -> str:
        """The head of the loop over a batch of events, each with what is looked up for its subqueries."""
        return batch_loop({place: f"ahead({place}, rows)" for place in self.ahead})

    @property
    def _keeps_aside(self) -> bool:
        """True if the loop holds state in locals,
        or fills windows that have something to write at its end."""
        return self.enter.in_locals or (self.gate is not None and self.gate.has_end)

    def _write_stored(self, source: SourceWriter) -> None:
        """The loop; whatever happens in it, the state is what the events before have made of it."""
        with source.block("try:"):
            self._write_loop(source)
        with source.block("finally:"):
            if self.enter.in_locals:
                names = self.frame.fold.attributes
                source.line(f"{', '.join(f'whole.{name}' for name in names)} = {', '.join(names)}")
            if self.window is not None:
                self.window.write_end(source, "q.windows[0]")
            if self.gate is not None:
                self.gate.write_end(source)

    def _write_in_cells(self, source: SourceWriter) -> None:
        with source.block("def push(m, cells, rows, now):"):
            source.line("fail = m.fail")
            source.line("out = m.out")
            source.line("name = m.name")
            source.line("seq = m.seq")
            with source.block("for q, e in zip(cells, rows):"):
                if self.plan.output is not None:
                    with source.block("if e is None:"):
                        source.line("m.end(q, now)")
                        source.line("continue")
                if self._reads_partition:
                    source.line("partition = q.partition.row")
                self.frame.write_cell(source)
                self._write_event(source)
            source.line("m.seq = seq")
        source.line("")

    def _write_event(self, source: SourceWriter) -> None:
        slots = self.frame.slots("" if self.enter.in_locals else self.frame.fold.owner, "now", "True")
        for place in self.ahead:
            slots["subquery", place] = Code(f"subqueries[{place}](x, found_{place})")
        loop = self.frame.make_loop(source, slots)
        if self.frame.is_timed and self._reads_clock:
            source.line("context.now_ms = now")
        needs_event = self.window is not None and self.window.needs_event
        made_first = bool(self.plan.analytics or self.plan.subqueries or needs_event)
        if made_first or self.plan.sources[0].filter is not None or self.frame.has_window:
            self._write_admitted(loop, made_first)
        if self.frame.earlier.depth:
            source.line("recent.append(e)")
        if self.frame.in_loop:
            self.enter.write(loop, made_first)
        else:
            self._write_handed_on(loop, made_first)

    def _write_admitted(self, loop: LoopWriter, made_first: bool) -> None:
        """Analytic functions see the event; the filter, the bound and the window's own
        values decide if it enters."""
        source = loop.source
        with source.attempt("fail(e, error)", "continue"):
            if made_first:
                source.line("seq += 1")
                source.line("x = Event(e, now, seq)")
            if self.plan.subqueries:
                with source.block("for take in takes:"):
                    source.line("take(e, now)")
            if self.plan.analytics:
                source.line("q.analytic.see(x)")
            if self.plan.sources[0].filter is not None:
                loop.skip_unless(self.plan.sources[0].filter)
            if self.frame.has_window:
                with source.block("if not is_roomy:"):
                    source.line("q.budget.admit()")
            if self.window is not None:
                self.window.write_prepare(loop)

    def _write_handed_on(self, loop: LoopWriter, made_first: bool) -> None:
        """The window is called; each update it gives is a change, without a window the event itself."""
        source = loop.source
        if self.frame.keeps_values:
            self.enter.write_prepared(loop)
        elif not made_first:
            source.line("seq += 1")
            source.line("x = Event(e, now, seq)")
        if not self.frame.has_window:
            self._write_changes(source, "", "(x,), ()")
            return
        if self.gate is not None:
            self.gate.write_hold(source)
            if not self.gate.releases_on_arrival:
                return
        if not self.frame.keeps_values:
            source.line("q.seq = seq")
        with source.attempt("fail(e, error)", "continue"):
            source.line("deltas = operator.push(Delta((x,)), now)")
        with source.block("if deltas:"):
            self._write_changes(source, "for inserted, removed in deltas:", "inserted, removed")
            if self.gate is not None:
                self.gate.write_load(source)
        if not self.frame.keeps_values:
            source.line("seq = q.seq")

    def _write_changes(self, source: SourceWriter, each: str, sides: str) -> None:
        """The rows of the step: those of one change, or of `each`."""
        collects = self.show.collects
        if not collects:
            source.line("new, old = [], []")
        with source.block(each) if each else nullcontext():
            source.line(f"change(q, {sides}, now{'' if collects else ', new, old'})")
        if collects:
            source.line("q.output.end_step(now)")
        else:
            self.show.emit(source)

    @cached_property
    def _reads_clock(self) -> bool:
        return any(map(reads_clock, self.plan.expressions))

    @cached_property
    def _reads_partition(self) -> bool:
        return "context" in slot_kinds(*self.plan.expressions)
