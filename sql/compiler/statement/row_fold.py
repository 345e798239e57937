"""The fold of `into table` from a stream without windows: the group of an event is the row of its key.

g = get(key)
accumulators = g.accumulators
acc_0 = accumulators[0]
acc_0.add(f_0, x)
"""

from __future__ import annotations

from collections.abc import Sequence

from sql.aggregates.base import Removal
from sql.algebra.fold import Fold
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.plan.logical import Plan


class RowFold(Fold):
    """Writes the rows that one statement counts in. The accumulators of a row are in locals while an event
    counts."""

    def __init__(self, plan: Plan, places: Sequence[int]) -> None:
        """`places`: for each aggregate the place of its accumulator in a row."""
        super().__init__(plan, Removal.ANY)
        self.places = places
        calls = [part.call for part in self.kept.accumulated.values()]
        self.needs_event = any(call.distinct or not call.definition.invertible for call in calls)
        """True if some accumulator may keep the event that a value came with."""
        self.is_grouped, self.can_reclaim, self.owner = True, False, ""

    def write_state(self, source: SourceWriter, groups: str = "", whole: str = "") -> None:
        source.line("table = q.into.table")
        source.line("get = table.rows.by_key.get")
        source.line("wrote = table.bounded.wrote if table.bounded.is_kept else None")
        source.line("table.version += 1")
        source.line("stamp = next(table.rows.stamps)")
        if not self.needs_event:
            source.line("x = None")

    def _write_group(self, loop: LoopWriter, event: str, name: str = "g") -> None:
        loop.line("g = get(key)")
        values = ", ".join(loop.value(node) for node in self.plan.group_by)
        with loop.source.block("if g is None:"):
            loop.line(f"g = table.row_for([{values}], now)")
        loop.line("accumulators = g.accumulators")
        for place in self.kept.accumulated:
            loop.line(f"acc_{place} = accumulators[{self.places[place]}]")

    def _write_checks(self, loop: LoopWriter, owner: str) -> None:
        for part in self.kept.checked:
            part.check(loop, "")

    def enter(self, loop: LoopWriter, owner: str = "") -> None:
        if self.needs_event:
            loop.line("x = table.rows.numbered(x)")
        for part in self.kept.parts:
            part.write(loop, "", enters=True)
        loop.line("g.stale = True")
        loop.line("g.stamp = stamp")
        with loop.source.block("if wrote is not None:"):
            loop.line("wrote(g, now)")
