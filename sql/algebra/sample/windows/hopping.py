"""HOPPINGWINDOW: at each end E of the hop grid the events of [E - length, E), in days of the zone's clock.

    HOPPINGWINDOW(ss, 4, 2)   |-----|-----|-----|        a tick shows the events before its own instant
                              a   b    c     d
                                    ^[a b]   ^[a b c]

Contents in panes are cut where a window ends or begins: at each end, and `length % hop` before it.
"""

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
from sql.algebra.sample.windows.tumbling import OnGrid
from sql.algebra.sample.windows.window import WindowCore
from sql.algebra.windows.facts import Stage
from sql.codegen.loop import LoopWriter
from sql.costs import Extra, WindowCost
from sql.plan.clauses import GroupWindowPlan


class Hopping(OnGrid):
    """HOPPINGWINDOW(unit, length, hop). `pane_ms`: where the open pane ends."""

    slots: ClassVar[dict[str, str]] = {"end_ms": "None", "pane_ms": "0"}
    marks = ("end_ms", "pane_ms")

    def cycle_ms(self) -> int:
        return self.plan.hop_ms

    @property
    def early_ms(self) -> int:
        """The time before its end at which a window starts another."""
        return self.plan.length_ms % self.plan.hop_ms

    def write_instant(self, loop: LoopWriter) -> None:
        if self.early_ms:
            with loop.block("if p.end_ms is not None and at >= p.pane_ms:"):
                loop.line("core.window.cut(p, at)")

    def cut(self, p: Instance, at_ms: int) -> None:
        """The open pane has ended before `at_ms`, at which another one is open."""
        self.content.cut(p, p.pane_ms)
        p.pane_ms = self._pane_end(p, at_ms)

    def begin(self, p: Instance, now_ms: int) -> None:
        super().begin(p, now_ms)
        if p.end_ms is not None:
            p.pane_ms = self._pane_end(p, now_ms)

    def opened(self, p: Instance, at_ms: int) -> None:
        super().opened(p, at_ms)
        p.pane_ms = self._pane_end(p, at_ms)

    def _pane_end(self, p: Instance, at_ms: int) -> int:
        end_ms = p.end_ms
        assert end_ms is not None
        return end_ms - self.early_ms if at_ms < end_ms - self.early_ms else end_ms

    def fire(self, core: WindowCore, p: Instance, now_ms: int) -> None:
        end_ms, length_ms = p.end_ms, self.plan.length_ms
        assert end_ms is not None
        start_ms = self.grid.back(end_ms, length_ms)
        self.content.cut(p, p.pane_ms)
        self.content.expire(p, start_ms - 1)
        was_empty = self.content.is_empty(p)
        core.show(p, start_ms, end_ms, end_ms)
        p.end_ms = self.grid.next(end_ms)
        if self.empty_max is not None:
            self.goes_on(core, p, now_ms, was_empty=was_empty)
            p.pane_ms = self._pane_end(p, max(end_ms, p.end_ms - self.grid.length_ms))
            return
        self.content.expire(p, self.grid.back(p.end_ms, length_ms) - 1)
        if self.content.is_empty(p):
            p.end_ms = None
        else:
            p.pane_ms = self._pane_end(p, end_ms)


def _check(plan: GroupWindowPlan) -> Iterator[Finding]:
    if plan.hop_ms > plan.length_ms:
        text = "the hop is longer than the window: events between windows are in none"
        yield Finding("B701", text, "hop", is_warning=True)


register_group_window(
    GroupWindowEntry(
        name="hopping",
        parameters=(GroupParameter("length", "length_ms", "d"), GroupParameter("hop", "hop_ms", "p")),
        make=Hopping,
        leaving=lambda plan: "by panes",
        check=_check,
        counts_dropped=False,
        composition=(
            Stage("Retain", "deadline arrival + {d}"),
            Stage("Sample", "every {p}", origin="local day | epoch"),
        ),
        cost=WindowCost(besides=(Extra.ROWS,)),
        state="the events of {d}",
        clock="processing or event time",
        example="HOPPINGWINDOW(ss, 10, 5)",
        summary="the last d, shown every p",
    )
)
