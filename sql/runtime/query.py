"""A running query: events and time in, emissions out. The base of the three modes.

A query is driven by `push(stream, rows, now)`, `advance(now)` and `next_deadline()`. It keeps no clock: what is due
at or before an instant happens before that instant's events. One bad event never stops it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from sql.catalog.streams import Catalog
from sql.compiler.functions import DATA_ERRORS, FunctionSet
from sql.compiler.support import Warnings
from sql.errors import CorruptState, DataError
from sql.functions.registry import Context
from sql.plan.logical import Plan
from sql.rows import Shape, as_dict, as_dicts
from sql.runtime.analytic import AnalyticStage
from sql.runtime.emission import Emission, Out
from sql.runtime.hits import HitCounters
from sql.runtime.spreads import Spreads
from sql.runtime.state import EventStore
from sql.windows.event import Delta, Event

SNAPSHOT_VERSION = 1


class Retaining(Protocol):
    """What a budget asks of a query."""

    def retained(self) -> int: ...


class Budget:
    """Bounds how many events a query retains (`maxWindowEvents`).

    The events are counted only when those that came since the last count could have filled the bound. Once it is
    reached,
    a sixteenth of the bound is refused before they are counted again, so that counting stays cheap.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.room = limit
        self.refusing = 0

    def takes(self, query: Retaining, count: int) -> bool:
        """Take in so many events at once if they are surely not too many; else `admit` has to say so of each."""
        if self.refusing:
            return False
        if self.room < count:
            self.room = self.limit - query.retained()
        if self.room < count:
            return False
        self.room -= count
        return True

    def admit(self, query: Retaining) -> None:
        """Raise DataError where one more event would be too many."""
        self.room -= 1
        if self.room >= 0:
            return
        if self.refusing == 0:
            self.room = self.limit - query.retained() - 1
            if self.room >= 0:
                return
            self.refusing = self.limit // 16
        else:
            self.refusing -= 1
        raise DataError(f"the rule retains {self.limit} events; raise maxWindowEvents or shorten its window")

    def snapshot(self) -> Any:
        return [self.limit, self.room, self.refusing]

    def restore(self, state: Any) -> None:
        """Go on as before the snapshot; with another bound, or none stored, the next event makes it count anew."""
        if state is not None and state[0] == self.limit:
            self.room, self.refusing = state[1:]
        else:
            self.room = 0


