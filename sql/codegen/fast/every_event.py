"""EPL length and eKuiper sliding windows: when events leave."""

from __future__ import annotations

from typing import Any

from sql.codegen.expressions import Code
from sql.codegen.fast.arguments import Argument
from sql.codegen.fast.reader import WINDOW_SLOTS
from sql.codegen.fast.running import RunningQuery
from sql.codegen.fast.source import SourceWriter


class LengthQuery(RunningQuery):
    """length(n): the newest n events; a row with every event."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        source = args[1].sources[0]
        self.size = source.windows[0].arguments["size"].value
        self.condition = source.filter
        super().__init__(*args, **keywords)

    def write_start(self, writer: SourceWriter, arguments: list[Argument]) -> None:
        writer.line(f"is_full = len(window) == {self.size}")

    def write_leaving(self, writer: SourceWriter, arguments: list[Argument]) -> None:
        with writer.block("if is_full:"):
            self.write_removal(writer, arguments, "[0]")
            if not arguments:
                writer.line("pass")

    def write_entered(self, writer: SourceWriter) -> None:
        with writer.block("if not is_full:"):
            writer.line(f"is_full = len(window) == {self.size}")

    def slots(self, arguments: list[Argument]) -> dict[Any, Code]:
        return {**super().slots(arguments), ("istream", None): Code("True", False, True, "boolean")}


class SlidingQuery(RunningQuery):
    """SLIDINGWINDOW without delay: for each event at t the events of (t - length, t]."""

    steps_itself = True
    shown = "window[0]"

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.condition = args[1].window.filter
        super().__init__(*args, **keywords)
        self.counts["windows_empty_skipped"] = 0

    def slots(self, arguments: list[Argument]) -> dict[Any, Code]:
        window = self.plan.window
        assert window is not None
        now = Code("now_ms", False, True, "number")
        bounds = dict.fromkeys(WINDOW_SLOTS, now)
        bounds["window", "start"] = Code(f"(now_ms - {window.length_ms})", False, True, "number")
        return {**super().slots(arguments), **bounds}

    def write_start(self, writer: SourceWriter, arguments: list[Argument]) -> None:
        if not self.is_timed:
            self._write_expiry(writer, arguments)

    def write_leaving(self, writer: SourceWriter, arguments: list[Argument]) -> None:
        # A batch of one instant has nothing to expire after its first event, and gets its times at the end.
        if self.is_timed:
            self._write_expiry(writer, arguments)
            writer.line("times.append(now_ms)")

    def write_end(self, writer: SourceWriter) -> None:
        if not self.is_timed:
            writer.line("times.extend([now_ms] * (len(window) - len(times)))")

    def _write_expiry(self, writer: SourceWriter, arguments: list[Argument]) -> None:
        assert self.plan.window is not None
        with writer.block(f"while times and times[0] <= now_ms - {self.plan.window.length_ms}:"):
            writer.line("times.popleft()")
            writer.line("window.popleft()")
            self.write_removal(writer, arguments, ".popleft()")

    def next_deadline(self) -> int | None:
        """Expiry shows nothing, but a stream that falls silent must not hold its last window for ever."""
        if self.operators is not None or not self.times:
            return super().next_deadline()
        assert self.plan.window is not None
        return self.times[-1] + self.plan.window.length_ms

    def advance_to(self, now_ms: int) -> None:
        super().advance_to(now_ms)
        deadline = self.next_deadline()
        if self.operators is None and deadline is not None and deadline <= now_ms:
            self.restart()
