"""Retain: events enter a relation; a policy makes them leave.

A policy is the whole difference between two windows that let events in at once. Each is an operator, so that one alone
is a window; `sql.algebra.meet` combines several.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.inline import Inline
from sql.codegen.source import SourceWriter


class Policy(Inline):
    """Decides which events of a relation leave, and when. Holds the relation's events."""

    departure: Removal = Removal.FIFO
    ranked = False
    """Whether `content` is in rank order (sort, rank, time_order) instead of order of arrival."""

    expels_arrivals = False
    """Whether `insert` may give back the event that arrives; then it alone."""

    def admits(self, event: Event, now: int) -> bool:
        """Whether the event may enter at all (first-type windows refuse). Raises what `insert` would raise of it, so
        that no other window has it then."""
        return True

    @abstractmethod
    def insert(self, event: Event, now: int) -> list[Event]:
        """The event enters; what leaves because of it, perhaps itself."""

    def enter(self, event: Event, now: int) -> list[Event] | None:
        return self.insert(event, now) if self.admits(event, now) else None

    @property
    def refuses(self) -> bool:
        """Whether there are events that it does not admit."""
        return type(self).admits is not Policy.admits

    def write_load(self, source: SourceWriter, place: str) -> None:
        source.line(f"enter = {place}.{'enter' if self.refuses else 'insert'}")

    @abstractmethod
    def discard(self, event: Event) -> bool: ...

    def lone(self) -> Policy:
        """The same window, where it is the only one of its statement and nothing but the loop changes it."""
        return self

    def expel(self) -> list[Event]:
        """A variable has changed: what leaves."""
        return []

    def expire(self, now: int) -> list[Event]:
        """What leaves at or before `now` by time alone, in order."""
        return []

    def advance(self, now: int) -> list[Delta]:
        removed = self.expire(now)
        return [Delta((), removed)] if removed else []

    def variable_changed(self, now: int) -> list[Delta]:
        expelled = self.expel()
        return [Delta((), expelled)] if expelled else []

    def is_blank(self) -> bool:
        return not any(True for _ in self.content())

    def snapshot(self) -> Any:
        return [event.seq for event in self.content()]