class Query(ABC):
    """What all modes share: events with their numbers, analytic functions, errors, counters, state."""

    steps_itself = False
    """Whether `advance` goes through every due instant up to now by itself."""

    takes_times = False
    """Whether `push_timed` takes events with their own time stamps, many at a time."""

    takes_lots = False
    """Whether rows that come from another query together are one step (stream queries)."""

    def __init__(self, name: str, plan: Plan, catalog: Catalog, *, now_ms: int, shape: Shape = "dict",
                 make_row: Callable[[dict[str, Any]], Any] | None = None,
                 partition: Sequence[Any] | None = None, pulls: bool = False) -> None:  # fmt: skip
        """`pulls`: named windows are only looked into, and do not feed the query."""
        self.pulls = pulls
        self.name = name
        self.plan = plan
        self.catalog = catalog
        self.shape = shape
        self.make_row = make_row or (lambda row: row)
        self.now_ms = now_ms
        self.context = Context(now_ms=now_ms, zone=plan.options.zone_info(), rule_id=name, start_ms=now_ms,
                               partition=partition)  # fmt: skip
        self.warnings = Warnings()
        self.errors: list[Emission] = []
        self.counts = {"events_in": 0, "rows_out": 0, "errors": 0}
        self.seq = 0
        self.budget = Budget(plan.options.max_window_events)
        self.hits = HitCounters(plan.hits)
        self.spreads = Spreads(plan.spreads) if plan.spreads else None
        self.functions = FunctionSet(
            catalog,
            self.context,
            self.warnings,
            shape=shape,
            joined=plan.reads_tuples,
            offsets=_offsets(plan),
            text=plan.text,
            hits=self.hits,
        )
        self.analytic: AnalyticStage | None = None
        if plan.analytics:
            self.analytic = AnalyticStage(plan.analytics, self.functions, plan.options.max_groups)

    # --- driving ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one stream arrive, in order, at `now_ms`. Everything due by then has been done."""

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed, all of them before anything is computed from one."""
        raise AssertionError(f"{type(self).__name__} reads no named window")

    def arriving(self, stream: str, row: Any, now_ms: int) -> None:
        """An event arrives: filters that read relations are evaluated before any statement has acted on it."""

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows that another query gave out together arrive."""
        return self.push(stream, rows, now_ms)

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Events of the only stream with their time stamps, which never decrease; what is due is done before each."""
        raise AssertionError(f"a {type(self).__name__} takes events one by one")

    @abstractmethod
    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due at or before `now_ms`, once."""

    @abstractmethod
    def next_deadline(self) -> int | None:
        """The earliest instant at which `advance` has something to do."""

    def terminate(self, now_ms: int) -> list[Emission]:
        """The context partition it runs in ends; what it still gives out. Nothing comes after it."""
        return []

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended."""
        return []

    def leave(self) -> None:
        """Work alone from now on, with a copy of what was done together with other rules."""

    def variable_changed(self, name: str) -> None:
        """A variable has a new value; what that causes is posted at the next advance of time."""

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the content at `now_ms`, between two steps; of a batch window what it collects."""
        return []

    # --- events and errors --------------------------------------------------------------------------------------------

    def new_event(self, row: Any, time_ms: int) -> Event:
        """An event with the next number."""
        self.seq += 1
        return Event(row, time_ms, self.seq)

    def arrive(self, row: Any, time_ms: int) -> Event | None:
        """An event with its analytic values; None where those could not be evaluated."""
        event = self.new_event(row, time_ms)
        self.context.now_ms = time_ms
        if self.analytic is not None:
            try:
                self.analytic.see(event)
            except DATA_ERRORS as error:
                self.on_error(event, error)
                return None
        return event

    def on_error(self, event: Event, error: BaseException, at_ms: int | None = None) -> None:
        """An event could not be evaluated, now or at a look's instant: counted, and an emission of its own."""
        self.counts["errors"] += 1
        failure = self.functions.failure(error)
        at_ms = self.now_ms if at_ms is None else at_ms
        self.errors.append(Emission(self.name, at_ms, "error", [plain_row(event.row)], (), str(failure)))

    def reject(self, row: Any, why: str, now_ms: int) -> list[Emission]:
        """An event was refused before it came here: counted, and an emission of its own."""
        self.counts["events_in"] += 1
        self.counts["errors"] += 1
        return [Emission(self.name, now_ms, "error", [plain_row(row)], (), why)]

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        """Leave out results that come too late (`catchUp: skip`), and count them as skipped; errors remain."""
        skipped = sum(len(emission.inserted) for emission in emissions if emission.kind == "rows")
        self.counts["rows_out"] -= skipped
        self.counts["rows_skipped"] = self.counts.get("rows_skipped", 0) + skipped
        return [emission for emission in emissions if emission.kind != "rows"]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A look at the content, which changes nothing: what cannot be evaluated in it was told when it came."""
        told, counted = len(self.errors), self.counts["errors"]
        yield
        del self.errors[told:]
        self.counts["errors"] = counted

    def take_errors(self) -> list[Emission]:
        """The error emissions since the last call."""
        out, self.errors = self.errors, []
        return out

    def counters(self) -> dict[str, int]:
        """What happened so far."""
        several = self.warnings.several_rows
        odd = {"division_by_zero": self.warnings.division_by_zero} | ({"several_rows": several} if several else {})
        return {**self.counts, **odd, "retained": self.retained()}

    def retained(self) -> int:
        """How many events the query holds."""
        return sum(1 for _ in self.held())

    # --- state --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def held(self) -> Iterable[Event]:
        """Every event the state refers to."""

    @abstractmethod
    def _state(self) -> Any: ...

    @abstractmethod
    def _put_back(self, state: Any, store: EventStore) -> None: ...

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data."""
        store = EventStore()
        store.add(self.held())
        return {
            "version": SNAPSHOT_VERSION,
            "fingerprint": self.plan.fingerprint,
            "now": self.now_ms,
            "seq": self.seq,
            "start": self.context.start_ms,
            "counts": dict(self.counts),
            "budget": self.budget.snapshot(),
            "analytic": None if self.analytic is None else self.analytic.snapshot(),
            "hits": self.hits.snapshot(),
            "spreads": None if self.spreads is None else self.spreads.snapshot(),
            "state": self._state(),
            "events": store.pack(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back into a query just made; CorruptState where it does not fit."""
        if snapshot.get("version") != SNAPSHOT_VERSION:
            raise CorruptState(f"snapshot version {snapshot.get('version')!r} is not {SNAPSHOT_VERSION}")
        if snapshot.get("fingerprint") != self.plan.fingerprint:
            raise CorruptState("the snapshot is of another plan")
        store = EventStore()
        store.unpack(snapshot["events"], self.make_row)
        self.now_ms = snapshot["now"]
        self.seq = snapshot["seq"]
        self.context.start_ms = snapshot["start"]
        self.counts |= snapshot["counts"]
        self.budget.restore(snapshot.get("budget"))
        if self.analytic is not None:
            self.analytic.restore(snapshot["analytic"])
        self.hits.restore(snapshot["hits"])
        if self.spreads is not None:
            self.spreads.restore(snapshot["spreads"])
        self._put_back(snapshot["state"], store)


def _offsets(plan: Plan) -> dict[str, int]:
    """Where aggregates, prev calls and row numbers stand in the list of values."""
    aggregates, prevs = len(plan.aggregates), len(plan.prevs)
    return {"aggregate": 0, "prev": aggregates, "row_number": aggregates + prevs}


def plain_row(row: Any) -> dict[str, Any]:
    if isinstance(row, tuple):
        present = [side for side in row if side is not None]
        if len(present) == 1 and not isinstance(present[0], list):
            return plain_row(present[0])
        return {str(i): as_dicts(side) if isinstance(side, list) else plain_row(side)
                for i, side in enumerate(row) if side is not None}  # fmt: skip
    return {} if row is None else dict(as_dict(row))


def in_order(rows: list[Out], plan: Plan, limit: tuple[int | None, int], spreads: Spreads | None = None
             ) -> list[dict[str, Any]]:  # fmt: skip
    """ORDER BY, the functions that make rows and columns, DISTINCT and LIMIT of one output batch."""
    if plan.order_by:
        rows = sorted(rows, key=lambda row: row.order)
    out = [row.row for row in rows]
    if spreads is not None:
        out = spreads.apply(out)
    if plan.distinct:
        out = _distinct(out)
    count, offset = limit
    if count is None and not offset:
        return out
    return out[offset:] if count is None else out[offset : offset + count]


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from sql.types import key_of

    seen = set()
    out = []
    for row in rows:
        key = key_of(row)
        if key not in seen:
            seen.add(key)
            out.append(row)
    return out


def row_limit(plan: Plan, functions: FunctionSet) -> tuple[int | None, int]:
    """LIMIT (None: no limit; negative in EPL too) and OFFSET with the present values of variables."""
    from sql.compiler.functions import constant_value

    limit = constant_value(plan.limit, functions)
    offset = constant_value(plan.offset, functions) or 0
    return (None if limit is None or limit < 0 else limit), max(0, offset)
