"""SESSIONWINDOW: closes at last + timeout, or at the first tick T of the maximum's grid with
T - first >= maximum."""

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
from sql.calendar.grid import Grid
from sql.codegen.loop import LoopWriter
from sql.plan.clauses import GroupWindowPlan


class Session(Window):
    """SESSIONWINDOW(unit, maximum, timeout). `first_ms` is None where no session is open."""

    slots: ClassVar[dict[str, str]] = {"first_ms": "None", "last_ms": "0", "tick_ms": "0"}
    marks = ("first_ms", "last_ms", "tick_ms")

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.ticks = Grid(self.plan.length_ms, setting.zone)

    def write_after(self, loop: LoopWriter) -> None:
        loop.line("p.last_ms = at")
        with loop.block("if p.first_ms is None:"):
            self.write_open(loop)

    def opened(self, p: Instance, at_ms: int) -> None:
        p.first_ms = at_ms
        p.tick_ms = self.ticks.next(at_ms + self.plan.length_ms - 1)

    def deadline(self, p: Instance) -> int | None:
        return None if p.first_ms is None else min(p.last_ms + self.plan.timeout_ms, p.tick_ms)

    def fire(self, core: WindowCore, p: Instance, now_ms: int) -> None:
        end_ms = self.deadline(p)
        assert end_ms is not None
        assert p.first_ms is not None
        core.close(p, p.first_ms, end_ms)
        p.first_ms = None

    def is_blank(self, p: Instance) -> bool:
        return p.first_ms is None


def _check(plan: GroupWindowPlan) -> Iterator[Finding]:
    if plan.timeout_ms > plan.length_ms:
        text = "the timeout is longer than the maximum duration and never closes a session"
        yield Finding("B702", text, "timeout", "the maximum stands before the timeout", is_warning=True)


register_group_window(
    GroupWindowEntry(
        name="session",
        parameters=(GroupParameter("max", "length_ms", "m"), GroupParameter("timeout", "timeout_ms", "t")),
        make=Session,
        check=_check,
        composition=(
            Stage("Gate", "first of: gap {t}, maximum {m}"),
            Stage("Sample", "at each release"),
        ),
        state="the events of one session, shorter than {m:2}",
        clock="processing or event time",
        example="SESSIONWINDOW(mi, 10, 1)",
        summary="events that follow each other within t",
    )
)
