"""Hit counters: the number of times a clause was met before, and the last time (`last_hit_count`,
`last_hit_time`).

All counters of one clause count the same, so the state is one `Hits` per clause. Generated code reads it; the
evaluation of the clause records the hit afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from sql.plan.bound import HitCall
from sql.types import Saved


class Hits:
    """The hits of one clause. `time_ms` is 0 before the first, so that `event_time() -
    last_hit_time()` is large."""

    __slots__ = ("count", "time_ms")

    def __init__(self) -> None:
        self.count = 0
        self.time_ms = 0

    def note(self, time_ms: int) -> None:
        """Record a hit of the clause at `time_ms`."""
        self.count += 1
        self.time_ms = time_ms


class HitCounters:
    """The hits of a query by clause; only clauses with a hit function have a counter."""

    def __init__(self, calls: Iterable[HitCall]) -> None:
        self.calls = tuple(calls)
        self.by_clause = {call.clause: Hits() for call in self.calls}

    def of(self, index: int) -> tuple[Hits, str]:
        """The source of the call at `index` of the plan: the hits, and the attribute that it reads."""
        call = self.calls[index]
        return self.by_clause[call.clause], call.attribute

    def snapshot(self) -> Saved:
        """The state by clause."""
        return {clause: [hits.count, hits.time_ms] for clause, hits in self.by_clause.items()}

    def restore(self, state: Saved) -> None:
        """Put a snapshot back."""
        for clause, (count, time_ms) in state.items():
            self.by_clause[clause].count, self.by_clause[clause].time_ms = count, time_ms
