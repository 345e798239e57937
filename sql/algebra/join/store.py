"""The rows of one side of a join, as joins look them up: kept here, or in a named window or table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent, Operator
from sql.algebra.table.index import Bucket, Indexes
from sql.rows import Shape
from sql.types import Saved

Passes = Callable[[Event], Any] | None


class Rows:
    """Rows kept here, by integrating the changes of the source's windows."""

    pulled = False
    of_relation = False

    def __init__(self, shape: Shape = "dict") -> None:
        self.events: dict[Event, None] = {}
        self.indexes = Indexes(shape)

    def content(self) -> Iterable[Event]:
        """The rows in order of arrival."""
        return self.events

    def index(self, equal: tuple[Any, ...], ordered: Any) -> Any:
        """The index by these columns."""
        return self.indexes.over(equal, ordered, self.events)

    def add(self, event: Event) -> None:
        """A row came."""
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


class Pulled:
    """Rows of a named window or a table that are only looked up: nothing of them is kept here."""

    pulled = True
    of_relation = True

    def __init__(self, relation: Any, passes: Passes) -> None:
        """`passes`: the filter in parentheses, if there is one."""
        self.relation = relation
        self.passes = passes
        self.own: Callable[[Event], Event] = lambda event: event
        """Makes the row of the relation an event of the query, where joined rows are kept."""

    def content(self) -> Sequence[Event]:
        """The rows, those that pass."""
        rows = self.relation.content()
        return [row for row in rows if self.passes(row)] if self.passes is not None else tuple(rows)

    def index(self, equal: tuple[Any, ...], ordered: Any) -> Any:
        """The relation's index by these columns; None where it can have none."""
        index = self.relation.index(equal, ordered)
        return index if index is None or self.passes is None else _Filtered(index, self.passes)


class Seen:
    """The rows of a named window as a subquery sees them: changes that are not
    dispatched yet are not there."""

    def __init__(self, window: Any, unseen: Unseen) -> None:
        self.window = window
        self.unseen = unseen

    @property
    def is_current(self) -> bool:
        """True if no change is waiting to be dispatched."""
        return self.unseen(self.window.name) is None

    def content(self) -> Iterable[Event]:
        """The rows in order of arrival."""
        delta = self.unseen(self.window.name)
        if delta is None:
            kept: Iterable[Event] = self.window.rows
            return kept
        came = set(delta[0])
        rows = [row for row in self.window.rows if row not in came]
        return sorted([*rows, *(row for row in delta[1] if row not in came)], key=lambda row: row.seq)

    def index(self, equal: tuple[Any, ...], ordered: Any) -> Any:
        """The window's index by these columns."""
        index = self.window.index(equal, ordered)
        return None if index is None else _SeenIndex(index, self)


class _SeenIndex:
    """An index as a subquery sees it."""

    is_single = False
    is_plain = True

    def __init__(self, index: Any, seen: Seen) -> None:
        self.index = index
        self.by_key = index.by_key
        self.seen = seen

    def bucket(self, key: Hashable) -> Bucket | None:
        """The rows of a key without NULL."""
        if self.seen.is_current:
            found: Bucket | None = self.index.bucket(key)
            return found
        return dict.fromkeys(self.find(key))

    def buckets(self, keys: Iterable[Hashable]) -> list[Bucket | None]:
        """The rows of each key without NULL."""
        if self.seen.is_current:
            found: list[Bucket | None] = self.index.buckets(keys)
            return found
        return [*map(self.bucket, keys)]

    def find(self, key: Hashable, span: Any = None) -> Iterable[Event]:
        """The rows of a key."""
        found: Iterable[Event] = self.index.find(key, span)
        delta = self.seen.unseen(self.seen.window.name)
        if delta is None:
            return found
        came = set(delta[0])
        rows = [row for row in found if row not in came]
        left = [row for row in delta[1] if row not in came and self.index.key(row) == key]
        if span is not None:
            left = self.index.inside(left, span)
        return sorted([*rows, *left], key=lambda row: row.seq)


Unseen = Callable[[str], tuple[Sequence[Event], Sequence[Event]] | None]
"""The changes of a named window that a statement has not processed yet: rows that came, rows that left."""


class _Filtered:
    """An index of which only the rows that pass are shown."""

    is_plain = False

    def __init__(self, index: Any, passes: Callable[[Event], Any]) -> None:
        self.index = index
        self.passes = passes
        self.is_single = index.is_single

    def bucket(self, key: Hashable) -> Bucket | None:
        """The rows of a key without NULL that pass."""
        found = self.index.bucket(key)
        if found.__class__ is dict:
            return {row: None for row in found if self.passes(row)}
        return found if found is not None and self.passes(found) else None

    def find(self, key: Hashable, span: Any = None) -> list[Event]:
        """The rows of a key that pass."""
        return [row for row in self.index.find(key, span) if self.passes(row)]


class Carried:
    """The rows that the event around a subquery carries in a column: what a store has answered for it."""

    pulled = True
    of_relation = False

    def __init__(self, column: str, passes: Passes) -> None:
        """`passes`: the filter in parentheses, if there is one."""
        self.column = column
        self.passes = passes
        self.rows: list[Event] = []

    def take(self, row: Any, now_ms: int) -> None:
        """The row of the event around it, from now on; None: there is none."""
        found = () if row is None else row.get(self.column) or ()
        rows = [Event(item, now_ms, number) for number, item in enumerate(found)]
        self.rows = rows if self.passes is None else [item for item in rows if self.passes(item)]

    def content(self) -> Iterable[Event]:
        """The rows in the order of the answer."""
        return self.rows

    def index(self, equal: tuple[Any, ...], ordered: Any) -> None:
        """No index: the store has chosen the rows."""


Store = Rows | Pulled


class Looked(Operator):
    """A relation that the query only looks into: a table, or the partner of a unidirectional stream."""

    departure = Removal.ANY

    def __init__(self, rows: Pulled) -> None:
        self.rows = rows

    def push(self, delta: Delta, now: int) -> list[Delta]:
        return []

    def content(self) -> Iterable[Event]:
        return self.rows.content()

    def held(self) -> Iterable[Event]:
        return ()

    def snapshot(self) -> Saved:
        return None

    def restore(self, state: Saved, find: FindEvent) -> None:
        return None
