"""A running sampled rule: events and time go to its core, what the core shows becomes rows.

While a rule shares groups with others (`sql.engine.sampled.shared_groups`) its own core is empty. What the
shared core finds when a window closes lies in the rule's inbox until the rule's own timer fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sql.algebra.budget import Budget
from sql.algebra.derived.analytic import analytic_stage
from sql.algebra.event_store import EventStore
from sql.algebra.output.row_order import Spreads, in_order
from sql.algebra.row_blocks import new_holder
from sql.algebra.sample.content import Sample
from sql.algebra.sample.core import Core
from sql.algebra.sample.sampled_rows import Bad, CommonRows, Made
from sql.algebra.sample.source_join import SourceJoin
from sql.codegen.hits import HitCounters
from sql.codegen.source import Generated
from sql.compiler.shared_code import Environment, InstanceData
from sql.emission import Emission
from sql.engine.query import Running, RunningQuery, Stateful
from sql.engine.sampled.sampled_code import SampledCode
from sql.errors import positioned

# --- what several rules find together -----------------------------------------------------------------------

Pairs = list[tuple[Any, Sequence[Any]]]
"""Each group's first entry and the values of aggregates."""


@dataclass(slots=True)
class Closing:
    """The content of a window [start, end) when it closed: the groups with the aggregates of all."""

    start_ms: int
    end_ms: int
    pairs: Pairs
    picked: dict[tuple[int, ...], Pairs] = field(default_factory=dict)
    made: Made = field(default_factory=dict)

    def of(self, places: tuple[int, ...]) -> Pairs:
        """The groups with the aggregates at these places."""
        found = self.picked.get(places)
        if found is None:
            found = self.picked[places] = [
                (entry, [values[place] for place in places]) for entry, values in self.pairs
            ]
        return found


@dataclass(slots=True)
class Failure:
    """An event that failed in a line of `code` that all rules have in common."""

    row: Any
    error: BaseException
    at_ms: int
    code: Generated


News = Closing | Failure | None
"""None: from here on the errors of earlier closings may be reported."""


class Sharing(Protocol):
    """The groups that several rules share."""

    core: Core

    def leave(self, member: SampledQuery) -> None: ...
    def state_of(self, member: SampledQuery) -> dict[str, Any]: ...


# --- one rule -----------------------------------------------------------------------------------------------


