"""Indexes over rows: by equality, by order, or by equality and then order.

An index is over the rows of one source, whoever keeps them: a named window, a table, one side of a join, the
window of a subquery. NULL equals nothing and lies in no range, so a row with NULL in an ordered column is in
no answer of it.

         equal     k -> {rows}                one look into a dictionary
         ordered   [block][block][block]      bisection over blocks of some hundred rows; insert O(block)
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from sql.algebra.event import Event
from sql.errors import DataError
from sql.rows import attribute_name
from sql.types import key_of, order_key

BLOCK_MAX = 512
"""Rows of a block of an ordered index; a fuller one is cut in two."""

Values = Callable[[Any], Any]
"""What an index reads of a row."""


class Span(NamedTuple):
    """A range of values; None: no bound. The flags say whether a bound itself is inside."""

    low: Any = None
    high: Any = None
    low_inside: bool = True
    high_inside: bool = True


def column_reader(column: Any, shape: str = "dict") -> Values:
    """What reads a column of a row; of a joined row (source, column)."""
    if column.__class__ is tuple:
        source, read = column[0], column_reader(column[1], shape)
        return lambda row: None if row[source] is None else read(row[source])
    if shape == "dict":
        return lambda row: row.get(column)
    name = attribute_name(column)
    return lambda row: getattr(row, name)


def key_reader(columns: tuple[Any, ...], shape: str = "dict") -> Callable[[Any], Hashable]:
    """What makes the hashable key of several columns of a row: of one its own, of several a tuple."""
    readers = [column_reader(column, shape) for column in columns]
    if len(readers) == 1 and shape == "dict" and columns[0].__class__ is str:
        (column,) = columns

        def key(row: Any) -> Hashable:
            value = row.get(column)
            return value if value.__class__ is str else key_of(value)

        return key
    if len(readers) == 1:
        read = readers[0]
        return lambda row: key_of(read(row))
    return lambda row: tuple([key_of(read(row)) for read in readers])


Single = Callable[[Any], Event | None] | None
"""What gives the one row of a key, or None; None for an index that may have several of a key."""


class HashIndex:
    """Rows by the values of columns."""

    single: Single = None

    def __init__(self, key: Callable[[Any], Hashable]) -> None:
        self.key = key
        self.by_key: dict[Hashable, tuple[Event] | dict[Event, None]] = {}
        """One row in a tuple, which takes less room; several in order of arrival."""
        self.get = self.by_key.get
        """Takes a key without NULL, and what to give where no row has it."""

    def add(self, event: Event) -> None:
        """A row came."""
        key = self.key(event.row)
        found = self.by_key.get(key)
        if found is None:
            self.by_key[key] = (event,)
        elif isinstance(found, dict):
            found[event] = None
        else:
            self.by_key[key] = {found[0]: None, event: None}

    def remove(self, event: Event) -> None:
        """A row left."""
        key = self.key(event.row)
        found = self.by_key[key]
        if isinstance(found, dict):
            del found[event]
        if found.__class__ is tuple or not found:
            del self.by_key[key]

    def find(self, key: Hashable, span: Span | None = None) -> Iterable[Event]:
        """The rows of a key, in order of arrival. A key with NULL finds nothing."""
        return () if has_null(key) else self.by_key.get(key, ())

    def holder(self, row: Any) -> Event | None:
        """The row that has this row's key, if one has."""
        return next(iter(self.by_key.get(self.key(row), ())), None)


