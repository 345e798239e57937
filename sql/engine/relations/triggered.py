"""Statements that the engine runs and that are no queries: declarations of relations, triggers, on … set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from sql.algebra.event import Delta, Event
from sql.algebra.operator import earliest
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.compiler.pattern_code import PatternCode
from sql.compiler.program import subqueries_of
from sql.compiler.shared_code import Environment, Seat, SharedCode
from sql.emission import Emission, Row
from sql.engine.query import Running, RunningQuery
from sql.engine.statement.matches import Matches
from sql.engine.statement.running_statement import RunningStatement
from sql.engine.statement.subqueries import Subqueries
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan, SubqueryPlan
from sql.rows import as_dict


class PostingStatement(RunningQuery, Running):
    """A statement that posts what it has done."""

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return []

    def shown(self, rows: list[Row], removed: Sequence[Row], now_ms: int) -> list[Emission]:
        """The statement's post: nothing if nothing changed."""
        if not rows and not removed:
            return []
        self.counts["rows_out"] += len(rows)
        return [Emission(self.name, now_ms, "rows", rows, removed)]

    def failed(self, row: object, error: BaseException, now_ms: int) -> list[Emission]:
        """An event, or a row, that a statement could not deal with."""
        self.counts["errors"] += 1
        shown = [dict(as_dict(row))] if row is not None and row.__class__ is not tuple else []
        return [Emission(self.name, now_ms, "error", shown, (), str(error))]


class TriggerCode(SharedCode):
    """The functions of a trigger: its filter, and those of what it does."""

    def __init__(
        self, plan: Plan, env: Environment, source: SourcePlan, subqueries: Sequence[SubqueryPlan]
    ) -> None:
        super().__init__(env, plan.options, len(subqueries))
        self.plan = plan
        self.source = source
        self.subqueries = subqueries_of(subqueries, self)
        self.passes: Callable[..., Any] | None = None
        """The filter of the trigger."""
        if source.filter is not None:
            self.passes = self.functions_over(joined=False).true(source.filter)
        self.functions = self.functions_over(joined=True)
        self.pattern = None if source.pattern is None else PatternCode(source, self)

    def functions_over(self, *, joined: bool) -> FunctionSet:
        """A writer of functions over rows, or over the rows of several sources."""
        return FunctionSet(*self.settings, joined=joined, text=self.plan.text, subqueries=self.answers)


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
        self.seat = Seat(code, env, self.subqueries.answers)
        self.source = code.source
        self.looked: bool | None = None
        self.matches: Matches | None = None
        if code.pattern is not None:
            self.seat.take(env.now_ms)
            self.matches = Matches(code.pattern, env.now_ms, uses_first=env.partition is not None)

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: what its functions read is this instance's."""
        self.now_ms = now_ms
        self.seat.take(now_ms)

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        self.begin(now_ms)
        self.subqueries.push(stream, row, now_ms)
        self.looked = stream == self.source.stream and self._passes(row, now_ms)

    def _passes(self, row: object, now_ms: int) -> bool:
        return self.passes is None or bool(self.passes(Event(row, now_ms, 0)))

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        out: list[Emission] = []
        self.begin(now_ms)
        if (
            self.passes is None
            and self.matches is None
            and self.looked is None
            and not self.subqueries.queries
        ):
            self.counts["events_in"] += len(rows)
            return self.act_on_each(rows, now_ms)
        for row in rows:
            self.counts["events_in"] += 1
            try:
                if self.looked is None:
                    self.arriving(stream, row, now_ms)
                passed, self.looked = self.looked, None
                if passed:
                    out += self.act([row], now_ms)
            except DATA_ERRORS as error:
                self.looked = None
                out += self.failed(row, self.functions.failure(error), now_ms)
            if self.matches is not None:
                out += self._completed(self.matches, stream, row, now_ms)
        return out + self.take()

    def _completed(self, matches: Matches, stream: str, row: object, now_ms: int) -> list[Emission]:
        """Act on the matches that an event completes."""
        try:
            found = matches.enter(stream, row, now_ms)
        except DATA_ERRORS as error:
            return self.failed(row, matches.functions.failure(error), now_ms)
        return self._acted(matches, found, now_ms)

    def _acted(self, matches: Matches, found: Iterable[Any], now_ms: int) -> list[Emission]:
        """Act on matches, one after the other; the pattern's evaluation errors follow."""
        rows = list(found)
        out: list[Emission] = []
        try:
            out = self.act(rows, now_ms) if rows else []
        except DATA_ERRORS as error:
            out = self.failed(None, self.functions.failure(error), now_ms)
        return out + [each for failure in matches.failures() for each in self.failed(None, failure, now_ms)]

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        delta = changes.get(self.source.stream)
        if delta is None:
            return []
        self.begin(now_ms)
        self.counts["events_in"] += len(delta.inserted)
        try:
            rows = [event.row for event in delta.inserted if self._passes(event.row, now_ms)]
            return self.act(rows, now_ms) if rows else []
        except DATA_ERRORS as error:
            return self.failed(None, self.functions.failure(error), now_ms)

    @abstractmethod
    def act(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Act on events, one after the other, and post what came of them together."""

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.subqueries.variable_changed(name, now_ms)

    def act_on_each(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Act on events, and post for each by itself what came of it."""
        out: list[Emission] = []
        for row in rows:
            try:
                out += self.act((row,), now_ms)
            except DATA_ERRORS as error:
                out += self.failed(row, self.functions.failure(error), now_ms)
        return out

    def advance(self, now_ms: int) -> list[Emission]:
        self.begin(now_ms)
        self.subqueries.advance(now_ms)
        matches = self.matches
        out = [] if matches is None else self._acted(matches, matches.advance(now_ms), now_ms)
        return out + self.take()

    def next_deadline(self) -> int | None:
        pattern = None if self.matches is None else self.matches.next_deadline()
        return earliest((self.subqueries.next_deadline(), pattern))

    def counters(self) -> dict[str, int]:
        return self.counts | ({} if self.matches is None else self.matches.counters())

    def snapshot(self) -> dict[str, Any]:
        kept = {
            "fingerprint": self.plan.fingerprint,
            "subqueries": self.subqueries.snapshot(),
            "counts": dict(self.counts),
        }
        return kept if self.matches is None else kept | {"pattern": self.matches.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.subqueries.restore(snapshot["subqueries"])
        self.counts |= snapshot["counts"]
        if self.matches is not None:
            self.matches.restore(snapshot["pattern"], dict)
