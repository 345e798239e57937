"""The windows that are looked at with every event: when events leave each of them.

length, lastevent    the oldest, as one more enters than there is room for
keepall              never
time                 at arrival + length; where that shows nothing, only as the next event comes
ext_timed            as an event comes whose own time is so much later
unique               the one of the same key
"""

from __future__ import annotations

from collections import deque
from typing import Any

from sql.aggregates.base import Removal
from sql.codegen.fast.handover import rows_in
from sql.codegen.fast.reader import LoopWriter, Refused
from sql.codegen.fast.running import POP, RunningQuery
from sql.codegen.fast.source import SourceWriter
from sql.plan.bound import Read
from sql.plan.logical import Plan, WindowPlan
from sql.runtime.build import period, size
from sql.runtime.emission import Emission


class ChangeQuery(RunningQuery):
    """Base of EPL's windows, which show what a change does to the groups."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        plan: Plan = args[1]
        self.kind = plan.row_kind
        self.condition = plan.sources[0].filter
        super().__init__(*args, **keywords)

    @property
    def epl(self) -> WindowPlan:
        """The window as it is written."""
        return self.plan.sources[0].windows[0]

    def fixed_ms(self) -> int:
        """The window's period in ms; Refused where that depends on the calendar."""
        length = period(self.epl.arguments["period"], self.functions)
        if length.is_calendar:
            raise Refused("months are of different lengths", self.epl.span)
        return length.millis


class LengthQuery(ChangeQuery):
    """length(n), lastevent: the newest n events."""

    taking = "[0]"
    """The queues drop their oldest entry by themselves."""

    def prepare(self) -> None:
        argument = self.epl.arguments.get("size")
        self.size = 1 if argument is None else size(argument, self.functions)

    def new_queue(self) -> deque[Any]:
        return deque(maxlen=self.size)

    def write_start(self, writer: SourceWriter) -> None:
        writer.line(f"is_full = len(window) == {self.size}")

    def write_leaving(self, writer: SourceWriter) -> None:
        with writer.block("if is_full:"):
            self.write_removal(writer, stays="g")

    def write_remembering(self, writer: SourceWriter) -> None:
        super().write_remembering(writer)
        with writer.block("if not is_full:"):
            writer.line(f"is_full = len(window) == {self.size}")


class KeepAllQuery(ChangeQuery):
    """keepall: nothing leaves."""

    removal = Removal.NEVER
    leaves_beside = False


class LatestQuery(ChangeQuery):
    """unique(k …): the newest event of each key, with all that is remembered of it in one entry."""

    removal = Removal.ANY

    @property
    def queues(self) -> list[str]:
        return []

    def fresh(self) -> dict[str, Any]:
        return super().fresh() | {"entries": {}}

    def remembered(self) -> list[tuple[Any, int]]:
        return [(entry[0], self.now_ms) for entry in self.kept["entries"].values()]

    def retained(self) -> int:
        return len(self.kept["entries"]) if self.operators is None else super().retained()

    def write_load(self, writer: SourceWriter) -> None:
        super().write_load(writer)
        writer.line("entries = kept['entries']")

    @property
    def number_of_events(self) -> str:
        return super().number_of_events.replace("window", "entries")

    def write_own(self, loop: LoopWriter) -> None:
        keys = self.epl.arguments["keys"]
        self.write_odd_unless(loop, keys, lambda: loop.key(keys, "unique"))

    def _entry(self, place: int) -> str:
        """The locals of an entry, as it enters (1) or as it is taken out (2)."""
        member = [("", "g" if self.has_groups else "passes", "h")] if self.has_groups or self.has_ghosts else []
        parts = [("", "e", "left"), *member, *self.aggregates.remembered]
        return "".join(f"{part[place]}, " for part in parts)

    def write_leaving(self, writer: SourceWriter) -> None:
        writer.line("entry = entries.pop(unique, None)")
        with writer.block("if entry is not None:"):
            writer.line(f"{self._entry(2)} = entry")
            self.write_taking_out(writer, "g")

    def write_remembering(self, writer: SourceWriter) -> None:
        writer.line(f"entries[unique] = ({self._entry(1)})")


