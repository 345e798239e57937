"""Subqueries: `(select …)`, exists, in, any and all, over a stream with windows, a named window or a table.

Each is a function of the event that the statement around it is evaluated for. One that reads nothing of that
event is a query of its own, whose present rows are its answer. A correlated one keeps its rows with the index
that its condition needs, or uses that of its relation, and is computed over the rows that match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sql.aggregates.base import Removal
from sql.algebra.build import WindowBuilder
from sql.algebra.event import Delta, Event
from sql.algebra.join.store import Pulled, Rows, Seen
from sql.algebra.operator import Pass, earliest
from sql.algebra.output.order import row_limit
from sql.algebra.state import EventStore
from sql.algebra.table.search import finder
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.support import Warnings
from sql.compiler.answer import AnswerText, answers_by_row
from sql.compiler.deferral import is_fleeting
from sql.compiler.statement import StatementText
from sql.emission import Emission
from sql.engine.relations.choice import Choice
from sql.engine.running.evaluation import Evaluation
from sql.functions.registry import Context
from sql.plan.bound import Read, TableRead
from sql.plan.logical import Plan, SourcePlan, SubqueryPlan
from sql.rows import Shape

if TYPE_CHECKING:
    from sql.engine.running.statement import RunningStatement

Answer = Callable[[Event], Any]

Run = Callable[[Plan, bool], "RunningStatement"]
"""Starts a statement that only searches named windows; the flag: only its value is read."""

Take = Callable[[Any, int], None]
"""Takes an event that arrives, and the instant."""

Tell = Callable[[Any, str], None]
"""Called with an event that a subquery could not evaluate, and the reason."""


class Correlated:
    """A subquery whose condition or values read the event around it."""

    def __init__(
        self,
        part: SubqueryPlan,
        catalog: Catalog,
        context: Context,
        warnings: Warnings,
        now_ms: int,
        shape: Shape,
        run: Run,
        tell: Tell,
    ) -> None:
        plan = self.plan = part.plan
        self.tell = tell
        source = plan.sources[0]
        self.make_row: Callable[[Any], Any] = lambda row: row
        self.seq = 0
        self.inner = Subqueries(plan.subqueries, catalog, context, warnings, now_ms, shape, run, tell)
        functions = self.functions = FunctionSet(
            catalog,
            context,
            warnings,
            shape=shape,
            joined=True,
            text=plan.text,
            subqueries=self.inner.answers,
        )
        builder = WindowBuilder(source, plan.options, catalog, context, warnings, shape, self.inner.answers)
        passes = None if source.filter is None else builder.functions.true(source.filter)
        self.passes = passes
        self.rows: Rows | Pulled = Rows(shape)
        self.window: Any = Pass()
        if source.relation is None:
            self.window = builder.build(now_ms, self._new_event, lambda: now_ms)
        else:
            self.rows = Pulled(as_seen(source, catalog, context.rule_id), passes)
        width = range(1, 1 + len(part.outer))
        self.answer = (
            AnswerText(part, self.rows, functions, shape).over(self.rows) if answers_by_row(part) else None
        )
        """The value itself, where every row that is found is a row of the subquery."""
        if self.answer is not None:
            return
        self.find = finder(plan.where, 0, width, self.rows, functions, shape=shape, nullable=width)
        text = StatementText(plan, catalog, shape, context, warnings, None, Removal.NEVER, {"aggregate": 0, "prev": 0},
                             self.inner.answers, is_driven=False, is_joined=True)  # fmt: skip
        self.evaluation = Evaluation(plan, text, row_limit(plan, functions), self._failed)

    def _new_event(self, row: Any, time_ms: int) -> Event:
        self.seq += 1
        return Event(row, time_ms, self.seq)

    @staticmethod
    def _failed(row: Any, error: BaseException) -> None:
        raise error

    def takes(self, stream: str) -> Take | None:
        """The function that takes the events of a stream; None if it reads none."""
        return partial(self.push, stream) if stream in self.plan.reads else None

    def push(self, stream: str, row: Any, now_ms: int) -> None:
        """An event of its stream arrives."""
        self.inner.push(stream, row, now_ms)
        if stream == self.plan.sources[0].stream and isinstance(self.rows, Rows):
            event = self._new_event(row, now_ms)
            try:
                if self.passes is None or self.passes(event):
                    self._take(self.window.push(Delta((event,)), now_ms))
            except DATA_ERRORS as error:
                self.tell(row, str(self.functions.failure(error)))

    def _take(self, deltas: Iterable[Delta]) -> None:
        if not isinstance(self.rows, Rows):
            return
        for inserted, removed in deltas:
            for event in inserted:
                self.rows.add(event)
            for event in removed:
                self.rows.remove(event)

    def variable_changed(self, name: str, now_ms: int) -> None:
        """A variable has a new value: rows may leave the window."""
        self.inner.variable_changed(name, now_ms)
        self._take(self.window.variable_changed(now_ms))

    def advance(self, now_ms: int) -> None:
        """Time has come to `now_ms`."""
        self.inner.advance(now_ms)
        while (deadline := self.window.next_deadline()) is not None and deadline <= now_ms:
            self._take(self.window.advance(now_ms))

    def next_deadline(self) -> int | None:
        return earliest((self.window.next_deadline(), self.inner.next_deadline()))

    def result(self, event: Event) -> list[dict[str, Any]]:
        """The rows of the subquery for an event of the statement around it."""
        outer = event.row if event.row.__class__ is tuple else (event.row,)
        found = self.find((None, *outer), event.time_ms)
        return self.evaluation.rows([Event((row.row, *outer), row.time_ms, row.seq) for row in found])

    def snapshot(self) -> Any:
        store = EventStore()
        store.add(self.window.held())
        kept = [event.seq for event in self.rows.events] if isinstance(self.rows, Rows) else []
        store.add(self.rows.events if isinstance(self.rows, Rows) else ())
        return [self.seq, store.pack(), self.window.snapshot(), kept, self.inner.snapshot()]

    def restore(self, state: Any) -> None:
        self.seq, events, window, kept, inner = state
        store = EventStore()
        store.unpack(events, self.make_row)
        self.window.restore(window, store.find)
        for number in kept:
            assert isinstance(self.rows, Rows)
            self.rows.add(store.find(number))
        self.inner.restore(inner)


def as_seen(source: SourcePlan, catalog: Catalog, statement: str) -> Any:
    """A relation as a subquery of a statement sees it."""
    relation = catalog.relations[source.stream]
    if source.relation != "window":
        return relation
    return Seen(relation, lambda name: catalog.loop.unseen(statement, name))


class Alone:
    """A subquery that reads nothing of the event around it: a query of its own."""

    def __init__(self, part: SubqueryPlan, catalog: Catalog, statement: str, run: Run, tell: Tell) -> None:
        self.plan = part.plan
        self.tell = tell
        is_asked = part.kind == "scalar" and _shows_each(part.plan) and not _reads_columns(part.plan)
        self.query = run(part.plan, is_asked)
        self.value: Callable[[Any], Any] | None = None
        if self.query.program.text.has_value:
            self.value = self.query.code["value"]
        """Gives the value itself, of the statement's aggregates as they are."""
        for window, source in zip(self.query.windows, part.plan.sources, strict=True):
            if source.relation is not None:
                window.rows.relation = as_seen(source, catalog, statement)  # type: ignore[attr-defined]
        self.relations = [catalog.relations[name] for name in sorted(part.plan.relations)]
        self.stamp: Any = None
        self.known: list[dict[str, Any]] = []
        self.choice: Choice | None = None
        self.shows_each = _shows_each(part.plan)
        self.shown: list[dict[str, Any]] | None = None
        """The rows of the last emission, where each change gives all present rows."""
        if any(source.relation for source in part.plan.sources):
            self.choice = Choice(part.plan, catalog, self.query, trigger=False)

    def takes(self, stream: str) -> Take | None:
        """The function that takes the events of a stream; None if it keeps none."""
        if stream not in self.query.plan.streams or self.choice is not None:
            return None
        return partial(self._push, stream) if self.value is None else self._counted()

    def _push(self, stream: str, row: Any, now_ms: int) -> None:
        self._note(self.query.push(stream, [row], now_ms))

    def _counted(self) -> Take:
        """The function that counts an event in the aggregates, and does nothing else."""
        query, push = self.query, self.query.code["push"]

        def take(row: Any, now_ms: int) -> None:
            query.now_ms = now_ms
            query.begin(now_ms)
            push(query, (row,), now_ms)
            if query.errors:
                self._note(query.take())

        return take

    def variable_changed(self, name: str, now_ms: int) -> None:
        """A variable has a new value: rows may leave the windows."""
        self.query.variable_changed(name)
        self.advance(now_ms)

    def advance(self, now_ms: int) -> None:
        """Time has come to `now_ms`."""
        self._note(self.query.advance(now_ms))

    def _note(self, emissions: list[Emission]) -> None:
        for each in emissions:
            if each.kind == "error":
                self.tell(each.inserted[0], each.error or "")
            elif self.shows_each:
                self.shown = each.inserted

    def next_deadline(self) -> int | None:
        return self.query.next_deadline()

    def result(self, event: Event) -> list[dict[str, Any]]:
        """Its present rows."""
        if self.choice is None:
            if self.shown is None or not self.shows_each:
                self.shown = self.query.present()
            return self.shown
        stamp = [relation.version for relation in self.relations]
        if stamp != self.stamp or self._may_differ():
            self.known, self.stamp = self.choice.rows(None), stamp if self._is_current() else None
            self._note(self.query.take())
        return self.known

    def _is_current(self) -> bool:
        unseen, statement = self.query.catalog.loop.unseen, self.query.name
        return all(unseen(statement, relation.name) is None for relation in self.relations)

    def _may_differ(self) -> bool:
        """True if the rows may be others although no relation has changed."""
        return bool(self.plan.subqueries or self.query.catalog.variables) or not self._is_current()

    def snapshot(self) -> Any:
        return self.query.snapshot()

    def restore(self, state: Any) -> None:
        self.query.restore(state)
        self.shown = None


