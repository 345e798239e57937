"""The text of an arrival whose window stands in the loop: prepare, enter, leave, and the rows."""

from __future__ import annotations

from contextlib import nullcontext

from sql.algebra.retain.policies import Policy
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import write_row
from sql.codegen.source import SourceWriter
from sql.compiler.statement.statement_frame import StatementFrame


class EnterText:
    """Writes what an admitted event `x` with the row `e` does in the loop."""

    def __init__(self, frame: StatementFrame, *, has_change: bool) -> None:
        """`has_change`: updates also come from operators that are called, or from lots of several rows."""
        self.frame = frame
        self.has_change = has_change
        self.plan = frame.plan
        self.fold = frame.fold
        self.show = frame.show
        self.window = frame.window
        self.in_place = frame.in_place
        self.by_step = not (self.in_place or self.show.defers)
        """True if the rows of an event are made together, when all that it changes is known."""
        self.makes_rows = self.in_place and not (frame.is_timed or frame.in_cells)
        """True if the loop hands on rows, an emission each, of the instant that its events have in common."""
        is_alone = self.in_place or self.show.defers == "content"
        is_one = bool(self.fold.attributes) and not self.fold.is_grouped
        self.in_locals = is_alone and is_one and not frame.in_cells
        """True if the state of the only group is in locals while the loop runs: no function that the loop
        calls changes or reads it."""

    @property
    def _owners(self) -> tuple[str, str]:
        """The text before the attributes of the group that an event enters, and of the one that it leaves."""
        return ("", "") if self.in_locals else ("g.", "h.")

    @property
    def _leaves_on_arrival(self) -> bool:
        return self.window is not None and self.window.leaves_on_arrival

    @property
    def notes_left(self) -> bool:
        """True if the row may be that of an event that leaves, where the one that arrives does not count."""
        return self.in_place and self.show.kind == "group" and self._leaves_on_arrival

    @property
    def _notes_touch(self) -> bool:
        """True if the only row of a statement changes as well when an event leaves."""
        return self.in_place and self.show.kind == "aggregate" and self._leaves_on_arrival

    @property
    def _skips_brief(self) -> bool:
        """True if an event that enters and leaves in one step passes by the aggregates, which it leaves
        unchanged."""
        is_brief = isinstance(self.window, Policy) and self.window.expels_arrivals
        is_plain = not self.fold.is_grouped and not any(call.definition.ever for call in self.plan.aggregates)
        return is_brief and is_plain and self.in_place

    @property
    def _counts_nothing(self) -> bool:
        """True if each event gives a row and no aggregate, group or old row depends on it."""
        fold = self.fold
        is_plain = not (fold.kept.parts or fold.is_grouped or fold.counts) and self.plan.where is None
        return is_plain and self.in_place and not self.has_change and not self._notes_touch

    def write(self, loop: LoopWriter, made_first: bool) -> None:
        """The event enters and leaves in the loop itself; `made_first`: `x` exists already."""
        source = loop.source
        if self.fold.can_reclaim:
            source.line("q.groups.forget_idle(now)")
        if self.by_step:
            if not self.show.collects:
                source.line("new, old = [], []")
            self.show.begin(source)
        if self._counts_nothing:
            self._write_held(loop, made_first)
            return
        self.write_prepared(loop)
        self._write_made(source, made_first)
        if self.frame.earlier.notes_prior:
            source.line("q.earlier.note((x,))")
        self._write_entered(loop)
        if self._notes_touch:
            source.line(f"touched = {self.fold.member.counted}")
        if self.notes_left:
            source.line("h = None")
        if self.window is not None:
            with source.block("if not brief:") if self._skips_brief else nullcontext():
                self.window.write_enter(source, lambda: self._write_left(source))
        if self.in_place and self.window is not None:
            self._write_single(loop)
        elif self.by_step:
            self._write_finished(source)

    def _write_held(self, loop: LoopWriter, made_first: bool) -> None:
        """The event is in the window, and its row leaves."""
        source = loop.source
        if self.window is not None and not made_first:
            source.line("seq += 1")
            source.line("x = Event(e, now, seq)")
        if self.window is not None:
            left = "older.append(y.row)" if self.frame.earlier.keeps_left else "pass"
            self.window.write_enter(source, lambda: source.line(left))
        self._write_row(loop)

    def write_prepared(self, loop: LoopWriter) -> None:
        """Evaluate what may fail before anything changes: WHERE, the arguments and the group."""
        source = loop.source
        event = "Event(e, now, seq)"
        with source.attempt("fail(e, error)", self.fold.member.uncounted):
            self.frame.write_counted(loop, event, "now", self._owners[0])

    def _write_made(self, source: SourceWriter, made_first: bool) -> None:
        """The event as an object, where an operator keeps it."""
        if self.frame.keeps_values:
            return
        shows_event = self.by_step or self.show.defers == "groups"
        if not (self.window is not None or self.fold.needs_event or shows_event):
            return
        values = self.fold.kept.values if self.window is not None else "None"
        if made_first:
            source.line("x.group = g")
            if values != "None":
                with source.block("if g is not None:"):
                    source.line(f"x.values = {values}")
            return
        source.line("seq += 1")
        if values == "None":
            source.line("x = Event(e, now, seq, None, g)")
        else:
            text = f"Event(e, now, seq, None, g, {values})"
            source.line(f"x = {text} if g is not None else Event(e, now, seq)")

    def _write_entered(self, loop: LoopWriter) -> None:
        """The event counts in its group; without a window its row follows at once."""
        source = loop.source
        if self._skips_brief:
            source.line("brief = left and left[0] is x")
        with source.block(f"if {self.fold.member.counted}{' and not brief' if self._skips_brief else ''}:"):
            if not self.in_place:
                self.show.before(source, "g", "x")
            self.fold.enter(loop, self._owners[0])
            self.show.entered(source)
            if self.show.defers:
                self.frame.write_start(source)
            if self.in_place and self.window is None:
                self._write_row(loop)

    def _write_left(self, source: SourceWriter) -> None:
        """The event `y` leaves."""
        loop = self.frame.make_loop(source, {})
        if self.frame.earlier.keeps_left:
            source.line("older.append(y.row)")
        with self.fold.left(source):
            if not self.in_place:
                self.show.before(source, "h", "y")
            self.fold.leave(loop, self._owners[1])
            if self._notes_touch:
                source.line("touched = True")
            if not self.in_place:
                self.show.left(source)

    def _write_finished(self, source: SourceWriter) -> None:
        """The rows of the event, as an emission or an update."""
        show = self.show
        show.finish(source, "() if g is None else (x,)")
        if not show.collects:
            show.emit(source)
            return
        source.line("inserted, removed = (x,), ()")
        if show.kind == "group_event":
            source.line("entered = () if g is None else (x,)")
        self.frame.write_update(source)
        source.line("q.output.end_step(now)")

    def _write_single(self, loop: LoopWriter) -> None:
        """The only row of the event, as an emission."""
        with loop.source.block("if touched:" if self._notes_touch else f"if {self.fold.member.counted}:"):
            self._write_row(loop)
        if self.notes_left:
            with loop.source.block("elif h is not None:"):
                if self.makes_rows:
                    loop.source.line("show(q, y, h, made, True)")
                    return
                loop.source.line("new = []")
                loop.source.line("show(q, y, h, new, True)")
                self.show.emit(loop.source)

    def _write_row(self, loop: LoopWriter) -> None:
        source, plan, show = loop.source, self.plan, self.show
        with source.attempt("fail(e, error)"):
            if plan.having is not None:
                loop.skip_unless(plan.having)
                show.note(source, "HAVING", "now")
            if self.makes_rows:
                write_row(loop, plan, "made.append(", ")")
            else:
                write_row(loop, plan, "out.append(Emission(name, now, 'rows', [", "]))")
            show.note(source, "SELECT", "now")
