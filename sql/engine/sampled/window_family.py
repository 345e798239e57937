"""Families of rules over tumbling or hopping windows, which differ in the value that they demand of a column
and in the rows they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sql.algebra.sample.core import Core
from sql.codegen.source import Generated
from sql.emission import Emission
from sql.engine.families import At, Family, FamilyKind
from sql.engine.indexable import without_first_condition
from sql.engine.sampled.sampled_query import SampledQuery

UNCOUNTED_MAX = 10_000
"""After so many events rules with windows are given their number."""


def window_family_of(query: SampledQuery) -> FamilyKind[SampledQuery] | None:
    """The family of all rules that differ from this one only in the first part of their first condition,
    and in the rows they show."""
    code = query.code
    if not code.may_share:
        return None
    plan = without_first_condition(query.plan)
    signature = code.signature_of(plan), plan.aggregates
    return FamilyKind(signature, lambda: WindowFamily(code.code_for_each(plan), is_timed=code.is_timed))


class WindowFamily(Family[SampledQuery, Core]):
    """Rules over tumbling or hopping windows; the loop is given their cores."""

    def __init__(self, code: Generated, *, is_timed: bool) -> None:
        """`code` has the loop. `is_timed`: it takes the instant of each event, and does what is due
        among them."""
        super().__init__()
        self.enter = code["enter_each"]
        self.is_timed = is_timed
        self.uncounted = 0
        """The number of events that the rules have not counted yet."""
        self.last_ms: dict[Core, int] = {}
        """The instant of the newest of them."""
        self.counted: Counter[str] = Counter()
        """By rule the events that it has counted since the last reconciling."""
        self.batch: dict[Core, None] = {}
        """The cores whose events have come together."""
        self.touched: set[Core] = set()
        """Cores of the batch that may have emitted rows."""
        self.moved: set[Core] = set()

    def given_for(self, query: SampledQuery) -> Core:
        return query.core

    def run(self, given: list[Core], rows: Sequence[Any], at: At, out: list[Emission]) -> None:
        self.batch = dict.fromkeys(given)
        if self.is_timed and isinstance(at, int):
            at = (at,) * len(given)
        self.last_ms.update(dict.fromkeys(given, at) if isinstance(at, int) else zip(given, at, strict=True))
        self.enter(self, given, rows, at)
        self.moved.update([core for core in self.batch if core.has_moved])
        if self.touched:
            for core in sorted(self.touched, key=list(self.queries).index):
                out += self.queries[core].take()
            self.touched.clear()
        self.uncounted += len(given)
        if self.uncounted >= UNCOUNTED_MAX:
            self._count()

    # --- what the loop calls --------------------------------------------------------------------------------

    def earliest(self) -> float:
        """The instant before which nothing is due in a window of the batch."""
        return min(core.instances.due_ms for core in self.batch)

    def step(self, at_ms: int) -> float:
        """Do what is due in the windows of the batch; when something is due next."""
        for core in self.batch:
            if core.instances.due_ms <= at_ms:
                core.step(at_ms)
                self.touched.add(core)
        return self.earliest()

    def again(self, core: Core, row: object, at_ms: int) -> None:
        """An event has failed: its rule's own code does it again, and reports it."""
        core.enter((row,), (at_ms,) if self.is_timed else at_ms)
        self.touched.add(core)

    # --- counts for the rules -------------------------------------------------------------------------------

    def take_woken(self) -> list[str]:
        names = [self.queries[core].name for core in self.moved]
        for core in self.moved:
            core.has_moved = False
        self.moved.clear()
        return names

    def _count(self) -> None:
        """Give the rules the number of events that have come, so that their contents fold them in time."""
        for core, count in self.met.items():
            query = self.queries[core]
            query.now_ms = max(query.now_ms, self.last_ms[core])
            self.counted[query.name] += count
            core.content.note_came(count, core.all)
        self.met.clear()
        self.last_ms.clear()
        self.uncounted = 0

    def reconcile(self) -> dict[str, int]:
        self._count()
        counted, self.counted = self.counted, Counter()
        return counted