def _shows_each(plan: Plan) -> bool:
    """True if each change of the content gives one row, which depends on nothing but the content."""
    is_whole = (
        plan.row_kind == "aggregate" and plan.having is None and plan.output is None and plan.limit is None
    )
    return is_whole and plan.selector == "istream" and not any(is_fleeting(item.value) for item in plan.items)


def _reads_columns(plan: Plan) -> bool:
    """True if the row of a statement shows more than aggregates."""
    return any(isinstance(node, Read | TableRead) for item in plan.items for node in item.value.walk())


def _keeps_rows(part: SubqueryPlan) -> bool:
    """True if a subquery of its own answers with the rows its windows have posted, and not with
    aggregates."""
    return part.plan.row_kind != "aggregate" and not any(source.relation for source in part.plan.sources)


class Subqueries:
    """All subqueries of a statement; `answers[i]` is the value of subquery i for an event."""

    def __init__(
        self,
        parts: Sequence[SubqueryPlan],
        catalog: Catalog,
        context: Context,
        warnings: Warnings,
        now_ms: int,
        shape: Shape,
        run: Run,
        tell: Tell,
    ) -> None:
        """`tell` is called for events that a subquery could not evaluate."""
        self.warnings = warnings
        self.queries: list[Correlated | Alone] = [
            Correlated(part, catalog, context, warnings, now_ms, shape, run, tell)
            if part.correlated or _keeps_rows(part)
            else Alone(part, catalog, context.rule_id, run, tell)
            for part in parts
        ]
        self.by_stream: dict[str, tuple[Take, ...]] = {}
        self.answers: list[Answer] = [
            self._answer(part, query) for part, query in zip(parts, self.queries, strict=True)
        ]

    def _answer(self, part: SubqueryPlan, query: Correlated | Alone) -> Answer:
        if isinstance(query, Correlated) and query.answer is not None:
            return query.answer
        if isinstance(query, Alone) and query.value is not None:
            value, statement = query.value, query.query
            return lambda event: value(statement)
        result = query.result
        if part.kind == "exists":
            return lambda event: bool(result(event))
        if part.kind == "rows":
            return result
        if part.kind == "list":
            return lambda event: [next(iter(row.values())) for row in result(event)]
        if part.kind == "row":
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

    def push(self, stream: str, row: Any, now_ms: int) -> None:
        """An event arrives, before the statement itself sees it."""
        for take in self.takes(stream):
            take(row, now_ms)

    def variable_changed(self, name: str, now_ms: int) -> None:
        """A variable has a new value."""
        for query in self.queries:
            query.variable_changed(name, now_ms)

    def advance(self, now_ms: int) -> None:
        """Time has come to `now_ms`."""
        for query in self.queries:
            query.advance(now_ms)

    def next_deadline(self) -> int | None:
        return earliest(query.next_deadline() for query in self.queries)

    def snapshot(self) -> Any:
        return [query.snapshot() for query in self.queries]

    def restore(self, state: Any) -> None:
        for query, part in zip(self.queries, state, strict=True):
            query.restore(part)
