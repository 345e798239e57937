"""ext_timed_batch on generated code: the events' own time releases the batch, and the event that does starts the next.

hold(rows, times)   the source's filter and the time stamp; whole numbers before the batch's end are held at once

Of every other event the window's own `Trigger` decides: of the first of a batch, of one at or after its end, of a stamp
that is NULL, a fraction or no number at all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import repeat
from math import inf
from typing import Any

from sql.codegen.fast.batches import BatchQuery
from sql.codegen.fast.source import SourceWriter
from sql.windows.event import Event
from sql.windows.triggers import DataBoundary


class DataBatchQuery(BatchQuery):
    """ext_timed_batch."""

    trigger: DataBoundary

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.due: float = -inf
        """Whole numbers below belong to the forming batch."""
        self.released = 0
        """How many events have been released."""
        super().__init__(*args, **keywords)
        self.has_clock = False

    # --- code ---------------------------------------------------------------------------------------------------------

    def _write_hold(self, writer: SourceWriter) -> None:
        source = self.plan.sources[0]
        loop = self.loop_writer(writer, {})
        with writer.block("def hold(rows, times):"):
            writer.line("due = q.due")
            writer.line("append = q.forming.append")
            with writer.block("for e, at in zip(rows, times):"):
                with writer.block("try:"):
                    loop.skip_unless(source.filter)
                    stamp = loop.atom(source.windows[0].arguments["timestamp"], "stamp")
                    with writer.block(f"if {stamp}.__class__ is not int or {stamp} >= due:"):
                        writer.line("due = q.meet(e, at)")
                        writer.line("append = q.forming.append")
                    writer.line("append(e)")
                with writer.block("except DATA_ERRORS as error:"):
                    writer.line("fail(e, error)")
        writer.line("")

    # --- events -------------------------------------------------------------------------------------------------------

    def _hold(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        if self.budget.room <= 0:
            self._hold_counted(rows)
            return
        before = self.released + len(self.forming)
        self.code["hold"](rows, repeat(self.now_ms) if times is None else times)
        self.budget.room -= self.released + len(self.forming) - before

    def _admit(self, row: Any) -> None:
        self.meet(row, self.now_ms)

    def meet(self, row: Any, at_ms: int) -> float:
        """An event that may release the batch before it enters: `due` from then on. DataError changes nothing."""
        event, trigger = Event(row, at_ms, 0), self.trigger
        trigger.admits(event, at_ms)
        self.now_ms = max(self.now_ms, at_ms)
        held = OrderedDict({Event(self.forming[0], at_ms, 0): None} if self.forming else {})
        if trigger.on_event(event, held, at_ms) == "before":
            self._release()
        first = Event(self.forming[0], at_ms, 0) if self.forming else event
        self.due = trigger.surely_before(first)
        return self.due

    def _release(self, *, by_clock: bool = False) -> None:
        self.released += len(self.forming)
        super()._release(by_clock=by_clock)
