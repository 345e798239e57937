"""Statements that the engine runs and that are no queries: declarations of relations, triggers, on … set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from sql.algebra.event import Delta, Event
from sql.algebra.operator import earliest
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.program import PatternCode, subqueries_of
from sql.compiler.shared_code import Environment, InstanceData, SharedCode
from sql.emission import Emission, Row
from sql.engine.query import Running, RunningQuery
from sql.engine.statement.matches import Matches
from sql.engine.statement.running_statement import RunningStatement
from sql.engine.statement.subqueries import Subqueries
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan, SubqueryPlan


class PostingStatement(RunningQuery, Running):
    """A statement that posts what it has done."""

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return []

    def post(self, rows: list[Row], removed: Sequence[Row] = ()) -> None:
        """Emit what came and what left, if anything did."""
        if rows or removed:
            self.out.append(Emission(self.name, self.now_ms, "rows", rows, removed))

    def snapshot(self) -> dict[str, Any]:
        return {"fingerprint": self.plan.fingerprint, **self.reported()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.restore_reported(snapshot)


class TriggerCode(SharedCode):
    """The functions of a trigger: its filter, and those of what it does."""

    def __init__(
        self, plan: Plan, env: Environment, source: SourcePlan, subqueries: Sequence[SubqueryPlan]
    ) -> None:
        super().__init__(env, plan.options, len(subqueries))
        self.plan = plan
        self.source = source
        self.subqueries = subqueries_of(subqueries, self)
        self.of_event = self.function_set(text=plan.text)
        """The functions of the filter, which reads the event alone."""
        self.passes = None if source.filter is None else self.of_event.true(source.filter)
        self.functions = self.function_set(text=plan.text, joined=True)
        self.pattern = None if source.pattern is None else PatternCode(source, self)


C = TypeVar("C", bound=TriggerCode)


class Triggered(PostingStatement, Generic[C]):
    """A statement that acts on each event of its trigger: of a stream, a row that enters a
    named window, or a match."""

    def __init__(self, code: C, env: Environment) -> None:
        super().__init__(env.name, code.plan, env.now_ms)
        self.code = code
        self.catalog = env.catalog
        self.context, self.functions, self.passes = code.context, code.functions, code.passes
        self.subqueries = Subqueries(code.subqueries, code.warnings, env, RunningStatement, self.report)
        self.instance_data = InstanceData(code, env, self.subqueries.answers)
        self.source = code.source
        self.looked: bool | None = None
        """Whether the event passes the filter, between `arriving` and `push`."""
        self.matches: Matches | None = None
        if code.pattern is not None:
            self.instance_data.install(env.now_ms)
            uses_first = env.partition is not None
            self.matches = Matches(code.pattern, env.now_ms, self.report, uses_first=uses_first)

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: what its functions read is this instance's."""
        self.now_ms = now_ms
        self.instance_data.install(now_ms)

    def fail(self, row: object, error: BaseException) -> None:
        """An event, or a match, that the statement could not deal with."""
        self.report(row, self.functions.failure(error))

    # --- events ---------------------------------------------------------------------------------------------

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        self.begin(now_ms)
        self.subqueries.push(stream, row, now_ms)
        self.looked = stream == self.source.stream and self._passes(row)

    def _passes(self, row: object) -> bool:
        try:
            return self.passes is None or bool(self.passes(Event(row, self.now_ms, 0)))
        except DATA_ERRORS as error:
            self.report(row, self.code.of_event.failure(error))
            return False

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.begin(now_ms)
        self.counts["events_in"] += len(rows)
        is_plain = self.passes is None and self.matches is None and not self.subqueries.queries
        if is_plain and self.looked is None:
            self.act_on_each(rows)
            return self.take()
        for row in rows:
            if self.looked is None:
                self.arriving(stream, row, now_ms)
            passed, self.looked = self.looked, None
            self._act_on((row,) if passed else (), row)
            if self.matches is not None:
                self._act_on(self.matches.enter(stream, row, now_ms))
        return self.take()

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        delta = changes.get(self.source.stream)
        if delta is None:
            return []
        self.begin(now_ms)
        self.counts["events_in"] += len(delta.inserted)
        self._act_on([event.row for event in delta.inserted if self._passes(event.row)])
        return self.take()

    @abstractmethod
    def act(self, rows: Sequence[Any]) -> None:
        """Act on events, one after the other, and post what came of them together."""

    def act_on_each(self, rows: Sequence[Any]) -> None:
        """Act on events, and post for each by itself what came of it."""
        for row in rows:
            self._act_on((row,), row)

    def _act_on(self, rows: Sequence[Any], event: object = None) -> None:
        """Act on events or matches, if there are any; `event`: what is reported where that fails."""
        try:
            if rows:
                self.act(rows)
        except DATA_ERRORS as error:
            self.fail(event, error)

    # --- time and state -------------------------------------------------------------------------------------

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.subqueries.variable_changed(name, now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        self.begin(now_ms)
        self.subqueries.advance(now_ms)
        if self.matches is not None:
            self._act_on(self.matches.advance(now_ms))
        return self.take()

    def next_deadline(self) -> int | None:
        if self.errors:  # those of its start
            return self.now_ms
        pattern = None if self.matches is None else self.matches.next_deadline()
        return earliest((self.subqueries.next_deadline(), pattern))

    def counters(self) -> dict[str, int]:
        return self.counts | ({} if self.matches is None else self.matches.counters())

    def snapshot(self) -> dict[str, Any]:
        kept = super().snapshot() | {"subqueries": self.subqueries.snapshot()}
        return kept if self.matches is None else kept | {"pattern": self.matches.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        self.subqueries.restore(snapshot["subqueries"])
        if self.matches is not None:
            self.matches.restore(snapshot["pattern"], dict)
