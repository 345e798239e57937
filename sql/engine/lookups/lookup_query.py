"""A rule behind its joins with tables of stores: events wait for answers, in order, and enter it with the
rows found.

An event whose answers are all known enters a query at once, with those of its batch,
and what acts on relations or variables in a step of its own.
The first that must wait holds up those behind it, whose requests are made meanwhile.
It waits `timeout_ms` for each table at most; then it goes on by the table's policy.
The result depends on events, answers and time only, so a replay repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.operator import earliest
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.shared_code import Environment, SharedCode
from sql.emission import Emission, Row
from sql.engine.lookups.lookup_table import Rows
from sql.engine.lookups.waiting_events import LookupJoin, WaitingEvents
from sql.engine.query import QueryDecorator, Running
from sql.plan.bound import Bound, Read, Slot, conjuncts
from sql.plan.logical import Plan
from sql.plan.lookup_plan import MARK, Refusal, Request, ready_stream
from sql.rows import as_dict


class LookupQuery(QueryDecorator):
    """Behaves like the query behind it, `query`, which runs on the events that carry the rows found."""

    def __init__(self, query: Running, env: Environment) -> None:
        super().__init__(query)
        self.catalog = env.catalog
        self.stream = self.plan.sources[0].stream
        self.ready: str | None = None if self.plan.acts is None else ready_stream(self.name)
        """The stream of the events that wait no more, of a statement that acts."""
        self.counts = {"events_in": 0}
        code = SharedCode(env, self.plan.options)
        self._context = code.context
        functions = code.function_set(text=self.plan.text, shape="dict")
        tables = env.catalog.lookup_tables
        joins = [LookupJoin(plan, tables[plan.table], functions) for plan in self.plan.lookups]
        self.events = WaitingEvents(self.name, joins, functions.failure)
        self._passes = [functions.true(part) for part in decided_before(self.plan)]

    # --- events, answers, time ------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive; those of other streams than the first need no answers."""
        if stream == self.ready:
            return self.query.push(self.stream, rows, now_ms)
        if stream != self.stream:
            return self.query.push(stream, rows, now_ms)
        self._context.now_ms = now_ms
        self.counts["events_in"] += len(rows)
        for row in rows:
            event = as_dict(row)
            if not self._passes or self._is_wanted(event, now_ms):
                self.events.enter(event, now_ms)
        return self._release(now_ms)

    def answered(self, request: Request, answer: Rows | Refusal, now_ms: int) -> list[Emission]:
        """A store has answered: the events that wait for this go on, in their order."""
        self._context.now_ms = now_ms
        self.events.answered(request, answer, now_ms)
        return self._release(now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        """Time moves: what is due in the rule is done, then events go on whose time to wait is over."""
        due_ms = self.query.next_deadline()
        out = self.query.advance(now_ms) if due_ms is not None and due_ms <= now_ms else []
        self._context.now_ms = now_ms
        return [*out, *self._release(now_ms)]

    def next_deadline(self) -> int | None:
        return earliest((self.query.next_deadline(), self.events.until_ms()))

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended: no further answer comes."""
        return [*self._release(now_ms, waiting_max=0), *self.query.flush(now_ms)]

    def _is_wanted(self, row: Row, now_ms: int) -> bool:
        """True if WHERE may let the event through, as far as it reads the event alone. The rule itself
        reports errors."""
        try:
            return all(passes(Event(row, now_ms, 0)) for passes in self._passes)
        except DATA_ERRORS:
            return True

    def _release(self, now_ms: int, waiting_max: int | None = None) -> list[Emission]:
        """Let events enter the rule that need not wait any more, together where none failed between."""
        out: list[Emission] = []
        ready: list[Row] = []
        for entry in self.events.leave(now_ms, waiting_max):
            if entry.error is not None:
                out += self._enter(ready, now_ms)
                ready = []
                out += self.query.reject(entry.row, str(entry.error), now_ms)
            else:
                ready += entry.rows or ()
        return [*out, *self._enter(ready, now_ms)]

    def _enter(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        if self.ready is None:
            return self.query.push(self.stream, rows, now_ms) if rows else []
        self.catalog.loop.forward(self.ready, rows, self.name)
        return []

    # --- state ----------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        waits = {"unanswered": self.events.unanswered, "asking": len(self.events.waiting)}
        return {**self.query.counters(), **self.counts, **waits}

    def snapshot(self) -> dict[str, Any]:
        waiting = [self.events.snapshot(), dict(self.counts), self.events.unanswered]
        return {**self.query.snapshot(), "asking": waiting}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.query.restore(snapshot)
        waiting, counts, self.events.unanswered = snapshot["asking"]
        self.counts |= counts
        self.events.restore(waiting)


def decided_before(plan: Plan) -> list[Bound]:
    """The parts of the filter and of WHERE that an event decides before any request for it: nothing else of
    the rule reads an event that they drop, and the part reads neither rows found nor the rule's state."""
    first = plan.trigger or plan.sources[0]
    others = {source.stream for source in plan.sources[1:]}.union(
        *(part.plan.reads for part in plan.subqueries)
    )
    if plan.mode != "delta" or plan.analytics or plan.hits or plan.timestamp or first.stream in others:
        return []
    where = None if plan.window or plan.joins or first.windows else plan.where
    return [part for part in (*conjuncts(first.filter), *conjuncts(where)) if _reads_event_only(part)]


def _reads_event_only(part: Bound) -> bool:
    return not any(
        isinstance(node, Slot) or (isinstance(node, Read) and (node.column or MARK).startswith(MARK))
        for node in part.walk()
    )