class SampledQuery(RunningQuery, Running):
    """A rule with a window in GROUP BY: one instance of its compiled text, with its core, or its part of
    shared groups. Its windows go through due instants by themselves: their bounds are nominal.

    `push` takes events of one instant, `push_timed` events with their own time stamps, in order. In event
    time results and errors come out in the order in which they happen; else the errors of a push follow its
    results.
    """

    steps_itself = True

    def __init__(self, code: SampledCode, env: Environment) -> None:
        plan = code.plan
        super().__init__(env.name, plan, env.now_ms)
        self.holder = new_holder()
        self.code = code
        self.instance_data = InstanceData(code, env)
        self.hits = code.hits if env.partition is None else HitCounters(plan.hits)
        self.begin(env.now_ms)
        self.context, self.catalog = code.context, code.catalog
        self.shape, self.make_row = code.shape, code.make_row
        self.analytic = analytic_stage(plan, code.functions)
        self.budget = Budget(plan.options.max_window_events, self.retained)
        self.output = SampleOutput(self)
        self.join: SourceJoin | None = None
        if code.join is not None:
            self.join = SourceJoin(code.join, env.catalog.relations, self.output.failed)
        see, many = None if self.analytic is None else self.analytic.see, env.partition is not None
        self.core = Core(
            code.core,
            self.output,
            self.now_ms,
            see=see,
            join=self.join,
            budget=self.budget,
            is_one_of_many=many,
        )
        """The windows of the rule alone."""
        self.shared: Sharing | None = None
        self.inbox: deque[News] = deque()
        self.places: tuple[int, ...] = ()
        """The places of the rule's aggregates among those of the shared groups."""
        self.common: CommonRows | None = None
        """The rule's rows among those that all make, while it shares groups."""

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: point the shared functions at its values."""
        if self.instance_data.partition is None:
            return
        self.instance_data.install(now_ms)
        if self.plan.hits:
            self.code.hits.restore(self.hits.snapshot())

    # --- sharing --------------------------------------------------------------------------------------------

    @property
    def signature(self) -> Hashable | None:
        """Equal for rules that may share groups; None for a rule that always works alone."""
        return self.code.signature

    @property
    def present_core(self) -> Core:
        """The core that has the rule's groups."""
        return self.core if self.shared is None else self.shared.core

    def state(self) -> dict[str, Any]:
        """The state of the groups, its own or its part of those that are shared."""
        return self.core.pack() if self.shared is None else self.shared.state_of(self)

    def enlist(self, shared: Sharing, places: tuple[int, ...]) -> None:
        """Show what shared groups find from now on; the rule's aggregates are at these places in it."""
        self.core.begin(self.now_ms)
        self.shared, self.places = shared, places
        self.common = CommonRows(self.code.sampled_rows, places)

    def leave(self) -> None:
        """Work alone from now on, with a copy of the groups that it shared with other rules."""
        if self.shared is not None:
            self.shared.leave(self)

    def read_news(self, now_ms: int) -> list[Emission]:
        """The results of shared groups for this rule up to now."""
        self.now_ms = self.context.now_ms = now_ms
        self.read_inbox(now_ms)
        return self.take()

    def read_inbox(self, until_ms: int) -> None:
        """Show the windows that have ended, and report the errors before."""
        while self.inbox:
            item = self.inbox[0]
            if isinstance(item, Closing):
                if item.end_ms > until_ms:
                    break
                self.context.now_ms = item.end_ms
                pairs = item.of(self.places)
                self.output.make_rows(pairs, item.start_ms, item.end_ms, item.end_ms, item.made)
            elif item is None:
                self.output.done()
            else:
                self.output.fail(item.row, item.error, item.at_ms, item.code)
            self.inbox.popleft()

    def next_deadline(self) -> int | None:
        for item in self.inbox:
            if isinstance(item, Closing):
                return item.end_ms
        return self.present_core.instances.next_deadline()

    # --- driving --------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.leave()
        self.begin(now_ms)
        self.now_ms = self.context.now_ms = now_ms
        places = [index for index, source in enumerate(self.plan.sources) if source.stream == stream]
        for part in (rows,) if len(places) == 1 else [(row,) for row in rows]:
            for index in places:
                self.counts["events_in"] += len(part)
                if self.join is None or index not in self.join.tables:
                    self.core.enter(part, (now_ms,) * len(part) if self.code.is_timed else now_ms, index)
                else:
                    for row in part:
                        self.join.keep(index, row, now_ms, self.core.next_number())
        return self.take()

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
        if self.present_core.instances.due_ms <= now_ms:
            self.present_core.step(now_ms)
        self.read_inbox(now_ms)
        return self.take()

    def flush(self, now_ms: int) -> list[Emission]:
        self.leave()
        self.begin(now_ms)
        self.core.flush()
        return self.take()

    def take(self) -> list[Emission]:
        if self.hits is not self.code.hits:
            self.hits.restore(self.code.hits.snapshot())
        return super().take()

    # --- state ----------------------------------------------------------------------------------------------

    def retained(self) -> int:
        return self.present_core.retained()

    def counters(self) -> dict[str, int]:
        return {**self.counts, "division_by_zero": self.code.warnings.division_by_zero}

    @property
    def kept(self) -> dict[str, Stateful | None]:
        own = {"budget": self.budget, "analytic": self.analytic, "hits": self.hits}
        return {**own, "spreads": self.output.spreads}

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data, events in blocks: they never change once they are here."""
        store = EventStore()
        store.add(self.core.held())
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


class SampleOutput:
    """The owner of the core of `query`, which calls it with what is shown and what fails."""

    def __init__(self, query: SampledQuery) -> None:
        code = query.code
        self.query = query
        self.code = code
        self.plan, self.is_timed = code.plan, code.is_timed
        query.counts["windows_empty_skipped"] = 0
        self.spreads = Spreads(self.plan.spreads) if self.plan.spreads else None
        self.is_plain = not self.plan.orders_rows

    def shown(self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int) -> Sequence[Any]:
        rows = self.make_rows(sample, start_ms, end_ms, trigger_ms)
        if self.is_timed and not self.query.core.is_stepping:
            self.done()
        return rows

    def make_rows(
        self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int, made: Made | None = None
    ) -> list[Any]:
        """The rows of a window, emitted; those that cannot be made are errors. `made`: rows that other rules
        have made of the same sample."""
        bad: Bad = []
        bounds = (start_ms, end_ms, trigger_ms)
        common = self.query.common
        rows = None if common is None or made is None else common.of(sample, made, *bounds)
        if rows is None:
            rows = self.code.sampled_rows.rows(sample, *bounds, bad)
        if not self.is_plain:
            rows = in_order(rows, self.plan, self.code.row_limit, self.spreads)
        if rows:
            self.query.out.append(Emission(self.query.name, trigger_ms, "rows", rows, (), None))
        for row, error in bad:
            self.query.errors.append(self.failure(row, error, trigger_ms, self.code.sampled_rows.code))
        return rows

    def failed(self, row: object, error: BaseException, at_ms: int) -> None:
        if self.query.analytic is not None:
            self.query.analytic.drop(row)
        self.fail(row, error, at_ms, self.code.core.code)

    def fail(self, row: object, error: BaseException, at_ms: int, code: Generated) -> None:
        """Count an error in generated text, and emit it."""
        is_in_order = self.is_timed and not self.query.core.is_stepping
        failures = self.query.out if is_in_order else self.query.errors
        failures.append(self.failure(row, error, at_ms, code))

    def failure(self, row: object, error: BaseException, at_ms: int, code: Generated) -> Emission:
        """Count what a generated text could not evaluate; its emission."""
        line = code.line_of(error)
        own = self.code.sampled_rows.code if code is self.code.sampled_rows.code else self.code.core.code
        span = None if line is None else own.spans.get(line)
        known = (
            self.code.functions.failure(error) if span is None else positioned(error, span, self.plan.text)
        )
        return self.query.error_of(row, str(known), at_ms)

    def skipped(self, windows: int) -> None:
        self.query.counts["windows_empty_skipped"] += windows

    def done(self) -> None:
        """In event time the errors of samples stand behind the rows of their instant."""
        if self.is_timed and self.query.errors:
            self.query.out += self.query.errors
            self.query.errors.clear()
