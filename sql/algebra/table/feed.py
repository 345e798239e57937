"""A source of a query that a relation feeds with its changes, instead of a stream with events.

A query numbers events itself, and its operators may hold them, so each row of the relation becomes an event
of the query. The row itself is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.content_view import ContentView
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent, Operator
from sql.algebra.table.searched import WindowRelation
from sql.types import Saved


class Feed(Operator):
    """The rows of a named window that pass the filter, as events of the query."""

    departure = Removal.ANY

    def __init__(self, window: WindowRelation, arrive: Callable[[Any, int], Event | None]) -> None:
        """`window`: whose rows they are. `arrive` makes an event of a row, None for
        one that does not pass."""
        self.window = window
        self.arrive = arrive
        self.events: dict[Event, Event] = {}
        """The query's event by the relation's row."""

    def push(self, delta: Delta, now: int) -> list[Delta]:
        """The relation has changed. A partition that starts within a step may have begun with these rows."""
        inserted = []
        for row in delta.inserted:
            event = None if row in self.events else self.arrive(row.row, now)
            if event is not None:
                self.events[row] = event
                inserted.append(event)
        removed = [event for row in delta.removed if (event := self.events.pop(row, None)) is not None]
        return [Delta(inserted, removed)] if inserted or removed else []

    def content(self) -> Iterable[Event]:
        """The rows of the window, without those that have just left it, processed by the query or not."""
        rows = self.window.rows
        return [event for row, event in self.events.items() if row in rows]

    def held(self) -> Iterable[Event]:
        return self.events.values()

    def view_from(self, event: Event) -> ContentView:
        return ContentView(dict.fromkeys(self.events.values()))

    def snapshot(self) -> Saved:
        numbers = self.window.numbers()
        return [[numbers[row], event.seq] for row, event in self.events.items() if row in numbers]

    def restore(self, state: Saved, find: FindEvent) -> None:
        rows = {number: row for row, number in self.window.numbers().items()}
        self.events = {rows[number]: find(seq) for number, seq in state if number in rows}
