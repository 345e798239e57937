"""The contract of operators: deterministic state machines that time and deltas drive.

An operator never reads a clock. The runtime calls `advance(now)` for what is due at or before `now` —
before it hands over the events of that instant — and sleeps until `next_deadline()`. The state can be taken
and put back between any two calls: `run(a + b) == restore(snapshot(run(a)))` followed by b.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from sql.aggregates.base import Removal
from sql.algebra.content_view import NOTHING, ContentView
from sql.algebra.event import Delta, Event
from sql.types import Saved

FindEvent = Callable[[int], Event]
"""Finds a retained event by its `seq`, while a snapshot is restored."""


class Operator(ABC):
    """A stage between a stream and the rows of a query."""

    departure: Removal = Removal.ANY
    """The order in which events leave: lets the planner pick the cheapest aggregate structure."""

    has_timers = True
    """True if time alone may change something."""

    defers = False
    """True if no event that arrives brings a deadline forward that is set."""

    is_net = False
    """True if no event comes and leaves in one of its deltas."""

    @abstractmethod
    def push(self, delta: Delta, now: int) -> list[Delta]:
        """Take in a delta at `now`; the partial updates it causes, in order."""

    def next_deadline(self) -> int | None:
        """The earliest instant at which `advance` would change something; None when only events can."""
        return None

    def advance(self, now: int) -> list[Delta]:
        """Do what is due at or before `now`."""
        return []

    def content(self) -> Iterable[Event]:
        """The events of the relation, in the window's order."""
        return ()

    def posted(self) -> Iterable[Event]:
        """The events that have entered for what reads the relation, and not left."""
        return self.content()

    def depends_on(self, variable: str) -> bool:
        """True if a change of this variable may release or expel something."""
        return False

    def variable_changed(self, now: int) -> list[Delta]:
        """Time goes on after a variable has changed: what that releases or expels."""
        return []

    def end_step(self) -> None:  # only batches care
        """The step has ended: all rows it causes have been made."""

    def view_from(self, event: Event) -> ContentView:
        """The events that `prev` reads from an event."""
        return NOTHING

    def is_blank(self) -> bool:
        """True if dropping this instance and making a new one later could not be observed."""
        return False

    def snapshot(self) -> Saved:
        """The state as plain data, events as their `seq`."""
        return None

    def restore(self, state: Saved, find: FindEvent) -> None:
        """Put a snapshot back into a fresh operator."""

    def held(self) -> Iterable[Event]:
        """Every event the state refers to, so that a snapshot stores each once."""
        return self.content()


class Pass(Operator):
    """No window: events are current for their own step only."""

    departure = Removal.NEVER
    has_timers = False

    def push(self, delta: Delta, now: int) -> list[Delta]:
        return [delta]

    def is_blank(self) -> bool:
        return True


class Current(Pass):
    """No window in a stream query: an item is current for its own step and leaves at the next one."""

    departure = Removal.FIFO


class LastRow(Pass):
    """No window, but the last row can be read (`@IterableUnbound`)."""

    def __init__(self) -> None:
        self.last: Event | None = None

    def push(self, delta: Delta, now: int) -> list[Delta]:
        if delta.inserted:
            self.last = delta.inserted[-1]
        return [delta]

    def content(self) -> Iterable[Event]:
        return () if self.last is None else (self.last,)

    def snapshot(self) -> int | None:
        return None if self.last is None else self.last.seq

    def restore(self, state: int | None, find: FindEvent) -> None:
        self.last = None if state is None else find(state)

    def is_blank(self) -> bool:
        return self.last is None


class Composed(Operator):
    """An operator of several: what concerns each of them by itself."""

    members: Sequence[Operator]

    def next_deadline(self) -> int | None:
        return earliest(member.next_deadline() for member in self.members)

    def depends_on(self, variable: str) -> bool:
        return any(member.depends_on(variable) for member in self.members)

    def is_blank(self) -> bool:
        return all(member.is_blank() for member in self.members)

    def snapshot(self) -> Saved:
        return [member.snapshot() for member in self.members]

    def restore(self, state: Saved, find: FindEvent) -> None:
        for member, part in zip(self.members, state, strict=True):
            member.restore(part, find)


class Chain(Composed):
    """One operator after the other: the deltas of each are the input of the next."""

    def __init__(self, *members: Operator) -> None:
        self.members = members
        self.departure = members[-1].departure

    def push(self, delta: Delta, now: int) -> list[Delta]:
        return self._through(0, [delta], now)

    def _through(self, first: int, deltas: list[Delta], now: int) -> list[Delta]:
        for stage in self.members[first:]:
            deltas = [out for delta in deltas for out in stage.push(delta, now)]
        return deltas

    def advance(self, now: int) -> list[Delta]:
        out: list[Delta] = []
        for index, stage in enumerate(self.members):
            out += self._through(index + 1, stage.advance(now), now)
        return out

    def variable_changed(self, now: int) -> list[Delta]:
        out: list[Delta] = []
        for index, stage in enumerate(self.members):
            out += self._through(index + 1, stage.variable_changed(now), now)
        return out

    def content(self) -> Iterable[Event]:
        return self.members[-1].content()

    def posted(self) -> Iterable[Event]:
        return self.members[-1].posted()

    def held(self) -> Iterable[Event]:
        return (event for stage in self.members for event in stage.held())

    def view_from(self, event: Event) -> ContentView:
        return self.members[0].view_from(event)

    def end_step(self) -> None:
        for stage in self.members:
            stage.end_step()


def earliest(deadlines: Iterable[int | None]) -> int | None:
    """The smallest deadline that is set."""
    return min((deadline for deadline in deadlines if deadline is not None), default=None)
