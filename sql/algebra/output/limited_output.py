"""Output limits: the rows a statement emits when its condition holds.

An `OutputTrigger` decides when; a `LimitedRows` keeps the rows until then; a `LimitedOutput` is the two
together. Without a limit every step is emitted at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.algebra.output.last_valid import LastValid
from sql.algebra.output.limited_rows import LimitedRows, Snapshot
from sql.algebra.output.output_triggers import After, Always, CountedCondition, EveryEvents, OutputTrigger
from sql.emission import Out, Update
from sql.types import Saved

LimitState = tuple[Saved, Saved, tuple[int, int | None] | None, dict[str, int | None] | None, Saved]
"""The states of the condition and of the rows, what `after` still swallows, the counters of the end, and the
parameter that reads variables (earlier versions did not save it)."""


class LimitedOutput:
    """A condition and what it gives."""

    def __init__(
        self,
        condition: OutputTrigger,
        given: LimitedRows,
        after: After | None,
        at_end: CountedCondition | None = None,
        parameter: LastValid[Any] | None = None,
    ) -> None:
        """`parameter`: the one of the condition, if it reads variables again and again."""
        self.condition = condition
        self.at_end = at_end
        self.given = given
        self.after = after
        self.parameter = parameter
        self.samples = isinstance(given, Snapshot)
        self.forces = not isinstance(condition, EveryEvents | Always)
        """True if an output without rows is posted: by time and by expression, not by count."""

    def update(self, updates: Iterable[Update], now: int) -> list[tuple[tuple[list[Out], list[Out]], bool]]:
        """The outputs that the updates of one step cause, each with whether it is posted without rows too."""
        out = []
        for update in updates:
            # Without a condition `after` counts the rows, of which WHERE and HAVING have kept some back.
            came = len(update.new) if isinstance(self.condition, Always) else update.inserted
            if self.after is not None and not self.after.passes(came, now):
                continue
            if self.at_end is not None:
                self.at_end.counters.count(update)
            at_once = self.given.take(update, now)
            if at_once is not None:
                out.append((at_once, False))
            if self.given.waits and not self.condition.begins_with(update):
                continue
            if self.condition.on_update(update, now):
                out += [(rows, self.forces) for rows in self.fire(now)]
        return out

    def begin(self, now: int) -> None:
        """Count time from now on, or from the end of `after`, where no rows will come."""
        start = now if self.after is None else self.after.opens_ms
        if start is not None:
            self.condition.begin(start)

    def fire(self, now: int) -> list[tuple[list[Out], list[Out]]]:
        """The rows to emit now; the condition starts again."""
        rows = self.given.give()
        self.condition.done(now)
        if self.at_end is not None:
            self.at_end.counters.done(now)
        return [] if rows is None else [rows]

    def next_deadline(self) -> int | None:
        return self.condition.deadline()

    def advance(self, now: int) -> list[tuple[list[Out], list[Out]]]:
        """The output due at or before `now`."""
        return self.fire(now) if self.condition.advance(now) else []

    def terminate(self, now: int) -> list[tuple[list[Out], list[Out]]]:
        """The output at the end of the partition, if `when terminated` demands it."""
        if self.after is not None and self.after.opens_ms is not None and now < self.after.opens_ms:
            return []
        if self.at_end is None or not self.given.ends or not self.at_end.is_met():
            return []
        return self.fire(now)

    def snapshot(self) -> LimitState:
        after = None if self.after is None else (self.after.left, self.after.opens_ms)
        at_end = None if self.at_end is None else self.at_end.snapshot()
        parameter = None if self.parameter is None else self.parameter.snapshot()
        return self.condition.snapshot(), self.given.snapshot(), after, at_end, parameter

    def restore(self, state: LimitState) -> None:
        condition, given, after, at_end, *more = state
        if self.parameter is not None and more:
            self.parameter.restore(more[0])
        self.condition.restore(condition)
        self.given.restore(given)
        if self.after is not None and after is not None:
            self.after.left, self.after.opens_ms = after
        if self.at_end is not None and at_end is not None:
            self.at_end.restore(at_end)
