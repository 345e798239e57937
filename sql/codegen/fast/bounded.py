"""Windows that keep their events, or values of them, on generated code too: bounded by `maxWindowEvents`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

from sql.codegen.fast.grouped import GroupedQuery
from sql.codegen.functions import DATA_ERRORS, EventFunction
from sql.errors import DataError
from sql.windows.event import Event


class BoundedQuery(GroupedQuery):
    """What such windows have in common, before the window itself in the order of bases."""

    counts_dropped = True

    @property
    def signature(self) -> Any:
        """None: each rule keeps what it keeps, within its own bound."""
        return None

    def gather(self, rows: Sequence[Any], times: Iterable[int] | None = None) -> None:
        if self.budget.takes(self, len(rows)):
            super().gather(rows, times)
            return
        for row, at_ms in zip(rows, repeat(self.now_ms) if times is None else times, strict=False):
            if self.reads_times:
                self.step_to(at_ms)
            if self._fits(row, at_ms):
                super().gather((row,), (at_ms,) if self.reads_times else None)

    @cached_property
    def passes(self) -> EventFunction | None:
        """FILTER for a single event."""
        return None if self.window.filter is None else self.functions.true(self.window.filter)

    def _fits(self, row: Any, at_ms: int) -> bool:
        """Whether the window may take one more event; of one that FILTER drops, the loop finds out."""
        try:
            if self.passes is not None and not self.passes(Event(row, at_ms, 0)):
                return True
        except DATA_ERRORS:
            return True
        try:
            self.budget.admit(self)
        except DataError as error:
            self.fail(row, error)
            return False
        return True
