"""Subqueries: `(select …)`, exists, in, any and all, over a stream with windows, a named window or a table.

Each is a function of the event that the statement around it is evaluated for. One that reads nothing of that
event is a query of its own, whose present rows are its answer. A correlated one keeps its rows with the index
that its condition needs, or uses that of its relation, and is computed over the rows that match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.event_store import EventStore
from sql.algebra.join.store import Carried, Rows
from sql.algebra.operator import Pass, earliest
from sql.algebra.row_blocks import plain
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.support import Warnings
from sql.compiler.program import CorrelatedCode, Program, SubqueryCode, UncorrelatedCode, as_seen, store_of
from sql.compiler.shared_code import Answer, Environment
from sql.emission import Emission
from sql.engine.statement.evaluation import Choice, Evaluation
from sql.engine.statement.statement_core import StatementCore
from sql.errors import raised
from sql.rows import as_it_is
from sql.types import Saved

Run = Callable[[Program, Environment], StatementCore]
"""Starts a statement that only searches named windows."""

Take = Callable[[Any, int], None]
"""Takes an event that arrives, and the instant."""

Report = Callable[[Any, str], None]
"""Called with an event that a subquery could not evaluate, and the reason."""


SubqueryState = tuple[int, list[Any], Saved, list[int], Saved]
"""The newest number, the events, the window, the rows that are kept, and the subqueries inside."""


class Correlated:
    """A subquery whose condition or values read the event around it."""

    def __init__(self, code: CorrelatedCode, env: Environment, run: Run, report: Report) -> None:
        plan = self.plan = code.part.plan
        self.code = code
        self.report = report
        source = plan.sources[0]
        self.seq = 0
        self.inner = Subqueries(code.subqueries, code.warnings, env, run, report)
        self.rows = store_of(source, code, env)
        self.window: Any = Pass()
        if source.relation is None:
            self.window = code.builder.build(env.now_ms, self, lambda: env.now_ms)
        self.answer = None if code.answer is None else code.answer.over(self.rows)
        self.ahead = None if code.answer is None else code.answer.ahead(self.rows)
        if code.answer is None:
            self.find = code.finder.over(self.rows)
            self.evaluation = Evaluation(code.text, code.functions, raised)

    def new_event(self, row: object, time_ms: int) -> Event:
        """The event of a row, with a number of its own."""
        self.seq += 1
        return Event(row, time_ms, self.seq)

    def fail(self, row: object, error: BaseException) -> None:
        """A filter or a window could not evaluate an event."""
        self.report(row, str(self.code.builder.functions.failure(error)))

    def _begin(self) -> None:
        """Begin work of this instance: the answers that its functions read are this instance's."""
        if self.inner.answers:
            self.code.answers[:] = self.inner.answers

    def takes(self, stream: str) -> Take | None:
        """The function that takes the events of a stream; None if it reads none."""
        return partial(self.push, stream) if stream in self.plan.reads else None

    def push(self, stream: str, row: object, now_ms: int) -> None:
        """An event of its stream arrives."""
        self.inner.push(stream, row, now_ms)
        self._begin()
        if stream == self.plan.sources[0].stream and isinstance(self.rows, Rows):
            event = self.new_event(row, now_ms)
            try:
                if self.code.passes is None or self.code.passes(event):
                    self._take(self.window.push(Delta((event,)), now_ms))
            except DATA_ERRORS as error:
                self.fail(row, error)

    def _take(self, deltas: Iterable[Delta]) -> None:
        if isinstance(self.rows, Rows):
            for delta in deltas:
                self.rows.change(delta)

    def variable_changed(self, name: str, now_ms: int) -> None:
        """A variable has a new value: rows may leave the window."""
        self.inner.variable_changed(name, now_ms)
        if self.window.depends_on(name):
            self._take(self.window.variable_changed(now_ms))

    def reach(self, now_ms: int) -> None:
        """The clock says `now_ms`; what is due acts with `advance`."""
        self.inner.reach(now_ms)

    def advance(self, now_ms: int) -> None:
        """Do what is due at or before `now_ms`."""
        self.inner.advance(now_ms)
        while (deadline := self.window.next_deadline()) is not None and deadline <= now_ms:
            self._take(self.window.advance(now_ms))

    def next_deadline(self) -> int | None:
        return earliest((self.window.next_deadline(), self.inner.next_deadline()))

    def result(self, event: Event) -> list[dict[str, Any]]:
        """The rows of the subquery for an event of the statement around it."""
        self._begin()
        outer = event.row if event.row.__class__ is tuple else (event.row,)
        if isinstance(self.rows, Carried):
            self.rows.take(outer[0], event.time_ms)
        found = self.find((None, *outer), event.time_ms)
        rows = zip(found, self.evaluation.read(found), strict=True)
        nothing = Event((None, *outer), event.time_ms, 0)
        return self.evaluation.rows([Event((row, *outer), x.time_ms, x.seq) for x, row in rows], nothing)

    def snapshot(self) -> SubqueryState:
        store = EventStore()
        store.add(self.window.held())
        kept = [event.seq for event in self.rows.events] if isinstance(self.rows, Rows) else []
        store.add(self.rows.events if isinstance(self.rows, Rows) else ())
        return self.seq, store.pack(), self.window.snapshot(), kept, self.inner.snapshot()

    def restore(self, state: SubqueryState | dict[str, Saved]) -> None:
        if isinstance(state, dict):  # an earlier build read all values of a relation, and kept none
            return
        self.seq, events, window, kept, inner = state
        store = EventStore()
        store.unpack(events, as_it_is)
        self.window.restore(window, store.find)
        for number in kept:
            assert isinstance(self.rows, Rows)
            self.rows.add(store.find(number))
        self.inner.restore(inner)


