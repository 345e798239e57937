"""The events before those at hand: prev and its kin read them in the order of the window, prior in that of
arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sql.algebra.event import Event, FixedValues
from sql.algebra.event_store import EventStore, pack_row, unpack_row
from sql.algebra.operator import Operator
from sql.codegen.functions import FunctionSet
from sql.compiler.statement.earlier import prior_depth
from sql.compiler.statement.statement_text import StatementText
from sql.errors import DataError
from sql.plan.bound import Bound, Const, PrevCall, Read
from sql.rows import MakeRow, columns_of
from sql.types import describe


class EarlierEvents:
    """The memory of one running statement of the events before the present one."""

    def __init__(
        self, text: StatementText, functions: FunctionSet | None = None, windows: Sequence[Operator] = ()
    ) -> None:
        """Without `functions` there is nothing before an event: each evaluation starts anew."""
        plan = text.plan
        self.aggregates, self.calls = len(plan.aggregates), plan.prevs
        self.windows = windows
        self.functions = functions
        self.values = [self._function(call.value) for call in plan.prevs]
        self.indexes = [self._function(call.index) for call in plan.prevs]
        self.noted: deque[Event] | None = None
        if text.earlier.notes_prior:
            self.noted = deque(maxlen=prior_depth(plan.prevs))
        """The newest events, where each has to keep those before it."""
        self.depth = text.earlier.depth
        self.keeps_left = text.earlier.keeps_left
        self.recent: deque[Any] = deque(maxlen=self.depth or 1)
        """The newest rows, and in `older` those that left the queue last, where
        `prior` is read in the text."""
        self.older: deque[Any] = deque(maxlen=self.depth or 1)
        self.queue: list[Event] = []
        """The content of the queue while it is shown, and in `places` where each event stands; else empty."""
        self.places: dict[Event, int] = {}

    def note(self, events: Iterable[Event]) -> None:
        """Events enter the window, in order; each keeps the ones before it."""
        assert self.noted is not None
        for event in events if self.noted.maxlen else ():
            before = tuple(Event(e.row, e.time_ms, e.seq) for e in reversed(self.noted))
            event.extra = FixedValues(event.extra or (), before)
            self.noted.append(event)

    def beside(self, event: Event, is_new: bool) -> list[Any]:
        """Values of prev calls for an event, at their offsets. On remove rows only `prior` is filled."""
        values: list[Any] = [None] * self.aggregates
        if self.functions is None or event.seq < 0:
            return values + [None] * len(self.calls)
        return values + [self._value(place, call, event, is_new) for place, call in enumerate(self.calls)]

    def _function(self, part: Bound | None) -> Any:
        if part is None or self.functions is None:
            return None
        found = self.functions.value(part)
        is_event = isinstance(part, Read) and part.column is None
        return (lambda event: columns_of(found(event))) if is_event else found

    def _value(self, place: int, call: PrevCall, event: Event, is_new: bool) -> Any:
        """prev, prevtail, prevcount, prevwindow or prior of an event."""
        value = self.values[place]
        if call.name == "prior":
            assert isinstance(call.index, Const)
            number, priors = call.index.value, self.before(event)
            if number == 0:
                return value(event)
            return value(priors[number - 1]) if number <= len(priors) else None
        if not is_new:
            return None
        sight = self.windows[call.source].view_from(event)
        if call.name == "prevcount":
            return len(sight)
        if call.name == "prevwindow":
            return [value(other) for other in sight]
        index = self.indexes[place](event)
        if index is None:
            return None
        if index.__class__ is not int:
            raise DataError(f"{call.name} takes a whole number of events, not {describe(index)}")
        found = sight.tail(index) if call.name == "prevtail" else sight.back(index, event)
        return None if found is None else value(found)

    def before(self, event: Event) -> Sequence[Event]:
        """The events before one, the nearest first: as noted when it came, or by its place in the queue."""
        if isinstance(event.extra, FixedValues):
            return event.extra.priors
        place = self.places.get(event)
        if place is None:
            return ()
        rows = [*self.older, *(other.row for other in self.queue[max(0, place - self.depth) : place])]
        return [Event(row, event.time_ms, event.seq) for row in reversed(rows[-self.depth :])]

    @contextmanager
    def queue_noted(self) -> Iterator[None]:
        """While the content is shown as it is now."""
        self.queue = list(self.windows[0].content()) if self.keeps_left else []
        self.places = {event: place for place, event in enumerate(self.queue)}
        try:
            yield
        finally:
            self.queue, self.places = [], {}

    # --- state ----------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        """The events that are kept for those that will come."""
        return self.noted or ()

    def snapshot(self) -> dict[str, Any]:
        return {
            "prior": [event.seq for event in self.held()],
            "recent": [pack_row(row) for row in self.recent],
            "older": [pack_row(row) for row in self.older],
        }

    def restore(self, snapshot: dict[str, Any], store: EventStore, make_row: MakeRow) -> None:
        if self.noted is not None:
            self.noted.extend(store.find(seq) for seq in snapshot["prior"])
        for kept, rows in ((self.recent, snapshot["recent"]), (self.older, snapshot.get("older", ()))):
            kept.extend(make_row(unpack_row(row)) for row in rows)
