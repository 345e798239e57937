"""A running statement: EPL statements and stream queries on their compiled text.

Events enter through the compiled loop, or as deltas of the sources (`sql.engine.running.statement_sources`) where
several things change in one step. Rows leave through the output (`sql.engine.running.statement_output`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sql.algebra.budget import Budget
from sql.algebra.derived.analytic import AnalyticStage
from sql.algebra.derived.prevs import FixedValues, PrevReader, PriorMemory
from sql.algebra.event import Delta, Event
from sql.algebra.join.passing import sides_of
from sql.algebra.key import Reclaim
from sql.algebra.operator import earliest
from sql.catalog.streams import Catalog
from sql.codegen.hits import HitCounters
from sql.compiler.program import Program
from sql.emission import Emission
from sql.engine.relations.into import TableFold
from sql.engine.running import statement_state
from sql.engine.running.content_reader import ContentReader
from sql.engine.running.matches import is_plain, show_matches
from sql.engine.running.recognized import is_alone, read_rows
from sql.engine.running.requests import Requests
from sql.engine.running.running_query import MakeRow, RunningQuery
from sql.engine.running.statement_output import Output
from sql.engine.running.statement_sources import Change, Sources
from sql.errors import positioned


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
        plan = program.plan
        self.program = program
        self.partition = partition
        self.catalog = program.catalog if catalog is None else catalog
        self.own = program.catalog.own.found(self.catalog.variables, self.catalog.relations)
        self.context = program.context
        self.shape = program.shape
        self.make_row = make_row or (lambda row: row)
        self.start_ms = now_ms
        self.code = program.text.code
        self.loops = {stream: self.code[name] for stream, name in program.text.loops.items()}
        self.analytic: AnalyticStage | None = None
        self.answers: Sequence[Any] = ()
        self.is_one_of_many = partition is not None or bool(plan.subqueries)
        """True if the program's functions read things that each instance has for itself."""
        self.begin(now_ms)
        self.sources = Sources(self)
        if self.sources.subqueries is not None:
            self.answers = self.sources.subqueries.answers
            self.begin(now_ms)
        self.windows = self.sources.windows
        self.plain = self.sources.matches[0] if is_plain(plan) else None
        """The pattern, where each match is a row and nothing else happens."""
        self.recognized = self.sources.recognized[0] if is_alone(plan) else None
        """The match_recognize, where the events of one stream go to it and nowhere else."""
        self.groups: dict[Any, Any] = {}
        self.whole = None if program.text.fold.is_grouped else self.code["Group"](())
        self.budget = Budget(plan.options.max_window_events)
        self.hits = HitCounters(plan.hits)
        if plan.analytics:
            self.analytic = AnalyticStage(plan.analytics, program.functions, plan.options.max_groups)
        self.prevs = PrevReader(plan, program.functions, self.windows, self.priors) if plan.prevs else None
        self.prior = PriorMemory(plan) if program.text.earlier.notes_prior else None
        depth = program.text.earlier.depth or 1
        self.recent: deque[Any] = deque(maxlen=depth)
        """The newest rows, and in `older` those that left the queue last, where
        `prior` is read in the text."""
        self.older: deque[Any] = deque(maxlen=depth)
        self.queue: list[Event] = []
        """The content of the queue while it is shown, and in `places` where each event stands; else empty."""
        self.places: dict[Event, int] = {}
        self.shared = program.shared_accumulators()
        self.representatives: dict[Any, Event] = {}
        hint = plan.sources[0].reclaim_ms if plan.keeps_groups else None
        self.reclaim = Reclaim(*hint) if hint else None
        self.into = TableFold(self) if plan.into_table is not None else None
        self.content = ContentReader(self)
        asks = any(spread.kind == "requests" for spread in plan.spreads)
        self.output = Requests(self) if asks else Output(self)

    def looking(self, program: Program) -> RunningStatement:
        """A subquery as a statement of its own, which only looks into named windows."""
        return RunningStatement(self.name, program, self.start_ms, None, self.partition, self.catalog)

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: time, partition and answers in its program are this instance's."""
        if self.is_one_of_many:
            self.program.begin(now_ms, self.partition, self.own, self.answers)
        else:
            self.context.now_ms = now_ms

    # --- events ---------------------------------------------------------------------------------------------

    def new_event(self, row: object, time_ms: int) -> Event:
        """An event with the next number."""
        self.seq += 1
        return Event(row, time_ms, self.seq)

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
                self._step(self.sources.enter(stream, row, now_ms), now_ms)
        return self.take()

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed, all of them before anything is computed from one."""
        self.now_ms = now_ms
        self.begin(now_ms)
        self.counts["events_in"] += sum(len(delta.inserted) for delta in changes.values())
        self._step(self.sources.fed(changes, now_ms), now_ms)
        return self.take()

    def fill(self, *, posts: bool = False) -> list[Emission]:
        """Start from the present rows of the named windows; what that gives where it is to be posted."""
        self.begin(self.now_ms)
        if posts:
            self._step(self.sources.present(), self.now_ms)
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

    def _step(self, deltas: Iterable[Change], now_ms: int) -> None:
        """All changes of one step, then its output."""
        new: list[Any] = []
        old: list[Any] = []
        for delta in deltas:
            self.change(delta, new, old)
        self.output.end_step(now_ms, new, old)

    def joined(self, events: Sequence[Event], now_ms: int) -> None:
        """The rows that one event makes: those of the join that it drives, or of the matches that it
        completes."""
        self._step((Delta(events),) if events else (), now_ms)

    def change(self, delta: Change, new: list[Any], old: list[Any]) -> None:
        """One change, through the text: its rows go to `new` and `old`, or as an update to the output."""
        if not isinstance(delta, Delta):
            self.code["join"](self, *sides_of(delta, len(self.windows)), self.now_ms, new)
            return
        if self.sources.starts_anew:
            self.reset()
        if self.into is not None:
            collects = self.program.text.show.collects
            self.into.change(delta, [] if collects else new, [] if collects else old)
        elif self.program.text.show.collects:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms)
        else:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms, new, old)

    # --- groups ---------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget what was aggregated."""
        self.groups.clear()
        if self.whole is not None:
            self.whole = self.code["Group"](())

    def group_of(self, key: object, event: Event) -> Any:
        """The group of a key; an empty one where it has none."""
        if self.into is not None:
            return self.into.group_at(key, event)
        return self.groups.get(key) or self.empty_group(key, event)

    def empty_group(self, key: object, event: Event) -> Any:
        """A group without events."""
        return (
            self.code["Group"](key, event) if self.program.text.fold.keeps_first else self.code["Group"](key)
        )

    def beside(self, event: Event, is_new: bool) -> list[Any]:
        """Values of prev calls for an event, at their offsets."""
        values: list[Any] = [None] * len(self.plan.aggregates)
        if self.prevs is not None:
            values += self.prevs.read(event, is_new) if event.seq >= 0 else [None] * len(self.plan.prevs)
        return values

    def priors(self, event: Event) -> Sequence[Event]:
        """The events before one, the nearest first: as noted when it came, or by its place in the queue."""
        if isinstance(event.extra, FixedValues):
            return event.extra.priors
        place = self.places.get(event)
        if place is None:
            return ()
        depth = self.program.text.earlier.depth
        before = [*self.older, *(other.row for other in self.queue[max(0, place - depth) : place])]
        return [Event(row, event.time_ms, event.seq) for row in reversed(before[-depth:])]

    @contextmanager
    def queue_noted(self) -> Iterator[None]:
        """While the content is shown as it is now."""
        self.queue = list(self.windows[0].content()) if self.program.text.earlier.keeps_left else []
        self.places = {event: place for place, event in enumerate(self.queue)}
        try:
            yield
        finally:
            self.queue, self.places = [], {}

    def remember(self, changed: dict[Any, Event]) -> None:
        """`output all` shows every group ever seen, so each keeps an event to read its columns from."""
        if self.plan.output is not None and self.plan.output.mode == "all":
            self.representatives.update((group.key, event) for group, event in changed.items())

    def forget_idle(self, now_ms: int) -> None:
        """Drop groups without a window that no event has touched for long: they begin anew, without a row."""
        assert self.reclaim is not None
        for key in self.reclaim.aged(now_ms):
            self.groups.pop(key, None)
            self.representatives.pop(key, None)

    def fail(self, row: object, error: BaseException) -> None:
        """An event could not be evaluated: counted, and an emission of its own."""
        if self.analytic is not None:
            self.analytic.drop(row)
        self.errors.append(self.error_of(row, self.why(error), self.now_ms))

    def tell(self, row: object, why: str) -> None:
        """A subquery could not evaluate an event."""
        self.errors.append(self.error_of(row, why, self.now_ms))

    def why(self, error: BaseException) -> str:
        """The error, with its place in the text of the statement."""
        line = self.code.line_of(error)
        span = None if line is None else self.code.spans.get(line)
        known = self.program.functions.failure(error)
        return str(known if span is None else positioned(error, span, self.plan.text))

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
                self._tick(now_ms, new, old)
            else:
                break
        if self.output.is_pending:
            self._tick(now_ms, new, old)
        self.output.end_step(now_ms, new, old, is_timer=True)
        self.output.advance(now_ms)
        return self.take()

    def _tick(self, now_ms: int, new: list[Any], old: list[Any]) -> None:
        """An output tick: the updates before it, then what the limit gives."""
        self.output.end_step(now_ms, new, old, is_timer=True)
        new.clear()
        old.clear()
        self.output.tick(now_ms)

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

    def present(self) -> list[dict[str, Any]]:
        """The rows of the present content."""
        self.begin(self.now_ms)
        return self.content.present()

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
        for machine in self.sources.machines():
            for name, count in machine.counters().items():
                counts[name] = counts.get(name, 0) + count
        return counts

    # --- state ----------------------------------------------------------------------------------------------

    def beside_windows(self) -> Iterable[Event]:
        """The events the state refers to beside the windows: mostly those that are in them as well."""
        yield from self.sources.held()
        if self.prior is not None:
            yield from self.prior.recent
        yield from self.representatives.values()
        for group in self.groups.values() if self.whole is None else (self.whole,):
            yield from self.program.text.fold.held(group)
        for accumulator in self.shared.values():
            yield from accumulator.held()
        if self.into is not None:
            yield from self.into.held()

    def held(self) -> Iterable[Event]:
        """Every event the state refers to."""
        if not self.program.text.keeps_values:
            for window in self.windows:
                yield from window.held()
        yield from self.beside_windows()

    def retained(self) -> int:
        """The number of events the statement holds, or of which it holds what they contributed."""
        if self.program.text.keeps_values:
            return sum(1 for window in self.windows for _ in window.held())
        beside = {event.seq for event in self.beside_windows()}
        count = 0
        for window in self.windows:
            for event in window.held():
                count += 1
                beside.discard(event.seq)
        return count + len(beside)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data."""
        self.begin(self.now_ms)  # an output limit may have rows still to make
        return statement_state.snapshot(self)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back into an instance just made; CorruptState where it does not fit."""
        statement_state.restore(self, snapshot)
