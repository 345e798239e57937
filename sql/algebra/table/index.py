"""Indexes over rows: by equality, by order, or by equality and then order.

An index is over the rows of one source, kept anywhere: a named window, a table, one side of a join, the
window of a subquery. NULL equals nothing and lies in no range, so a row with NULL in an ordered column is in
no answer of it.

         equal     k -> {rows}     one look into a dictionary
         ordered   sorted_rows     bisection
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from sql.algebra.buckets import Buckets
from sql.algebra.event import Event
from sql.algebra.table.lookup import Name
from sql.algebra.table.readers import Values, column_reader, key_reader
from sql.algebra.table.searched import Bucket, KeyIndex, ReadAhead
from sql.algebra.table.sorted_rows import SortedRows, Span, placed
from sql.errors import DataError
from sql.rows import Shape
from sql.types import key_of

CACHED = 4096
"""So few keys stay in the processor's cache."""

B = TypeVar("B", bound=Bucket)


def found_in(by_key: dict[Hashable, B], keys: Sequence[Hashable], read: ReadAhead) -> Sequence[B | None]:
    """The rows of each key, or None.

    Beside many rows most of a look-up is waiting for memory: for the slot of the index, for the key, for the
    row, for the values of its columns. Between two look-ups the text of a statement does so much that the
    waits never overlap. In the short loops here and in `read` the processor waits for several keys at once.
    """
    if len(by_key) <= CACHED:
        return _found(by_key, keys)
    for _ in map(hash, keys):  # a string keeps its hash, which makes the next loop short
        pass
    found = _found(by_key, keys)
    with suppress(AttributeError):
        read(found)
    return found


def _found(by_key: dict[Hashable, B], keys: Sequence[Hashable]) -> Sequence[B | None]:
    """The rows of each key. Mostly all keys have something, which `itemgetter` finds in a short loop."""
    if len(keys) > 1:
        with suppress(KeyError):
            found: Sequence[B] = itemgetter(*keys)(by_key)
            return found
    return [*map(by_key.get, keys)]


class HashIndex:
    """Rows by the values of columns."""

    def __init__(self, key: Callable[[Event], Hashable]) -> None:
        self.key = key
        self.rows: Buckets[Event] = Buckets()
        self.by_key = self.rows.found
        self.lookups = KeyIndex(self.by_key.get, find_many=partial(found_in, self.by_key))

    def add(self, event: Event) -> None:
        self.rows.add(self.key(event), event)

    def remove(self, event: Event) -> None:
        self.rows.discard(self.key(event), event)

    def whole_key(self, row: Event) -> Hashable:
        """The key that a unique index holds at most once."""
        return self.key(row)

    def holder(self, row: Event) -> Event | None:
        """The row that has this row's key, if one has."""
        return next(iter(self.rows.of(self.key(row))), None)


class OrderedIndex:
    """Rows by the values of columns, perhaps none, and then in order of one more."""

    def __init__(self, key: Callable[[Event], Hashable], value: Values) -> None:
        self.key = key
        self.value = value
        self.by_key: dict[Hashable, SortedRows[Event]] = {}

    def add(self, event: Event) -> None:
        value = self.value(event)
        if value is not None:
            self.by_key.setdefault(self.key(event), SortedRows()).add(value, event)

    def remove(self, event: Event) -> None:
        value = self.value(event)
        if value is None:
            return
        key = self.key(event)
        rows = self.by_key[key]
        rows.remove(value, event)
        if not rows:
            del self.by_key[key]

    def find(self, key: Hashable, span: Span) -> Iterable[Event]:
        """The rows of a key whose value is in the range; at least one of its ends is known."""
        rows = self.by_key.get(key)
        return () if rows is None or has_null(key) else rows.between(*span)

    def whole_key(self, row: Event) -> Hashable:
        """The key and value that a unique index holds at most once; a row with NULL collides with none."""
        key, value = self.key(row), self.value(row)
        return row if value is None or has_null(key) else (key, placed(value))

    def holder(self, row: Event) -> Event | None:
        """The row that has this row's key and value, if one has."""
        key, value = self.key(row), self.value(row)
        rows = None if value is None or has_null(key) else self.by_key.get(key)
        return None if rows is None else next(iter(rows.equal(value)), None)


Index = HashIndex | OrderedIndex


UNFOUND = object()
"""A key that no row has."""


def sought(value: object) -> Hashable:
    """The key by which rows that equal a value are found: NULL and NaN equal nothing."""
    return UNFOUND if value is None or value != value else key_of(value)


def keys_of(events: Sequence[dict[str, Any]], column: str) -> list[Hashable]:
    """For each event the key of the rows that equal its value of a column."""
    return [key if (key := event.get(column)).__class__ is str else sought(key) for event in events]


def has_null(key: object) -> bool:
    """True if a key to look up holds NULL, which equals nothing."""
    return key is None or (key.__class__ is tuple and None in key)


class Indexes:
    """All indexes over the rows of one source; equal ones are one."""

    def __init__(self, shape: Shape = "dict") -> None:
        self.shape = shape
        self.hashed: dict[tuple[Name, ...], HashIndex] = {}
        self.ordered: dict[tuple[tuple[Name, ...], Name], OrderedIndex] = {}
        self.all: tuple[Index, ...] = ()
        self.unique: dict[str, Index] = {}
        """Indexes that refuse a second row of a key, by name."""

    def by_key(self, equal: tuple[Name, ...], rows: Iterable[Event]) -> HashIndex:
        """The index by these columns, made over the present `rows` where there is none yet."""
        index = self.hashed.get(equal)
        if index is None:
            index = self.hashed[equal] = HashIndex(key_reader(equal, self.shape))
            self._begin(index, rows)
        return index

    def in_order(self, equal: tuple[Name, ...], ordered: Name, rows: Iterable[Event]) -> OrderedIndex:
        """The index by these columns and in order of one more."""
        index = self.ordered.get((equal, ordered))
        if index is None:
            key, value = key_reader(equal, self.shape), column_reader(ordered, self.shape)
            index = self.ordered[equal, ordered] = OrderedIndex(key, value)
            self._begin(index, rows)
        return index

    def _begin(self, index: Index, rows: Iterable[Event]) -> None:
        """An index holds the present rows, and those that come."""
        for event in rows:
            index.add(event)
        self.all = (*self.all, index)

    def declare(
        self,
        name: str,
        equal: tuple[Name, ...],
        ordered: Name | None,
        rows: Collection[Event],
        *,
        unique: bool,
    ) -> Index:
        """A declared index. Raises DataError where two of the present `rows` have one key
        of a unique one."""
        index = self.by_key(equal, rows) if ordered is None else self.in_order(equal, ordered, rows)
        if unique:
            if any(index.holder(event) is not event for event in rows):
                raise DataError(f"unique index '{name}' cannot be made: two rows have one key")
            self.unique[name] = index
        return index

    def add(self, event: Event) -> None:
        for index in self.all:
            index.add(event)

    def remove(self, event: Event) -> None:
        for index in self.all:
            index.remove(event)

    def check(self, rows: Iterable[Event], leaving: Mapping[Event, Any]) -> None:
        """Raise DataError where a row that comes has the key, in a unique index, of another or of a row
        that is not leaving."""
        for name, index in self.unique.items():
            coming: set[Hashable] = set()
            for row in rows:
                key, holder = index.whole_key(row), index.holder(row)
                if key in coming or (holder is not None and holder not in leaving):
                    raise DataError(f"a row of this key is there already: unique index '{name}'")
                coming.add(key)