class DataClockQuery(ChangeQuery):
    """ext_timed(ts, d): the arriving event's own time is the clock; older ones leave from the head."""

    @property
    def queues(self) -> list[str]:
        return [*super().queues, "stamps"]

    def prepare(self) -> None:
        self.length_ms = self.fixed_ms()

    def write_own(self, loop: LoopWriter) -> None:
        writer = loop.source
        node = self.epl.arguments["timestamp"]
        self.stamp = "stamp"
        if isinstance(node, Read):
            self.stamp = loop.atom(node, "")
        else:
            self.write_odd_unless(loop, [node], lambda: writer.line(f"stamp = {loop.value(node)}"))
        with writer.block(f"if {self.stamp}.__class__ is not int and {self.stamp} is not None:"):
            self.write_odd(writer)

    def write_leaving(self, writer: SourceWriter) -> None:
        if_timed = writer.block(f"if {self.stamp} is not None and {self.stamp} != -1:")
        with if_timed, writer.block(f"while stamps and stamps[0] <= {self.stamp} - {self.length_ms}:"):
            writer.line(f"stamps{POP}")
            self.write_removal(writer, stays="g")

    def write_remembering(self, writer: SourceWriter) -> None:
        super().write_remembering(writer)
        writer.line(f"stamps.append({self.stamp} or 0)")


class Expiring(RunningQuery):
    """Base of windows whose events leave at arrival + length.

    Where leaving shows nothing it waits for the next event, or for the end of a silent stream.
    """

    leaves_beside = False
    length_ms: int

    @property
    def is_silent(self) -> bool:
        """Whether leaving shows nothing."""
        return self.kind not in ("aggregate", "group") and not self.shows_old

    @property
    def queues(self) -> list[str]:
        return [*super().queues, "times"]

    def remembered(self) -> list[tuple[Any, int]]:
        return list(zip(self.kept["window"], self.kept["times"], strict=True))

    # --- code ---------------------------------------------------------------------------------------------------------

    def _write(self, writer: SourceWriter, names: Any) -> None:
        super()._write(writer, names)
        if self.is_silent:
            return
        writer.line("")
        with writer.block("def expire(now_ms, out):"):
            self.write_load(writer)
            self._write_touched(writer)
            self._write_expiry(writer)
            self.write_store(writer)
            if self.shows_old:
                self.write_both_rows(writer, comes=False)
            elif self.kind == "group":
                self.write_group_rows(writer)
            else:
                touched = "(touched,) if touched is not None else ()" if self.has_ghosts else "(None,)"
                with writer.block(f"for e in {touched}:"):
                    self.write_row(self.loop_writer(writer, self.slots()))

    def _write_touched(self, writer: SourceWriter) -> None:
        if self.shows_old:
            writer.line("old = []")
        if self.kind == "group":
            writer.line("changed = {}")
        elif self.shows_old:
            writer.line("gone = []")
        elif self.has_ghosts:
            writer.line("touched = None")

    def write_start(self, writer: SourceWriter) -> None:
        if self.is_silent and not self.is_timed:
            self._write_expiry(writer)

    def write_before(self, writer: SourceWriter) -> None:
        if not self.is_timed:
            return
        if self.is_silent:
            self._write_expiry(writer)
            return
        with writer.block(f"if times and times[0] <= now_ms - {self.length_ms}:"):
            self.write_store(writer)
            writer.line("q.step_to(now_ms)")
            self.write_load(writer)

    def write_remembering(self, writer: SourceWriter) -> None:
        super().write_remembering(writer)
        if self.is_timed:
            writer.line("times.append(now_ms)")

    def write_end(self, writer: SourceWriter) -> None:
        # A batch of one instant gets its times at the end.
        if not self.is_timed:
            writer.line("times.extend([now_ms] * (len(window) - len(times)))")

    def _write_expiry(self, writer: SourceWriter) -> None:
        with writer.block(f"while times and times[0] <= now_ms - {self.length_ms}:"):
            writer.line(f"times{POP}")
            self.write_removal(writer)

    # --- time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        if self.operators is not None:
            return super().next_deadline()
        times = self.kept["times"]
        return times[-1 if self.is_silent else 0] + self.length_ms if times else None

    def advance_to(self, now_ms: int) -> None:
        super().advance_to(now_ms)
        deadline = self.next_deadline()
        if self.operators is not None or deadline is None or deadline > now_ms:
            return
        if self.is_silent:
            self.kept = self.fresh()
            return
        self.context.now_ms = now_ms
        self.code["expire"](now_ms, self.out)

    def advance(self, now_ms: int) -> list[Emission]:
        out = super().advance(now_ms)
        if self.operators is None:
            self.counts["rows_out"] += rows_in(out)
        return out

    def step_to(self, until_ms: int) -> None:
        while (deadline := self.next_deadline()) is not None and deadline <= until_ms:
            self.now_ms = max(self.now_ms, deadline)
            self.advance_to(deadline)


class TimeQuery(Expiring, ChangeQuery):
    """time(d): the events of the last d."""

    def prepare(self) -> None:
        self.length_ms = self.fixed_ms()
