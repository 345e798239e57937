"""A running sampled rule: events and time go to its core, what the core shows becomes rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.event_store import EventStore
from sql.emission import Emission
from sql.engine.families import At, Kin
from sql.engine.indexable import without_first_condition
from sql.engine.query import Stateful
from sql.engine.sampled.sampled_state import SampledState
from sql.engine.sampled.window_family import WindowFamily


class SampledQuery(SampledState):
    """A rule with a window in GROUP BY. Its windows go through due instants by themselves:
    their bounds are nominal.

    `push` takes events of one instant, `push_timed` events with their own time stamps, in order. In event
    time results and errors come out in the order in which they happen; else the errors of a push follow its
    results.
    """

    steps_itself = True

    def family(self) -> Kin[SampledState] | None:
        """The family of all rules that differ from this one only in the first part of their first condition,
        and in the rows they show."""
        code = self.of_plan
        if not code.may_share:
            return None
        plan = without_first_condition(self.plan)
        return Kin(
            (code.signature_of(plan), plan.aggregates),
            lambda: WindowFamily(code.code_for_each(plan), is_timed=self.of_plan.is_timed),
        )

    # --- driving --------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.leave()
        self.begin(now_ms)
        self.now_ms = self.context.now_ms = now_ms
        places = [index for index, source in enumerate(self.plan.sources) if source.stream == stream]
        for part in (rows,) if len(places) == 1 else [(row,) for row in rows]:
            for index in places:
                self._enter(index, part, (now_ms,) * len(part) if self.of_plan.is_timed else now_ms)
        return self.take()

    def _enter(self, index: int, rows: Sequence[Any], at: At) -> None:
        """Events of one source, or rows of a table."""
        self.counts["events_in"] += len(rows)
        if self.join is None or index not in self.join.tables:
            self.core.enter(rows, at, index)
            return
        for row in rows:
            event = Event(self.join.one_sided(row, index), self.now_ms, self.core.next_number())
            self.join.tables[index].append(event)

    def push_timed(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        if self.plan.joins:
            return super().push_timed(stream, rows, times)
        if self.shared is not None:
            self.leave()
        self.begin(times[0])
        self.counts["events_in"] += len(rows)
        self.now_ms = max(self.now_ms, times[0])
        self.core.enter(rows, times)
        self.now_ms = max(self.now_ms, times[-1])
        return self.take()

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = max(self.now_ms, now_ms)
        self.begin(now_ms)
        if self.analytic is not None:
            self.analytic.keep()
        self.present_core.step(now_ms)
        self.read_inbox(now_ms)
        return self.take()

    def flush(self, now_ms: int) -> list[Emission]:
        self.leave()
        self.begin(now_ms)
        self.core.flush()
        return self.take()

    def take(self) -> list[Emission]:
        """The emissions since the last call, errors last."""
        if self.hits is not self.of_plan.hits:
            self.hits.restore(self.of_plan.hits.snapshot())
        if not self.out and not self.errors:
            return []
        out = self.out + self.errors if self.errors else self.out.copy()
        self.out.clear()
        self.errors.clear()
        return out

    # --- state ----------------------------------------------------------------------------------------------

    def retained(self) -> int:
        return self.present_core.retained()

    def held(self) -> Iterable[Event]:
        """Every event the state refers to."""
        return self.core.held()

    def counters(self) -> dict[str, int]:
        return {
            **self.counts,
            "division_by_zero": self.of_plan.warnings.division_by_zero,
            "retained": self.retained(),
        }

    @property
    def kept(self) -> dict[str, Stateful | None]:
        own = {"budget": self.budget, "analytic": self.analytic, "hits": self.hits}
        return {**own, "spreads": self.output.spreads}

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data, events in blocks: they never change once they are here."""
        store = EventStore()
        store.add(self.held())
        return {
            **self.head(),
            "seq": self.seq,
            "start": self.context.start_ms,
            "state": self.state(),
            "events": store.in_blocks(self.holder),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.restore_head(snapshot)
        store = EventStore()
        store.unpack(snapshot["events"], self.make_row)
        self.seq, self.context.start_ms = snapshot["seq"], snapshot["start"]
        self.leave()
        self.core.unpack(snapshot["state"], store)
