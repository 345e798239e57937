"""COUNTWINDOW(n, k): after each k-th row, once n are there, the last n; of COUNTWINDOW(n) each n in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from sql.algebra.sample.instance import Instance
from sql.algebra.sample.windows.group_entry import (
    Finding,
    GroupParameter,
    GroupWindowEntry,
    register_group_window,
)
from sql.algebra.sample.windows.window import Setting, Window, WindowCore
from sql.algebra.windows.facts import Stage
from sql.codegen.loop import LoopWriter
from sql.costs import Extra, WindowCost
from sql.plan.clauses import GroupWindowPlan
from sql.record import replace


class CountInTurn(Window):
    """COUNTWINDOW(n): nothing a window has shown can be seen again."""

    slots: ClassVar[dict[str, str]] = {"count": "0", "first_ms": "0"}
    marks = ("count", "first_ms")
    locals: ClassVar[dict[str, str]] = {"count": "p.count"}

    @property
    def is_instant(self) -> bool:
        """True if all events of a loop are of one instance and one instant."""
        return not (self.is_timed or self.plan.partition_by)

    def write_first(self, loop: LoopWriter) -> None:
        if self.is_instant:
            with loop.block("if not count:"):
                loop.line("p.first_ms = at")

    def write_end(self, loop: LoopWriter) -> None:
        loop.line("p.count = count")

    def write_after(self, loop: LoopWriter) -> None:
        loop.line("count += 1")
        if not self.is_instant:
            with loop.block("if count == 1:"):
                loop.line("p.first_ms = at")
        with loop.block(f"if count == {self.plan.size}:"):
            loop.line(f"{loop.names.bind(self, 'window')}.full(core, p, at)")
            loop.line("count = 0")

    def full(self, core: WindowCore, p: Instance, at_ms: int) -> None:
        """The last event of a window has come; the next window begins at this instant, or later."""
        first_ms, p.first_ms, p.count = p.first_ms, at_ms, 0
        assert first_ms is not None
        core.close(p, first_ms, at_ms)

    def is_blank(self, p: Instance) -> bool:
        return not p.count


class CountOverlapping(Window):
    """COUNTWINDOW(n, k). `since`: events since the last sample."""

    slots: ClassVar[dict[str, str]] = {"since": "0"}
    marks = ("since",)

    def write_after(self, loop: LoopWriter) -> None:
        with loop.block(f"if len(times) > {self.plan.size}:"):
            self.content.write_leave(loop)
        loop.line("p.since += 1")
        with loop.block(f"if p.since == {self.plan.interval}:"):
            loop.line("p.since = 0")
            with loop.block(f"if len(times) == {self.plan.size}:"):
                loop.line("core.show(p, times[0], at, at)")

    def is_blank(self, p: Instance) -> bool:
        return not p.since and self.content.is_empty(p)


def _make(setting: Setting) -> Window:
    return (CountInTurn if setting.plan.interval == setting.plan.size else CountOverlapping)(setting)


def _check(plan: GroupWindowPlan) -> Iterator[Finding]:
    if plan.interval > plan.size:
        text = f"the interval {plan.interval} of COUNTWINDOW is larger than its size {plan.size}"
        yield Finding("B521", text, "interval")


register_group_window(
    GroupWindowEntry(
        name="count",
        parameters=(
            GroupParameter("size", "size", "n"),
            GroupParameter("interval", "interval", "c", optional=True),
        ),
        make=_make,
        leaving=lambda plan: "at once" if plan.size == plan.interval else "one by one",
        bounds=lambda plan: "[]",
        complete=lambda plan: plan if plan.interval else replace(plan, interval=plan.size),
        check=_check,
        composition=(
            Stage("Retain", "count {n}"),
            Stage("Sample", "every {c} events, once {n} are there"),
        ),
        cost=WindowCost(besides=(Extra.ROWS,)),
        state="{n} events",
        example="COUNTWINDOW(5, 1)",
        summary="the last n, shown after every c-th",
    )
)
