"""Derived-value windows: size, uni, linest, correl, weighted_avg. They keep no events; they
post one row per update.

The new row is the current statistic, the old row the previous one. Extra expressions add values of the last
arriving event, named by their text; `*` adds all its columns (epl.md section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypedDict

from sql.aggregates.base import Accumulator, EventView
from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import UNSEEN, Delta, Event
from sql.algebra.operator import FindEvent, Operator
from sql.codegen.functions import DATA_ERRORS
from sql.emission import Row
from sql.errors import DataError, Span
from sql.types import Plain, Saved


class Size(Accumulator):
    """The number of events."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, value: object, event: EventView) -> None:
        self.count += 1

    def remove(self, value: object, event: EventView) -> None:
        self.count -= 1

    def result(self) -> Row:
        return {"size": self.count}

    def snapshot(self) -> int:
        return self.count

    def restore(self, state: int, events: Callable[[int], EventView]) -> None:
        self.count = state


class Owner(Protocol):
    """The owner of a window numbers the events that the window makes, and reports those it refuses."""

    def new_event(self, row: object, time_ms: int) -> Event: ...
    def fail(self, row: object, error: BaseException) -> None: ...


class NoOwner:
    """The owner of windows that make no events: those of a named window,
    and of a text without an instance."""

    def new_event(self, row: object, time_ms: int) -> Event:
        raise AssertionError("these windows make no events of their own")

    def fail(self, row: object, error: BaseException) -> None:
        raise AssertionError("these windows refuse no events") from error


class DerivedState(TypedDict):
    """The statistic, its last row, and the number of the event that shows it."""

    statistic: Saved
    last: Plain
    current: int | None


class Derived(Operator):
    """Folds deltas into a statistic and posts its row before and after.

    An event whose value the statistic refuses is reported when it comes and counts nowhere, so nothing of it
    is taken out when it leaves.

    statistic  an accumulator whose result is the row
    value   the argument(s) of the statistic for an event
    extras  the extra columns for an event; for None their names with NULL
    owner   the statement around it
    key     the columns a groupwin adds, fixed for the instance
    changes_only   post only when the properties differ from before (size)
    place   of the window in the text, to which a value that the statistic refuses belongs
    """

    def __init__(
        self,
        statistic: Accumulator,
        value: Callable[[Event], Any],
        extras: Callable[[Event | None], Row],
        owner: Owner,
        key: Row,
        changes_only: bool,
        place: Span,
    ) -> None:
        self.statistic = statistic
        self.value = value
        self.extras = extras
        self.owner = owner
        self.changes_only = changes_only
        self.place = place
        self.blank: Row = {**key, **statistic.result(), **extras(None)}
        """The row of no event."""
        self.last = self.blank
        self.current: Event | None = None

    def push(self, delta: Delta, now: int) -> list[Delta]:
        came = self._counted(delta.inserted)
        left = [event for event in delta.removed if self._taken_out(event)]
        if not (came or left) and (delta.inserted or delta.removed):
            return []
        before, properties = self.last, self.statistic.result()
        self.last = {**(self.blank if came else before), **properties}
        if came:
            self.last.update(self.extras(came[-1]))
        if self.changes_only and all(before[name] == value for name, value in properties.items()):
            return []
        old = self.current or self._first(before, now)
        self.current = self.owner.new_event(self.last, now)
        return [Delta([self.current], [old])]

    def _counted(self, events: Iterable[Event]) -> list[Event]:
        """Those of some events that the statistic takes."""
        taken = []
        for event in events:
            try:
                self.statistic.add(self.value(event), event)
            except DataError as error:
                self.owner.fail(event.row, error.at(self.place))
            except DATA_ERRORS as error:
                self.owner.fail(event.row, error)
            else:
                taken.append(event)
        return taken

    def _taken_out(self, event: Event) -> bool:
        """Take a leaving event out; False for one that was refused as it came."""
        try:
            self.statistic.remove(self.value(event), event)
        except DATA_ERRORS:
            return False
        return True

    def _first(self, row: Row, now: int) -> Event:
        """The statistic of nothing, which leaves as the first row comes."""
        event = self.owner.new_event({**row, **self.extras(None)}, now)
        event.group = UNSEEN
        return event

    def content(self) -> Iterable[Event]:
        """The present row: before any event that of nothing; one not posted where only extras differ."""
        posted = self.current
        return (posted if posted is not None and posted.row == self.last else Event(self.last, 0, -1),)

    def held(self) -> Iterable[Event]:
        return () if self.current is None else (self.current,)

    def snapshot(self) -> DerivedState:
        current = None if self.current is None else self.current.seq
        return {"statistic": self.statistic.snapshot(), "last": encode(self.last), "current": current}

    def restore(self, state: DerivedState, find: FindEvent) -> None:
        self.statistic.restore(state["statistic"], find)
        self.last = decode(state["last"])
        self.current = None if state["current"] is None else find(state["current"])
        if self.current is not None and encode(self.current.row) == state["last"]:
            self.last = self.current.row  # decoded apart, a NaN in them would make two rows of one
