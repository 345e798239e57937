"""The queue of events that wait for answers, in the order of their arrival; and one join: the key of an
event, and the events that an answer makes of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from sql.algebra.event import Event
from sql.algebra.event_store import pack_row, unpack_row
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.emission import Row
from sql.engine.lookups.lookup_table import LookupTable, Rows
from sql.errors import DataError
from sql.plan.lookup_plan import LookupPlan, Refusal, Request

KEYS = frozenset((str, int, float, bool))
"""The types of keys that stores accept."""


class LookupJoin:
    """The compiled form of an `LookupPlan`."""

    def __init__(self, plan: LookupPlan, table: LookupTable, functions: FunctionSet) -> None:
        self.table = table
        self._plan = plan
        self._values = [functions.value(value) for value in plan.values]
        self._passes: Callable[..., Any] | None = None if plan.rest is None else functions.true(plan.rest)

    def request(self, row: Row, now_ms: int) -> Request | None:
        """The request for an event; None where its key is NULL or NaN, which equals nothing.
        DataError for a key that is a list or an object."""
        event = Event(row, now_ms, 0)
        key = tuple([value(event) for value in self._values])
        is_key = True
        for value in key:
            if value is None or value != value:
                return None
            is_key = is_key and value.__class__ in KEYS
        if not is_key:
            raise DataError(f"table '{self.table.name}' cannot be asked for a list or an object")
        return Request(self.table.name, self._plan.columns, key)

    def joined(self, row: Row, found: Rows, now_ms: int) -> list[Row]:
        """The event, once with each row found that meets ON; without any the event with NULL, or none. For a
        subquery the event with the list of them."""
        column = self._plan.column
        if self._plan.gathers:
            return [{**row, column: list(found)}]
        rows = [{**row, column: item} for item in found]
        if self._passes is not None:
            rows = [item for item in rows if self._passes(Event(item, now_ms, 0))]
        return rows or ([{**row, column: None}] if self._plan.keeps else [])


class WaitingEvent(Struct, eq=False):
    """An event that has not entered the rule.

    since_ms   when the requests under way were made
    answers    what is known for it so far
    missing    requests without an answer
    rows       what it became: the event with the rows found; None while it waits
    error      why it became nothing
    """

    row: Row
    since_ms: int
    answers: dict[Request, Rows] = field(default_factory=dict)
    missing: dict[Request, None] = field(default_factory=dict)
    rows: list[Row] | None = None
    error: Exception | None = None


class WaitingEvents:
    """The events of one rule that wait, and what each waits for."""

    def __init__(
        self, rule: str, joins: Sequence[LookupJoin], failure: Callable[[BaseException], Exception]
    ) -> None:
        """`failure` gives an error its position in the rule."""
        self.waiting: deque[WaitingEvent] = deque()
        self.unanswered = 0
        """The number of requests that were refused or had no answer in time."""
        self._rule = rule
        self._joins = joins
        self._tables = {join.table.name: join.table for join in joins}
        self._wanting: dict[Request, dict[WaitingEvent, None]] = {}
        """The events that wait for each answer."""
        self._failure = failure

    def enter(self, row: Row, now_ms: int) -> None:
        entry = WaitingEvent(row, now_ms)
        self._look_up(entry, now_ms)
        self.waiting.append(entry)

    def answered(self, request: Request, answer: Rows | Refusal, now_ms: int) -> None:
        for entry in list(self._wanting.get(request, ())):
            if isinstance(answer, Refusal):
                self._go_without(entry, request, f"refused {_said(request)}: {answer.reason}")
            else:
                self._take(entry, request, answer)
            self._complete(entry, now_ms)

    def until_ms(self) -> int | None:
        """When the first event goes on without the answers that it lacks."""
        return self._until_ms(self.waiting[0]) if self.waiting else None

    def leave(self, now_ms: int, waiting_max: int | None = None) -> Iterator[WaitingEvent]:
        """The first events that need not wait any more, in order; of more than `waiting_max` (None: what the
        tables allow) the first one goes without its answers."""
        if waiting_max is None:
            waiting_max = min(table.policy.waiting_max for table in self._tables.values())
        while self.waiting:
            entry = self.waiting[0]
            is_crowded = len(self.waiting) > waiting_max
            while entry.missing and (is_crowded or now_ms >= self._until_ms(entry)):
                self._stop_waiting(entry, now_ms, at_once=is_crowded)
            if entry.missing:
                return
            yield self.waiting.popleft()

    # --- one event ------------------------------------------------------------------------------------------

    def _look_up(self, entry: WaitingEvent, now_ms: int) -> None:
        """Find what the event becomes, or name the requests that it waits for."""
        rows = [entry.row]
        try:
            for join in self._joins:
                found: list[Row] = []
                for row in rows:
                    request = join.request(row, now_ms)
                    answer = () if request is None else self._answer(entry, request, now_ms)
                    found += [] if answer is None else join.joined(row, answer, now_ms)
                if entry.missing:
                    entry.since_ms = now_ms
                    return
                rows = found
            entry.rows = rows
        except DATA_ERRORS as error:
            entry.error = self._failure(error)

    def _answer(self, entry: WaitingEvent, request: Request, now_ms: int) -> Rows | None:
        answer = entry.answers.get(request)
        if answer is None:
            answer = self._tables[request.table].known(request, now_ms)
            if answer is None:
                self._wait(entry, request)
            else:
                entry.answers[request] = answer
        return answer

    def _wait(self, entry: WaitingEvent, request: Request) -> None:
        entry.missing[request] = None
        self._wanting.setdefault(request, {})[entry] = None
        self._tables[request.table].want(request, self._rule)

    def _until_ms(self, entry: WaitingEvent) -> int:
        waits = [self._tables[request.table].policy.timeout_ms for request in entry.missing]
        return entry.since_ms + min(waits, default=0)

    def _stop_waiting(self, entry: WaitingEvent, now_ms: int, *, at_once: bool) -> None:
        """The time to wait for some answers is over."""
        for request in list(entry.missing):
            timeout_ms = self._tables[request.table].policy.timeout_ms
            if at_once or now_ms >= entry.since_ms + timeout_ms:
                self._go_without(
                    entry, request, f"did not answer for {_said(request)} within {timeout_ms} ms"
                )
        self._complete(entry, now_ms)

    def _go_without(self, entry: WaitingEvent, request: Request, why: str) -> None:
        """An event gets no answer: it goes on by the policy of the table."""
        table = self._tables[request.table]
        self.unanswered += 1
        table.counts["unanswered"] += 1
        self._take(entry, request, ())
        if table.policy.unanswered == "error" and entry.error is None:
            entry.error = DataError(f"table '{table.name}' {why}")

    def _take(self, entry: WaitingEvent, request: Request, rows: Rows) -> None:
        entry.answers[request] = rows
        del entry.missing[request]
        del self._wanting[request][entry]
        if not self._wanting[request]:
            del self._wanting[request]
            self._tables[request.table].give_up(request, self._rule)

    def _complete(self, entry: WaitingEvent, now_ms: int) -> None:
        if not entry.missing and entry.error is None:
            self._look_up(entry, now_ms)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        """The events that wait, as plain data."""
        return [
            [
                pack_row(entry.row),
                entry.since_ms,
                [[*request, [pack_row(row) for row in rows]] for request, rows in entry.answers.items()],
                [list(request) for request in entry.missing],
                None if entry.error is None else str(entry.error),
            ]
            for entry in self.waiting
        ]

    def restore(self, packed: list[Any]) -> None:
        """Put the events of a snapshot back; what they wait for is wanted again."""
        for row, since_ms, answers, missing, error in packed:
            entry = WaitingEvent(unpack_row(row), since_ms)
            entry.answers = {
                _request(name, columns, key): [unpack_row(item) for item in rows]
                for name, columns, key, rows in answers
            }
            for parts in missing:
                self._wait(entry, _request(*parts))
            if error is not None:
                entry.error = DataError(error)
            elif not entry.missing:
                self._look_up(entry, since_ms)
            self.waiting.append(entry)


def _request(table: str, columns: Iterable[str], key: Iterable[Any]) -> Request:
    return Request(table, tuple(columns), tuple(key))


def _said(request: Request) -> str:
    return ", ".join(
        f"{column} = {value!r}" for column, value in zip(request.columns, request.key, strict=True)
    )
