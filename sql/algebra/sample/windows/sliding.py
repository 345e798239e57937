"""SLIDINGWINDOW: for each triggering event at t the events of (t - length, t]; delayed:
(t - length, t + delay).

A window of length 0 looks ahead only: it holds the trigger and what comes less than the delay
after it, [t, t + delay).

SLIDINGWINDOW(ss, 2)      a  b        c
                          ^[a] ^[a b] ^[c]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from sql.algebra.sample.instance import Instance, write_locals
from sql.algebra.sample.shown_inline import InlineRow
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


class Sliding(Window):
    """SLIDINGWINDOW(unit, length [, delay]) [OVER(WHEN …)]. `pending`: triggers whose samples are delayed."""

    slots: ClassVar[dict[str, str]] = {"pending": "deque()"}
    locals: ClassVar[dict[str, str]] = {"pending": "p.pending"}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        plan = setting.plan
        self.met = setting.met
        self.back_ms = plan.length_ms or 1
        """The time before a trigger for which events belong to it; of length 0 the instant of
        the trigger itself."""
        self.life_ms = self.back_ms + plan.delay_ms
        self.row: InlineRow | None = None
        """Writes the row of each trigger into the loop, where a sample is no more than that."""

    # --- code -----------------------------------------------------------------------------------------------

    def write_helpers(self, loop: LoopWriter) -> None:
        if self.row is None or not self.plan.delay_ms:
            return
        with loop.block("def fire(core, p, now):"):
            write_locals(loop.source, {**self.locals, **self.content.locals})
            with loop.block(f"while pending and pending[0] <= now - {self.plan.delay_ms}:"):
                loop.line("at = pending[0]")
                loop.line(f"end = at + {self.plan.delay_ms}")
                self.content.write_expire(loop, f"at - {self.back_ms}")
                self.row.write_begin(loop)
                with loop.block("while pending and pending[0] == at:"):
                    loop.line("pending.popleft()")
                    with loop.block("if not times:"):
                        loop.line("continue")
                    self.row.write(loop, f"(at - {self.plan.length_ms})", "end", "end", "None")
                self.row.write_end(loop, "end")
        loop.line("")

    def write_first(self, loop: LoopWriter) -> None:
        if self.row is not None and not self.plan.delay_ms:
            self.row.write_begin(loop)
        if not self.is_timed:
            self.content.write_expire(loop, f"at - {self.life_ms}")

    def write_end(self, loop: LoopWriter) -> None:
        if self.row is not None and not self.plan.delay_ms:
            self.row.write_end(loop, "at")

    def write_before(self, loop: LoopWriter) -> None:
        if self.is_timed or self.plan.partition_by:
            self.content.write_expire(loop, f"at - {self.life_ms}")

    def write_after(self, loop: LoopWriter) -> None:
        with loop.block("if p.due_ms is None:"):
            self.write_open(loop)
        if self.plan.when is not None:
            loop.skip_unless(self.plan.when)
            if self.met is not None:
                loop.line(f"{loop.names.bind(self.met, 'met')}.note(at)")
        if self.plan.delay_ms:
            loop.line("pending.append(at)")
            with loop.block(f"if p.due_ms > at + {self.plan.delay_ms}:"):
                self.write_open(loop)
        elif self.row is not None:
            self.row.write(loop, f"(at - {self.plan.length_ms})", "at", "at", "e")
        else:
            loop.line(f"core.show(p, at - {self.plan.length_ms}, at, at)")

    # --- what happens ---------------------------------------------------------------------------------------

    def deadline(self, p: Instance) -> int | None:
        if p.pending:
            trigger_ms: int = p.pending[0]
            return trigger_ms + self.plan.delay_ms
        # Expiry alone shows nothing, but a stream that falls silent must not hold its last window for ever.
        newest_ms: int | None = p.times[-1] if p.times else None
        return None if newest_ms is None else newest_ms + self.life_ms

    def fire(self, core: WindowCore, p: Instance, now_ms: int) -> None:
        if not p.pending:
            self.content.expire(p, p.times[-1])
            return
        if self.row is not None:
            self.functions["fire"](core, p, now_ms)
            return
        trigger_ms = p.pending.popleft()
        end_ms = trigger_ms + self.plan.delay_ms
        self.content.expire(p, trigger_ms - self.back_ms)
        core.show(p, trigger_ms - self.plan.length_ms, end_ms, end_ms)

    def is_blank(self, p: Instance) -> bool:
        return not p.times and not p.pending

    def pack(self, p: Instance) -> dict[str, list[int]]:
        return {"pending": list(p.pending)}

    def unpack(self, p: Instance, state: dict[str, list[int]]) -> None:
        p.pending.extend(state["pending"])


def _check(plan: GroupWindowPlan) -> Iterator[Finding]:
    if not plan.length_ms and not plan.delay_ms:
        text = "the length of SLIDINGWINDOW is a whole number of at least 1, not 0"
        yield Finding("B504", text, "length", "length 0 takes a delay: it looks ahead only")


register_group_window(
    GroupWindowEntry(
        name="sliding",
        parameters=(
            GroupParameter("length", "length_ms", "d", least=0),
            GroupParameter("delay", "delay_ms", "p", optional=True, least=0),
        ),
        make=Sliding,
        leaving=lambda plan: "one by one",
        bounds=lambda plan: ("(" if plan.length_ms else "[") + (")" if plan.delay_ms else "]"),
        check=_check,
        is_triggered=True,
        composition=(
            Stage("Retain", "deadline arrival + {d}"),
            Stage("Sample", "at each event"),
        ),
        cost=WindowCost(besides=(Extra.ROWS,)),
        state="the events of {d}",
        clock="processing or event time",
        example="SLIDINGWINDOW(ss, 10)",
        summary="the last d, shown with each event",
    )
)
