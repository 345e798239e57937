"""TUMBLINGWINDOW: closes at each boundary of the grid, [start, end). Empty ones are shown with
`emitEmpty`."""

from __future__ import annotations

from typing import ClassVar

from sql.algebra.sample.instance import Instance
from sql.algebra.sample.windows.group_entry import GroupParameter, GroupWindowEntry, register_group_window
from sql.algebra.sample.windows.window import Setting, Window, WindowCore
from sql.algebra.windows.facts import Stage
from sql.calendar.grid import Grid
from sql.codegen.loop import LoopWriter


class OnGrid(Window):
    """Base of windows that end at the boundaries of a grid. `end_ms`: when the open one
    ends, None where none is."""

    slots: ClassVar[dict[str, str]] = {"end_ms": "None"}
    marks: tuple[str, ...] = ("end_ms",)

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.grid = Grid(self.cycle_ms(), setting.zone)
        self.empty_max = setting.empty_max
        self.shown_empty = 0
        """Empty windows shown since time moved last."""

    def cycle_ms(self) -> int:
        """The length of the grid's cells."""
        return self.plan.length_ms

    def write_after(self, loop: LoopWriter) -> None:
        with loop.block("if p.end_ms is None:"):
            self.write_open(loop)

    def begin(self, p: Instance, now_ms: int) -> None:
        if self.empty_max is not None:
            p.end_ms = self.grid.next(now_ms)

    def opened(self, p: Instance, at_ms: int) -> None:
        p.end_ms = self.grid.next(at_ms)

    def time_moves(self) -> None:
        self.shown_empty = 0

    def deadline(self, p: Instance) -> int | None:
        return p.end_ms

    def goes_on(self, core: WindowCore, p: Instance, now_ms: int, *, was_empty: bool) -> None:
        """The next window is open. After `empty_max` empty ones in one step it is the first that ends after
        `now_ms`; those between are skipped."""
        self.shown_empty = self.shown_empty + 1 if was_empty else 0
        if self.shown_empty == self.empty_max:
            assert p.end_ms is not None
            after = self.grid.next(now_ms)
            core.skip_empty((after - p.end_ms) // self.grid.length_ms)
            p.end_ms = after

    def is_blank(self, p: Instance) -> bool:
        return p.end_ms is None

    def is_idle(self, p: Instance) -> bool:
        return self.empty_max is not None and self.content.is_empty(p)


class Tumbling(OnGrid):
    """TUMBLINGWINDOW(unit, length)."""

    def fire(self, core: WindowCore, p: Instance, now_ms: int) -> None:
        end_ms = p.end_ms
        assert end_ms is not None
        was_empty = self.empty_max is not None and self.content.is_empty(p)
        p.end_ms = None if self.empty_max is None else self.grid.next(end_ms)
        core.close(p, self.grid.floor(end_ms - 1), end_ms)
        if self.empty_max is not None:
            self.goes_on(core, p, now_ms, was_empty=was_empty)


register_group_window(
    GroupWindowEntry(
        name="tumbling",
        parameters=(GroupParameter("length", "length_ms", "d"),),
        make=Tumbling,
        counts_dropped=False,
        composition=(
            Stage("Gate", "every {d}", origin="local day | epoch"),
            Stage("Sample", "at each release"),
        ),
        state="the events of {d}",
        clock="processing or event time",
        example="TUMBLINGWINDOW(ss, 10)",
        summary="what came in each d, side by side",
    )
)
