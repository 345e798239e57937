"""A running statement: EPL statements and stream queries on their compiled text.

Events enter through the compiled loop, or as deltas of the sources (`sql.engine.running.statement_sources`)
where several things change in one step. They are folded into groups (`sql.engine.running.groups`),
and rows leave through the output (`sql.engine.running.statement_output`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.budget import Budget
from sql.algebra.derived.analytic import AnalyticStage
from sql.algebra.event import Delta, Event
from sql.algebra.join.passing import sides_of
from sql.algebra.operator import earliest
from sql.algebra.row_blocks import new_holder
from sql.catalog.streams import Catalog
from sql.codegen.hits import HitCounters
from sql.compiler.program import Program
from sql.emission import Emission
from sql.engine.relations.into import TableFold
from sql.engine.running import statement_state
from sql.engine.running.content_reader import ContentReader
from sql.engine.running.earlier_events import EarlierEvents
from sql.engine.running.groups import Groups
from sql.engine.running.matches import is_plain, show_matches
from sql.engine.running.recognized import is_alone, read_rows
from sql.engine.running.requests import Requests
from sql.engine.running.running_query import MakeRow, RunningQuery
from sql.engine.running.statement_output import Output
from sql.engine.running.statement_sources import Change, Sources


class RunningStatement(RunningQuery):
    """One instance of a compiled statement."""

    steps_itself = False
    takes_lots = False
    takes_times = False
    """True if events may be given with their own instants, many at a time."""

    def __init__(
        self,
        name: str,
        program: Program,
        now_ms: int,
        make_row: MakeRow | None = None,
        partition: Sequence[Any] | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """`partition`: the properties of the context partition that the instance belongs to, and `catalog`
        with what that partition has for itself; else it is that of the program."""
        super().__init__(name, program.plan, now_ms)
        plan, text = program.plan, program.text
        self.program = program
        self.partition = partition
        self.catalog = program.catalog if catalog is None else catalog
        self.own = program.catalog.own.found(self.catalog.variables, self.catalog.relations)
        self.context = program.context
        self.shape = program.shape
        self.make_row = make_row or (lambda row: row)
        self.holder = new_holder()
        self.start_ms = now_ms
        self.code = text.code
        self.loops = {stream: self.code[name] for stream, name in text.loops.items()}
        self.analytic: AnalyticStage | None = None
        self.answers: Sequence[Any] = ()
        self.is_one_of_many = partition is not None or bool(plan.subqueries)
        """True if the program's functions read things that each instance has for itself."""
        self.begin(now_ms)
        self.sources = Sources(
            self, lambda inner: RunningStatement(name, inner, now_ms, None, partition, self.catalog)
        )
        if self.sources.subqueries is not None:
            self.answers = self.sources.subqueries.answers
            self.begin(now_ms)
        self.windows = self.sources.windows
        self.plain = self.sources.matches[0] if is_plain(plan) else None
        """The pattern, where each match is a row and nothing else happens."""
        self.recognized = self.sources.recognized[0] if is_alone(plan) else None
        """The match_recognize, where the events of one stream go to it and nowhere else."""
        self.groups = Groups(text, program.shared_accumulators())
        self.budget = Budget(plan.options.max_window_events, self.retained)
        self.hits = HitCounters(plan.hits)
        if plan.analytics:
            self.analytic = AnalyticStage(plan.analytics, program.functions, plan.options.max_groups)
        self.earlier = EarlierEvents(text, program.functions, self.windows)
        self.into = TableFold(self) if plan.into_table is not None else None
        self.content = ContentReader(self)
        asks = any(spread.kind == "requests" for spread in plan.spreads)
        self.output = Requests(self) if asks else Output(self)

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: time, partition and answers in its program are this instance's."""
        if self.is_one_of_many:
            self.program.begin(now_ms, self.partition, self.own, self.answers)
        else:
            self.context.now_ms = now_ms

    # --- events ---------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one stream arrive, in order, at `now_ms`. Everything due by then has been done."""
        self.now_ms = now_ms
        self.begin(now_ms)
        self.counts["events_in"] += len(rows)
        loop = self.loops.get(stream)
        if loop is not None:
            loop(self, rows, now_ms)
        elif self.plain is not None:
            show_matches(self, self.plain, stream, rows, now_ms)
        elif self.recognized is not None:
            read_rows(self, self.recognized, rows, now_ms)
        else:
            for row in rows:
                self.step(self.sources.enter(stream, row, now_ms), now_ms)
        return self.take()

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed, all of them before anything is computed from one."""
        self.now_ms = now_ms
        self.begin(now_ms)
        self.counts["events_in"] += sum(len(delta.inserted) for delta in changes.values())
        self.step(self.sources.fed(changes, now_ms), now_ms)
        return self.take()

    def fill(self, *, posts: bool = False) -> list[Emission]:
        """Start from the present rows of the named windows; what that gives where it is to be posted."""
        self.begin(self.now_ms)
        if posts:
            self.step(self.sources.present(), self.now_ms)
            return self.take()
        for delta in self.sources.present():
            self.change(delta, [], [])
        self.output.updates.clear()
        self.take()
        return []

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        """An event arrives: filters that read relations are evaluated before any
        statement has acted on it."""
        self.now_ms = now_ms
        self.begin(now_ms)
        self.sources.arriving(stream, row, now_ms)

    def step(self, deltas: Iterable[Change], now_ms: int) -> None:
        """All changes of one step, then its output."""
        new: list[Any] = []
        old: list[Any] = []
        for delta in deltas:
            self.change(delta, new, old)
        self.output.end_step(now_ms, new, old)

    def change(self, delta: Change, new: list[Any], old: list[Any]) -> None:
        """One change, through the text: its rows go to `new` and `old`, or as an update to the output."""
        if not isinstance(delta, Delta):
            self.code["join"](self, *sides_of(delta, len(self.windows)), self.now_ms, new)
            return
        if self.sources.starts_anew:
            self.groups.reset()
        if self.into is not None:
            collects = self.program.text.show.collects
            self.into.change(delta, [] if collects else new, [] if collects else old)
        elif self.program.text.show.collects:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms)
        else:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms, new, old)

    def fail(self, row: object, error: BaseException) -> None:
        """An event could not be evaluated."""
        if self.analytic is not None:
            self.analytic.drop(row)
        self.tell(row, self.program.functions.failure(error, self.code))

    # --- time -----------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """The earliest instant at which `advance` has something to do."""
        if self.sources.late or self.output.is_pending:
            return self.now_ms  # at the next advance of time
        return earliest((self.sources.next_deadline(), self.output.next_deadline()))

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due at or before `now_ms`, once, by due times; at one instant windows before output."""
        self.now_ms = max(self.now_ms, now_ms)
        if self.analytic is not None:
            self.analytic.keep()
        self.begin(self.now_ms)
        if self.sources.subqueries is not None:
            self.sources.subqueries.advance(now_ms)
        new, old = list[Any](), list[Any]()
        for delta in self.sources.late_changes():
            self.change(delta, new, old)
        while True:
            due, tick = self.sources.next_due(), self.output.next_deadline()
            if due is not None and due[0] <= now_ms and (tick is None or due[0] <= tick):
                for delta in self.sources.due(due[1], due[2], now_ms):
                    self.change(delta, new, old)
            elif tick is not None and tick <= now_ms:
                self.output.tick_after(new, old, now_ms)
            else:
                break
        if self.output.is_pending:
            self.output.tick_after(new, old, now_ms)
        self.output.end_step(now_ms, new, old, is_timer=True)
        self.output.advance(now_ms)
        return self.take()

    def terminate(self, now_ms: int) -> list[Emission]:
        """The context partition of the instance ends: the output of `when terminated`.
        Nothing comes after it."""
        self.now_ms = max(self.now_ms, now_ms)
        self.begin(self.now_ms)
        self.output.terminate(now_ms)
        return self.take()

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended."""
        return self.output.flush(now_ms)

    def variable_changed(self, name: str) -> None:
        """A variable has a new value; what that causes is posted at the next advance of time."""
        self.sources.variable_changed(name, self.now_ms)
        self.output.variable_changed()

    # --- looking --------------------------------------------------------------------------------------------

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the content between two steps; of a batch window what it collects."""
        self.begin(now_ms)
        return self.content.read()

    def counters(self) -> dict[str, int]:
        """The counters."""
        warnings = self.program.warnings
        counts = {**self.counts, "division_by_zero": warnings.division_by_zero, "retained": self.retained()}
        if warnings.several_rows:
            counts["several_rows"] = warnings.several_rows
        for machine in self.sources.machines:
            for name, count in machine.counters().items():
                counts[name] = counts.get(name, 0) + count
        return counts

    # --- state ----------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        """Every event the state refers to."""
        return statement_state.held(self)

    def retained(self) -> int:
        """The number of events the statement holds, or of which it holds what they contributed."""
        return statement_state.retained(self)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data."""
        self.begin(self.now_ms)  # an output limit may have rows still to make
        return statement_state.snapshot(self)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back into an instance just made; CorruptState where it does not fit."""
        statement_state.restore(self, snapshot)
