"""STATEWINDOW(begin, emit): from a row that begins to a row that emits, both inside.

The emit condition is not tested on the opening row, as in eKuiper. With one condition each row that meets it
shows what is stored and starts the next; rows before the first are dropped.
"""

from __future__ import annotations

from typing import ClassVar

from sql.algebra.sample.instance import Instance
from sql.algebra.sample.windows.group_entry import GroupParameter, GroupWindowEntry, register_group_window
from sql.algebra.sample.windows.window import Window, WindowCore
from sql.algebra.windows.facts import Stage
from sql.codegen.loop import LoopWriter


class StateWindow(Window):
    """STATEWINDOW. `first_ms` is None where no window is open."""

    slots: ClassVar[dict[str, str]] = {"first_ms": "None"}
    marks = ("first_ms",)

    def write_before(self, loop: LoopWriter) -> None:
        if self.plan.emit is not None:
            with loop.block("if p.first_ms is None:"):
                self._write_begins(loop.inner())
                with loop.block("if not begins:"):
                    loop.line("continue")
            return
        self._write_begins(loop.inner())
        with loop.block("if begins:"), loop.block("if p.first_ms is not None:"):
            loop.line(f"{loop.names.bind(self, 'window')}.full(core, p, at)")
        with loop.block("elif p.first_ms is None:"):
            loop.line("continue")

    def _write_begins(self, loop: LoopWriter) -> None:
        """A condition that cannot be evaluated is an error event, and does not hold."""
        assert self.plan.begin is not None
        with loop.source.attempt("core.owner.failed(e, error, at)", "begins = False"):
            text = loop.true(self.plan.begin)
            loop.line(f"begins = {text}", self.plan.begin.span)

    def write_after(self, loop: LoopWriter) -> None:
        with loop.block("if p.first_ms is None:"):
            loop.line("p.first_ms = at")
        if self.plan.emit is not None:
            with loop.block("else:"):
                text = loop.inner().true(self.plan.emit)
                with loop.block(f"if {text}:", self.plan.emit.span):
                    loop.line(f"{loop.names.bind(self, 'window')}.full(core, p, at)")

    def full(self, core: WindowCore, p: Instance, at_ms: int) -> None:
        first_ms, p.first_ms = p.first_ms, None
        assert first_ms is not None
        core.close(p, first_ms, at_ms)

    def is_blank(self, p: Instance) -> bool:
        return p.first_ms is None


register_group_window(
    GroupWindowEntry(
        name="state",
        parameters=(
            GroupParameter("begin", "begin", "begin"),
            GroupParameter("emit", "emit", "emit", optional=True, default="the next begin"),
        ),
        make=StateWindow,
        bounds=lambda plan: "[]",
        composition=(
            Stage("Gate", "from {begin}, until {emit}"),
            Stage("Sample", "at each release"),
        ),
        state="the events between {begin} and {emit}",
        example="STATEWINDOW(run, NOT run)",
        summary="from a row that begins to a row that ends",
        unbounded="a state window keeps everything until its end condition holds",
    )
)