class SortedRows:
    """Rows in order of a value, in blocks, so that one comes or goes in the time of a block."""

    def __init__(self) -> None:
        self.blocks: list[list[Entry]] = []
        self.highest: list[Entry] = []
        """The last entry of each block."""

    def add(self, value: Any, event: Event) -> None:
        """A row came."""
        entry = (order_key(value), event.seq, event)
        if not self.blocks:
            self.blocks, self.highest = [[entry]], [entry]
            return
        place = min(bisect_left(self.highest, entry), len(self.blocks) - 1)
        block = self.blocks[place]
        insort(block, entry)
        if len(block) > BLOCK_MAX:
            half = len(block) // 2
            self.blocks.insert(place + 1, block[half:])
            del block[half:]
            self.highest.insert(place, block[-1])
            place += 1
        self.highest[place] = self.blocks[place][-1]

    def remove(self, value: Any, event: Event) -> None:
        """A row left."""
        wanted = (order_key(value), event.seq)
        place = bisect_left(self.highest, wanted)
        block = self.blocks[place]
        del block[bisect_left(block, wanted)]
        if block:
            self.highest[place] = block[-1]
        else:
            del self.blocks[place], self.highest[place]

    def between(self, span: Span) -> list[Event]:
        """The rows in a range, in order of the value; values of another kind than its
        ends are in no range."""
        low = None if span.low is None else order_key(span.low)
        high = None if span.high is None else order_key(span.high)
        rank = low[0] if low is not None else high[0] if high is not None else 0
        start = ((rank,), 0) if low is None else (low, -1 if span.low_inside else _LAST)
        end: Any = ((rank + 1,), 0)
        if high is not None:
            end = min(end, (high, _LAST if span.high_inside else -1))
        first = bisect_left(self.highest, start)
        last = bisect_left(self.highest, end)
        if end <= start or first >= len(self.blocks):
            return []
        at = bisect_left(self.blocks[first], start)
        if first == last:
            block = self.blocks[first]
            return [entry[2] for entry in block[at : bisect_left(block, end)]]
        found = [entry[2] for entry in self.blocks[first][at:]]
        for block in self.blocks[first + 1 : last]:
            found += [entry[2] for entry in block]
        if last < len(self.blocks):
            block = self.blocks[last]
            found += [entry[2] for entry in block[: bisect_left(block, end)]]
        return found


Entry = tuple[Any, int, Event]
"""The order of a value, the number of its row, and the row."""

_LAST = 1 << 62


class OrderedIndex:
    """Rows by the values of columns, perhaps none, and then in order of one more."""

    single: Single = None

    def __init__(self, key: Callable[[Any], Hashable], value: Values) -> None:
        self.key = key
        self.value = value
        self.by_key: dict[Hashable, SortedRows] = {}

    def add(self, event: Event) -> None:
        """A row came."""
        value = self.value(event.row)
        if value is not None:
            self.by_key.setdefault(self.key(event.row), SortedRows()).add(value, event)

    def remove(self, event: Event) -> None:
        """A row left."""
        value = self.value(event.row)
        if value is None:
            return
        key = self.key(event.row)
        rows = self.by_key[key]
        rows.remove(value, event)
        if not rows.blocks:
            del self.by_key[key]

    def find(self, key: Hashable, span: Span | None = None) -> Iterable[Event]:
        """The rows of a key whose value is in the range. A range without a bound that
        is known finds nothing."""
        rows = self.by_key.get(key)
        if rows is None or span is None or has_null(key):
            return ()
        return rows.between(span)

    def holder(self, row: Any) -> Event | None:
        """The row that has this row's key and value, if one has."""
        value = self.value(row)
        return next(iter(self.find(self.key(row), Span(value, value))), None) if value is not None else None


Index = HashIndex | OrderedIndex


class Nowhere:
    """A key that no row has."""


NOWHERE = Nowhere()


def sought(value: Any) -> Hashable:
    """The key by which rows that equal a value are found: NULL and NaN equal nothing."""
    return NOWHERE if value is None or value != value else key_of(value)


def has_null(key: Any) -> bool:
    """True if a key to look up holds NULL, which equals nothing."""
    return key is None or (key.__class__ is tuple and None in key)


def make_index(equal: tuple[Any, ...], ordered: Any, shape: str = "dict") -> Index:
    """An index by columns of equality and at most one of order."""
    key = key_reader(equal, shape)
    return HashIndex(key) if ordered is None else OrderedIndex(key, column_reader(ordered, shape))


class Indexes:
    """All indexes over the rows of one source; equal ones are one."""

    def __init__(self, shape: str = "dict") -> None:
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

    def add(self, event: Event) -> None:
        """A row came."""
        for index in self.all:
            index.add(event)

    def remove(self, event: Event) -> None:
        """A row left."""
        for index in self.all:
            index.remove(event)

    def check(self, row: Any, leaving: Mapping[Event, Any]) -> None:
        """Raise DataError where a unique index has a row of the same key that is not leaving."""
        for name, index in self.unique.items():
            holder = index.holder(row)
            if holder is not None and holder not in leaving:
                raise DataError(f"a row of this key is there already: unique index '{name}'")
