"""Retain: events enter a relation; a policy makes them leave.

A policy is the whole difference between two windows that let events in at once. Each is an operator, so that
one alone is a window, whose statements a loop can write: in the text `window` is the container, `x` the event
that enters, `y` one that leaves. `sql.algebra.intersect` combines several.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.operator import Operator
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Saved

WriteLeaving = Callable[[], None]
"""Writes the statements for the event `y`, which leaves."""


class Policy(Operator):
    """Decides which events of a relation leave, and when. Holds the relation's events.

    Unless it has statements of its own, the loop calls `enter`.
    """

    departure: Removal = Removal.FIFO
    has_timers = False
    leaves_on_arrival = True
    """True if an event may leave in the step in which another enters."""

    ranked = False
    """True if `content` is in rank order (sort, rank, time_order) instead of order of arrival."""

    is_queue = False
    """True if `window` in the text is a queue in order of arrival."""

    expels_arrivals = False
    """True if `insert` may give back the event that arrives; as the first one only if it leaves alone."""

    @property
    def needs_event(self) -> bool:
        """True if the event must exist before it is known whether it enters."""
        return True

    def admits(self, event: Event, now: int) -> bool:
        """True if the event may enter at all (first-type windows refuse). Raises what `insert` would raise of
        it, so that no other window has it then."""
        return True

    @property
    def refuses(self) -> bool:
        """True if there are events that it does not admit."""
        return type(self).admits is not Policy.admits

    @abstractmethod
    def insert(self, event: Event, now: int) -> list[Event]:
        """The event enters; what leaves because of it, perhaps itself."""

    def enter(self, event: Event, now: int) -> list[Event] | None:
        """The event enters, unless it is refused (None); what leaves because of it."""
        return self.insert(event, now) if self.admits(event, now) else None

    @property
    def entry(self) -> Callable[[Event, int], list[Event] | None]:
        """The function by which events enter, without a question where none is refused."""
        return self.enter if self.refuses else self.insert

    @abstractmethod
    def discard(self, event: Event) -> bool:
        """The event leaves for another reason; whether it was held."""

    def expel(self) -> list[Event]:
        """A variable has changed: what leaves."""
        return []

    def expire(self, now: int) -> list[Event]:
        """The events that leave at or before `now` by time alone, in order."""
        return []

    # --- as an operator -------------------------------------------------------------------------------------

    def push(self, delta: Delta, now: int) -> list[Delta]:
        removed = [event for event in delta.removed if self.discard(event)]
        inserted = []
        for event in delta.inserted:
            left = self.enter(event, now)
            if left is not None:
                inserted.append(event)
                removed += left
        return [Delta(inserted, removed)] if inserted or removed else []

    def advance(self, now: int) -> list[Delta]:
        removed = self.expire(now)
        return [Delta((), removed)] if removed else []

    def variable_changed(self, now: int) -> list[Delta]:
        expelled = self.expel()
        return [Delta((), expelled)] if expelled else []

    def is_blank(self) -> bool:
        return not any(True for _ in self.content())

    def snapshot(self) -> Saved:
        return [event.seq for event in self.content()]

    # --- in the loop ----------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter, place: str) -> None:
        """Before the loop: what the statements use; `place` is the text of the window."""
        source.line(f"enter = {place}.entry")

    def write_prepare(self, loop: LoopWriter) -> None:
        """Write the statements that may fail, before anything else changes;
        `continue` where the event is refused."""
        loop.line("left = enter(x, now)")
        if self.refuses:
            with loop.source.block("if left is None:"):
                loop.line("continue")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        """The event enters; whatever leaves because of it."""
        with source.block("for y in left:"):
            leave()

    def write_end(self, source: SourceWriter, place: str) -> None:  # most have nothing left to do
        """After the loop."""