class Uncorrelated:
    """A subquery that reads nothing of the event around it: a query of its own."""

    def __init__(self, code: UncorrelatedCode, env: Environment, run: Run, report: Report) -> None:
        self.plan = code.part.plan
        self.report = report
        self.query = run(code.program, env)
        self.value: Callable[[Any], Any] | None = None
        if code.program.text.has_value:
            self.value = self.query.code["value"]
        """Gives the value itself, of the statement's aggregates as they are."""
        relations = env.catalog.relations
        for place, pulled in self.query.pulled.items():
            pulled.relation = as_seen(self.plan.sources[place], env)
        self.relations = [relations[name] for name in sorted(self.plan.relations)]
        self.stamp: Any = None
        self.known: list[dict[str, Any]] = []
        self.shows_each = code.shows_each
        self.shown: list[dict[str, Any]] | None = None
        """The rows of the last emission, where each change gives all present rows."""
        self.choice = Choice(self.query, code.finder) if code.reads_relations else None

    def takes(self, stream: str) -> Take | None:
        if stream not in self.query.plan.streams or self.choice is not None:
            return None
        return partial(self._push, stream) if self.value is None else self._counted()

    def _push(self, stream: str, row: object, now_ms: int) -> None:
        self._note(self.query.push(stream, [row], now_ms))

    def _counted(self) -> Take:
        """The function that counts an event in the aggregates, and does nothing else."""
        query, push = self.query, self.query.code["push"]

        def take(row: object, now_ms: int) -> None:
            query.now_ms = now_ms
            query.begin(now_ms)
            push(query, (row,), now_ms)
            if query.errors:
                self._note(query.take())

        return take

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.query.variable_changed(name, now_ms)
        self.advance(now_ms)

    def reach(self, now_ms: int) -> None:
        self.query.now_ms = max(self.query.now_ms, now_ms)

    def advance(self, now_ms: int) -> None:
        self._note(self.query.advance(now_ms))

    def _note(self, emissions: list[Emission]) -> None:
        for each in emissions:
            if each.kind == "error":
                self.report(each.inserted[0], each.error or "")
            elif self.shows_each:
                self.shown = each.inserted

    def next_deadline(self) -> int | None:
        return self.query.next_deadline()

    def valued(self, event: Event) -> Any:
        """Its only value, of the statement's aggregates as they are."""
        assert self.value is not None
        if self.query.is_one_of_many:
            self.query.begin(self.query.now_ms)
        return self.value(self.query)

    def result(self, event: Event) -> list[dict[str, Any]]:
        """Its present rows."""
        if self.choice is None:
            if self.shown is None or not self.shows_each:
                self.shown = self.query.present(self.query.now_ms)
            return self.shown
        stamp = [relation.version for relation in self.relations]
        if stamp != self.stamp or self._may_differ():
            self.query.begin(self.query.now_ms)
            self.known, self.stamp = self.choice.rows(), stamp if self._is_current() else None
            self._note(self.query.take())
        return self.known

    def _is_current(self) -> bool:
        unseen, statement = self.query.catalog.loop.unseen, self.query.name
        return all(unseen(statement, relation.name) is None for relation in self.relations)

    def _may_differ(self) -> bool:
        """True if the rows may be others although no relation has changed."""
        return bool(self.plan.subqueries or self.query.catalog.variables) or not self._is_current()

    def snapshot(self) -> Saved:
        return plain(self.query.snapshot())

    def restore(self, state: Saved) -> None:
        self.query.restore(state)
        self.shown = None


