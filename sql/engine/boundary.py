"""The boundary of rules: what no rule should raise costs that rule its rows, and no other rule anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sql.emission import Emission
from sql.engine.families import At
from sql.engine.filter_index import FilterIndex
from sql.engine.sharing import Defect, first_of
from sql.engine.timers import Timers

Collect = Callable[[list[Emission]], list[Emission]]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Calls rules and notes their new deadlines. `defect` takes what one raises; its timers rest until it is
    called without one."""

    timers: Timers
    defect: Defect

    def call(
        self, name: str, rows: Sequence[Any], now_ms: int, act: Callable[[], list[Emission]]
    ) -> list[Emission]:
        """The emissions of one rule that acts, on these rows."""
        try:
            out = act()
        except Exception as error:  # noqa: BLE001 - the rule boundary
            return self.defect(name, rows, now_ms, error)
        self.timers.suspended.discard(name)
        self.timers.schedule(name)
        return out

    def feed(
        self, index: FilterIndex, stream: str, rows: Sequence[Any], at: At, collect: Collect | None = None
    ) -> list[Emission]:
        """Events for the rules of their stream that can match them; `collect` takes the emissions of rules
        whose rows move on, and gives what is left of them."""
        out: list[Emission] = []
        suspended, schedule = self.timers.suspended, self.timers.schedule
        for entry, mine, times in index.route(rows, at, out):
            rested: set[str] = set()
            if suspended:
                rested = suspended.intersection([query.name for query in entry.queries])
                suspended.difference_update(rested)
            before = len(out)
            try:
                woken = entry.query.push_into(entry.type or stream, mine, times, out)
            except Exception as error:  # noqa: BLE001 - the rule boundary
                for query in entry.queries:
                    out += self.defect(query.name, mine, first_of(times), error)
                continue
            if collect is not None and not entry.emits_as_made:
                out[before:] = collect(out[before:])
            for name in (*woken, *rested) if rested else woken:
                schedule(name)
        if index.columns:
            for name in index.take_woken():
                suspended.discard(name)
                schedule(name)
        return out
