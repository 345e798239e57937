"""Indexes over rows: by equality, by order, or by equality and then order.

An index is over the rows of one source, kept anywhere: a named window, a table, one side of a join, the
window of a subquery. NULL equals nothing and lies in no range, so a row with NULL in an ordered column is in
no answer of it.

         equal     k -> {rows}     one look into a dictionary
         ordered   sorted_rows     bisection
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter, methodcaller
from typing import Any

from sql.algebra.event import Event
from sql.algebra.table.sorted_rows import SortedRows, Span
from sql.errors import DataError
from sql.rows import Shape, attribute_name, field_name
from sql.types import key_of

Values = Callable[[Event], Any]
"""The function that reads one of an index's values from an event."""


def column_reader(column: Any, shape: Shape = "dict") -> Values:
    """The function that reads a column of an event; of a joined one (source, column)."""
    if column.__class__ is tuple:
        source, name = column
        read = methodcaller("get", name) if shape == "dict" else attrgetter(attribute_name(name))
        return lambda event: None if (row := event.row[source]) is None else read(row)
    if shape == "dict":
        return lambda event: event.row.get(column)
    return attrgetter(field_name(column) if shape == "kept" else f"row.{attribute_name(column)}")


def key_reader(readers: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Hashable]:
    """The function that makes a hashable key of what `readers` read: of one its value, of several a tuple."""
    if len(readers) == 1:
        (read,) = readers
        return lambda event: value if (value := read(event)).__class__ is str else key_of(value)
    return lambda event: tuple([key_of(read(event)) for read in readers])


Bucket = Event | dict[Event, None]
"""The row of a key, or its rows in order of arrival: most keys have one, which needs no container."""

FindBucket = Callable[[Any], Bucket | None]
"""The function that finds the rows of a key without NULL; None if no row has it."""


class HashIndex:
    """Rows by the values of columns."""

    is_single = False
    """True if no key has several rows."""
    is_plain = True
    """True if nothing but the key decides which rows are found, those of many keys at once with `buckets`."""

    def __init__(self, key: Callable[[Event], Hashable]) -> None:
        self.key = key
        self.by_key: dict[Hashable, Bucket] = {}
        self.bucket: FindBucket = self.by_key.get

    def buckets(self, keys: Iterable[Hashable]) -> list[Bucket | None]:
        """The rows of each key without NULL."""
        return [*map(self.by_key.get, keys)]

    def add(self, event: Event) -> None:
        """A row came."""
        key = self.key(event)
        found = self.by_key.get(key)
        if found is None:
            self.by_key[key] = event
        elif isinstance(found, dict):
            found[event] = None
        else:
            self.by_key[key] = {found: None, event: None}

    def remove(self, event: Event) -> None:
        """A row left."""
        key = self.key(event)
        found = self.by_key[key]
        if found.__class__ is dict:
            del found[event]
        if found.__class__ is not dict or not found:
            del self.by_key[key]

    def find(self, key: Hashable, span: Span | None = None) -> Iterable[Event]:
        """The rows of a key, in order of arrival. A key with NULL finds nothing."""
        return () if has_null(key) else self._rows(key)

    def _rows(self, key: Hashable) -> Iterable[Event]:
        found = self.by_key.get(key)
        if found is None:
            return ()
        return found if isinstance(found, dict) else (found,)

    def holder(self, row: Event) -> Event | None:
        """The row that has this row's key, if one has."""
        return next(iter(self._rows(self.key(row))), None)


class OrderedIndex:
    """Rows by the values of columns, perhaps none, and then in order of one more."""

    def __init__(self, key: Callable[[Event], Hashable], value: Values) -> None:
        self.key = key
        self.value = value
        self.by_key: dict[Hashable, SortedRows] = {}

    def add(self, event: Event) -> None:
        """A row came."""
        value = self.value(event)
        if value is not None:
            self.by_key.setdefault(self.key(event), SortedRows()).add(value, event)

    def remove(self, event: Event) -> None:
        """A row left."""
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

    def inside(self, rows: Iterable[Event], span: Span) -> list[Event]:
        """Those of some rows, which need not be in the index, whose value is in the range."""
        found = SortedRows()
        for row in rows:
            value = self.value(row)
            if value is not None:
                found.add(value, row)
        return found.between(*span)

    def holder(self, row: Event) -> Event | None:
        """The row that has this row's key and value, if one has."""
        key, value = self.key(row), self.value(row)
        rows = None if value is None or has_null(key) else self.by_key.get(key)
        return None if rows is None else next(iter(rows.equal(value)), None)


Index = HashIndex | OrderedIndex


class Nowhere:
    """A key that no row has."""


NOWHERE = Nowhere()


def sought(value: object) -> Hashable:
    """The key by which rows that equal a value are found: NULL and NaN equal nothing."""
    return NOWHERE if value is None or value != value else key_of(value)


def has_null(key: object) -> bool:
    """True if a key to look up holds NULL, which equals nothing."""
    return key is None or (key.__class__ is tuple and None in key)


def make_index(equal: tuple[Any, ...], ordered: Any, shape: Shape = "dict") -> Index:
    """An index by columns of equality and at most one of order."""
    key = key_reader([column_reader(column, shape) for column in equal])
    return HashIndex(key) if ordered is None else OrderedIndex(key, column_reader(ordered, shape))


class Indexes:
    """All indexes over the rows of one source; equal ones are one."""

    def __init__(self, shape: Shape = "dict") -> None:
        self.shape = shape
        self.by_columns: dict[tuple[tuple[Any, ...], Any], Index] = {}
        self.all: tuple[Index, ...] = ()
        self.unique: dict[str, Index] = {}
        """Indexes that refuse a second row of a key, by name."""

    def over(self, equal: tuple[Any, ...], ordered: Any, rows: Iterable[Event]) -> Index:
        """The index by these columns, made over the present `rows` where there is none yet."""
        index = self.by_columns.get((equal, ordered))
        if index is None:
            index = self.by_columns[equal, ordered] = make_index(equal, ordered, self.shape)
            for event in rows:
                index.add(event)
            self.all = tuple(self.by_columns.values())
        return index

    def declare(
        self, name: str, equal: tuple[Any, ...], ordered: Any, rows: Collection[Event], *, unique: bool
    ) -> Index:
        """A declared index. Raises DataError where two of the present `rows` have one key
        of a unique one."""
        index = self.over(equal, ordered, rows)
        if unique:
            if any(index.holder(event) is not event for event in rows):
                raise DataError(f"unique index '{name}' cannot be made: two rows have one key")
            self.unique[name] = index
        return index

    def add(self, event: Event) -> None:
        """A row came."""
        for index in self.all:
            index.add(event)

    def remove(self, event: Event) -> None:
        """A row left."""
        for index in self.all:
            index.remove(event)

    def check(self, row: Event, leaving: Mapping[Event, Any]) -> None:
        """Raise DataError where a unique index has a row of the same key that is not leaving."""
        for name, index in self.unique.items():
            holder = index.holder(row)
            if holder is not None and holder not in leaving:
                raise DataError(f"a row of this key is there already: unique index '{name}'")