class Subqueries:
    """All subqueries of a statement; `answers[i]` is the value of subquery i for an event."""

    def __init__(
        self, codes: Sequence[SubqueryCode], warnings: Warnings, env: Environment, run: Run, report: Report
    ) -> None:
        """`env`: that of the statement around them. `report` is called for events that a subquery could not
        evaluate."""
        self.warnings = warnings
        self.queries: list[Correlated | Uncorrelated] = [
            Correlated(code, env, run, report)
            if isinstance(code, CorrelatedCode)
            else Uncorrelated(code, env, run, report)
            for code in codes
        ]
        self.by_stream: dict[str, tuple[Take, ...]] = {}
        self.answers: list[Answer] = [
            self._answer(code.part.kind, query) for code, query in zip(codes, self.queries, strict=True)
        ]

    def _answer(self, kind: str, query: Correlated | Uncorrelated) -> Answer:
        if isinstance(query, Correlated) and query.answer is not None:
            return query.answer
        if isinstance(query, Uncorrelated) and query.value is not None:
            return query.valued
        result = query.result
        if kind == "exists":
            return lambda event: bool(result(event))
        if kind == "rows":
            return lambda event: result(event) or None
        if kind == "values":
            return lambda event: _column(result(event)) or None
        if kind == "list":
            return lambda event: _column(result(event))
        if kind == "row":
            return lambda event: self._only(result(event))
        return lambda event: self._value(result(event))

    def _only(self, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
        """The one row; NULL without one, and for several, which is counted."""
        if len(rows) > 1:
            self.warnings.several_rows += 1
        return rows[0] if len(rows) == 1 else None

    def _value(self, rows: list[dict[str, Any]]) -> Any:
        row = self._only(rows)
        return None if row is None else next(iter(row.values()))

    def takes(self, stream: str) -> Sequence[Take]:
        """The functions that take the events of a stream, each before the statement itself."""
        found = self.by_stream.get(stream)
        if found is None:
            takes = [query.takes(stream) for query in self.queries]
            found = self.by_stream[stream] = tuple([take for take in takes if take is not None])
        return found

    def ahead(self, place: int, rows: Sequence[Any]) -> Iterable[Any]:
        """For each event of a batch what subquery `place` has looked up, or None."""
        query = self.queries[place]
        find = query.ahead if isinstance(query, Correlated) else None
        return repeat(None, len(rows)) if find is None else find(rows)

    def push(self, stream: str, row: object, now_ms: int) -> None:
        """An event arrives, before the statement itself sees it."""
        for take in self.takes(stream):
            take(row, now_ms)

    def variable_changed(self, name: str, now_ms: int) -> None:
        for query in self.queries:
            query.variable_changed(name, now_ms)

    def reach(self, now_ms: int) -> None:
        """The clock says `now_ms`; what is due acts with `advance`, in its turn."""
        for query in self.queries:
            query.reach(now_ms)

    def advance(self, now_ms: int) -> None:
        for query in self.queries:
            query.advance(now_ms)

    def next_deadline(self) -> int | None:
        return earliest(query.next_deadline() for query in self.queries)

    def snapshot(self) -> list[Saved]:
        return [query.snapshot() for query in self.queries]

    def restore(self, state: list[Saved]) -> None:
        for query, part in zip(self.queries, state, strict=True):
            query.restore(part)


def _column(rows: Iterable[dict[str, Any]]) -> list[Any]:
    """The values of the one column of rows."""
    return [next(iter(row.values())) for row in rows]
