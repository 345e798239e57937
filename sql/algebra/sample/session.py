"""SESSIONWINDOW: closes at last + timeout, or at the first tick T of the maximum's grid with
T - first >= maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sql.algebra.sample.content import Content
from sql.algebra.sample.text import Loop
from sql.algebra.sample.window import Window
from sql.calendar.grid import Grid
from sql.plan.logical import GroupWindowPlan

if TYPE_CHECKING:
    from sql.algebra.sample.core import Core


class Session(Window):
    """SESSIONWINDOW(unit, maximum, timeout). `first_ms` is None where no session is open."""

    slots: ClassVar[dict[str, str]] = {"first_ms": "None", "last_ms": "0", "tick_ms": "0"}
    marks = ("first_ms", "last_ms", "tick_ms")

    def __init__(self, plan: GroupWindowPlan, content: Content, ticks: Grid) -> None:
        super().__init__(plan, content)
        self.ticks = ticks

    def write_after(self, loop: Loop) -> None:
        loop.line("p.last_ms = at")
        with loop.block("if p.first_ms is None:"):
            loop.line("due = core.open(p, at)")

    def opened(self, p: Any, at_ms: int) -> None:
        p.first_ms = at_ms
        p.tick_ms = self.ticks.next(at_ms + self.plan.length_ms - 1)

    def deadline(self, p: Any) -> int | None:
        return None if p.first_ms is None else min(p.last_ms + self.plan.timeout_ms, p.tick_ms)

    def fire(self, core: Core, p: Any, now_ms: int) -> None:
        end_ms = self.deadline(p)
        assert end_ms is not None
        core.close(p, p.first_ms, end_ms)
        p.first_ms = None

    def is_blank(self, p: Any) -> bool:
        return p.first_ms is None
