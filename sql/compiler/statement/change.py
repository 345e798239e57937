"""The text of `change`: one update that called windows or a join hand over."""

from __future__ import annotations

from sql.algebra.windows.catalog import WINDOWS
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.compiler.statement.enter import EnterText
from sql.compiler.statement.statement_frame import StatementFrame


class ChangeText:
    """Writes the fold and the rows of events that enter and leave together."""

    def __init__(self, frame: StatementFrame, enter: EnterText) -> None:
        self.frame = frame
        self.enter = enter
        self.plan = frame.plan
        self.fold = frame.fold
        self.show = frame.show

    @property
    def posts_unseen(self) -> bool:
        """True if a window takes out rows that never came in: a derived-value window its first one."""
        return any(
            WINDOWS[window.name].role == "derived"
            for source in self.plan.sources
            for window in source.windows
        )

    def write(self, source: SourceWriter) -> None:
        """The function `change`."""
        if self.frame.keeps_values:
            self._write_of_values(source)
        else:
            self._write_of_events(source)

    def _write_of_values(self, source: SourceWriter) -> None:
        """The function for windows that keep what events contribute: nothing is evaluated again."""
        with source.block("def change(q, inserted, removed, now, new, old):"):
            source.line("whole = q.groups.whole")
            source.line("touched = False")
            loop, came = self.frame.make_loop(source, {}), ", ".join(self.fold.kept.remembered)
            with source.block("for x in inserted:"), source.block("if x is not ABSENT:"):
                source.line("touched = True")
                if came:
                    source.line(f"{came} = x")
                self.fold.enter(loop, "whole.")
            with source.block("for y in removed:"), self.fold.left(source):
                source.line("touched = True")
                self.fold.leave(loop, "whole.")
            if not self.show.defers:
                with source.block("if touched:"):
                    source.line("show(q, NOTHING, whole, new, True)")
                source.line("return touched")
        source.line("")

    def write_values(self, source: SourceWriter) -> None:
        """`values`: what the rows of a lot contribute, before any of them counts."""
        with source.block("def values(q, rows, now):"):
            source.line("fail = q.fail")
            source.line("found = []")
            with source.block("for e in rows:"):
                with source.attempt("fail(e, error)", "continue"):
                    source.line("q.budget.admit()")
                self.enter.write_prepared(
                    self.frame.make_loop(source, self.frame.slots("whole.", "now", "True"))
                )
                source.line("found.append(x)")
            source.line("return found")
        source.line("")

    def _write_of_events(self, source: SourceWriter) -> None:
        show, fold = self.show, self.fold
        entered_rows = show.kind not in ("group", "aggregate") and not show.defers
        with source.block(f"def change(q, inserted, removed, now{'' if show.collects else ', new, old'}):"):
            self.frame.write_state(source)
            if self.fold.can_reclaim:
                source.line("q.groups.forget_idle(now)")
            if self.frame.earlier.notes_prior:
                source.line("q.earlier.note(inserted)")
            show.begin(source)
            if entered_rows:
                source.line("entered = []")
            with source.block("for x in inserted:"):
                self._write_inserted(source, entered_rows)
            with source.block("for y in removed:"):
                if self.frame.earlier.keeps_left:
                    source.line("older.append(y.row)")
                source.line("h = y.group")
                if self.posts_unseen:
                    with source.block("if h is UNSEEN:"):
                        source.line("h = prepare(q, y)")
                        with source.block("if h is not None:"):
                            show.before(source, "h", "y")
                            fold.write_dropped(source, "h.")
                            show.left(source)
                        source.line("continue")
                with source.block("if h is not None:"):
                    show.before(source, "h", "y")
                    fold.leave(self.frame.make_loop(source, {}))
                    show.left(source)
            if show.collects and show.kind == "aggregate":
                with source.block("if not inserted and not removed:"):
                    show.before(source, "whole", "NOTHING")
            show.finish(source, "entered")
            if show.collects:
                self.frame.write_update(source)
            elif show.kind == "aggregate" and not show.defers:
                source.line("return touched is not None")
        source.line("")

    def _write_inserted(self, source: SourceWriter, entered_rows: bool) -> None:
        show, fold = self.show, self.fold
        loop = self._write_joined(source, "fail(e, error)")
        with source.block("if g is not None:"):
            source.line(f"x.values = {fold.kept.values}")
            show.before(source, "g", "x")
            fold.enter(loop)
            if entered_rows:
                source.line("entered.append(x)")
            show.entered(source)
            if show.defers:
                self.frame.write_start(source)

    def _write_joined(self, source: SourceWriter, *failed: str) -> LoopWriter:
        """The event `x` finds its group, or none; `failed`: what else is done where it cannot be found."""
        source.line("e = x.row")
        loop = self.frame.make_loop(source, self.frame.slots("g.", "x.time_ms", "True"))
        with source.attempt(*failed, "g = None", reads_error=bool(failed)):
            self.frame.write_counted(loop, "x", "x.time_ms")
        source.line("x.group = g")
        return loop

    def write_prepare(self, source: SourceWriter) -> None:
        """`prepare`: the group of a row that leaves without having come; it never counted."""
        with source.block("def prepare(q, x):"):
            self.frame.write_state(source)
            self._write_joined(source)
            source.line("return g")
        source.line("")
