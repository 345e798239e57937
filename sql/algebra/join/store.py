"""The rows of one side of a join, as joins look them up: kept here, or in a named window or table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.buckets import items_of
from sql.algebra.event import Delta, Event
from sql.algebra.operator import Operator
from sql.algebra.table.index import Indexes
from sql.algebra.table.lookup import Name
from sql.algebra.table.searched import Bucket, FindRange, KeyIndex, ReadAhead, Searched, WindowRelation
from sql.algebra.table.sorted_rows import Span
from sql.rows import Shape

Passes = Callable[[Event], Any] | None


class Rows:
    """Rows kept here, by integrating the changes of the source's windows."""

    pulled = False
    of_relation = False

    def __init__(self, shape: Shape = "dict") -> None:
        self.events: dict[Event, None] = {}
        self.indexes = Indexes(shape)

    def content(self) -> Iterable[Event]:
        return self.events

    def by_key(self, equal: tuple[Name, ...]) -> KeyIndex:
        return self.indexes.by_key(equal, self.events).lookups

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> FindRange:
        return self.indexes.in_order(equal, ordered, self.events).find

    def change(self, delta: Delta) -> None:
        for event in delta.inserted:
            self.add(event)
        for event in delta.removed:
            self.remove(event)

    def add(self, event: Event) -> None:
        self.events[event] = None
        for index in self.indexes.all:
            index.add(event)

    def remove(self, event: Event) -> bool:
        """A row left; whether it was there."""
        if event not in self.events:
            return False
        del self.events[event]
        for index in self.indexes.all:
            index.remove(event)
        return True


class Pulled(Operator):
    """Rows of a named window or a table that are only looked up: nothing of them is kept here, and nothing
    that happens to them makes rows."""

    departure = Removal.ANY
    pulled = True
    of_relation = True

    def __init__(self, relation: Searched, passes: Passes) -> None:
        """`passes`: the filter in parentheses, if there is one."""
        self.relation = relation
        self.passes = passes
        self.own: Callable[[Event], Event] = lambda event: event
        """Makes the row of the relation an event of the query, where joined rows are kept."""

    def sides(self, found: Event) -> tuple[Event]:
        """The event of the query that a row of the relation is."""
        return (self.own(found),)

    def push(self, delta: Delta, now: int) -> list[Delta]:
        return []

    def content(self) -> Iterable[Event]:
        rows = self.relation.content()
        return rows if self.passes is None else [row for row in rows if self.passes(row)]

    def held(self) -> Iterable[Event]:
        return ()

    def by_key(self, equal: tuple[Name, ...]) -> KeyIndex | None:
        index, passes = self.relation.by_key(equal), self.passes
        if index is None or passes is None:
            return index
        find = index.find
        return KeyIndex(lambda key: _passing(find(key), passes), index.is_single)

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> FindRange | None:
        find, passes = self.relation.by_range(equal, ordered), self.passes
        if find is None or passes is None:
            return find
        return lambda key, span: [row for row in find(key, span) if passes(row)]


class Seen:
    """The rows of a named window as a subquery sees them: changes that are not
    dispatched yet are not there."""

    def __init__(self, window: WindowRelation, unseen: Unseen) -> None:
        self.window = window
        self.unseen = unseen

    def content(self) -> Iterable[Event]:
        delta = self.unseen(self.window.name)
        return self.window.rows if delta is None else as_before(self.window.rows, delta, delta[1])

    def by_key(self, equal: tuple[Name, ...]) -> KeyIndex | None:
        index = self.window.by_key(equal)
        if index is None:
            return None
        find, find_many = index.find, index.find_many
        assert find_many is not None

        def seen(key: Hashable) -> Bucket | None:
            delta = self.unseen(self.window.name)
            if delta is None:
                return find(key)
            left = Indexes("kept").by_key(equal, delta[1])
            return dict.fromkeys(as_before(items_of(find(key)), delta, left.rows.of(key)))

        def seen_many(keys: Sequence[Hashable], read: ReadAhead) -> Sequence[Bucket | None]:
            return find_many(keys, read) if self.unseen(self.window.name) is None else [*map(seen, keys)]

        return KeyIndex(seen, find_many=seen_many)

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> FindRange | None:
        find = self.window.by_range(equal, ordered)
        if find is None:
            return None

        def seen(key: Hashable, span: Span) -> Iterable[Event]:
            rows, delta = find(key, span), self.unseen(self.window.name)
            if delta is None:
                return rows
            left = Indexes("kept").in_order(equal, ordered, delta[1])
            return as_before(rows, delta, left.find(key, span))

        return seen


def as_before(rows: Iterable[Event], delta: Changes, left: Iterable[Event]) -> list[Event]:
    """The rows that were among these before a change, in order; `left`: those of them that it removed."""
    came = set(delta[0])
    return sorted((row for row in (*rows, *left) if row not in came), key=lambda row: row.seq)


Changes = tuple[Sequence[Event], Sequence[Event]]
"""Rows that came, rows that left."""

Unseen = Callable[[str], Changes | None]
"""The changes of a named window that a statement has not processed yet."""


def _passing(found: Bucket | None, passes: Callable[[Event], Any]) -> Bucket | None:
    """Those of the rows found that pass."""
    if isinstance(found, dict):
        return {row: None for row in found if passes(row)}
    return found if found is not None and passes(found) else None


class Carried:
    """The rows that the event around a subquery carries in a column: what a store has answered for it."""

    pulled = True
    of_relation = False

    def __init__(self, column: str, passes: Passes) -> None:
        """`passes`: the filter in parentheses, if there is one."""
        self.column = column
        self.passes = passes
        self.rows: list[Event] = []

    def take(self, row: Mapping[str, Any] | None, now_ms: int) -> None:
        """The row of the event around it, from now on; None: there is none."""
        found = () if row is None else row.get(self.column) or ()
        rows = [Event(item, now_ms, number) for number, item in enumerate(found)]
        self.rows = rows if self.passes is None else [item for item in rows if self.passes(item)]

    def content(self) -> Iterable[Event]:
        """The rows in the order of the answer."""
        return self.rows

    def by_key(self, equal: tuple[Name, ...]) -> None:
        """No index: the store has chosen the rows."""

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> None:
        """No index either."""


Store = Rows | Pulled
