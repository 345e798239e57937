"""The rows of a table by their keys, with the indexes over them, their bounds and
the stamps of their writes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import count
from typing import Any

from sql.aggregates.base import Accumulator
from sql.algebra.event import Event
from sql.algebra.row_blocks import new_holder
from sql.algebra.table.bounds import Bounded
from sql.algebra.table.index import Indexes
from sql.algebra.table.readers import key_of_values, key_reader
from sql.algebra.table.row import TableRow, row_class
from sql.emission import Row
from sql.plan.declared import TableDeclaration


class TableRows:
    """Writes one row at a time and checks nothing: `Table` has made sure that a write is possible."""

    def __init__(self, declaration: TableDeclaration, makers: dict[str, Callable[[], Accumulator]]) -> None:
        """`makers`: what makes the accumulator of each aggregating column."""
        self.row_class: type[TableRow] = row_class(tuple(declaration.columns), TableRow, tuple(makers))
        self.makers = makers
        keys = tuple(declaration.keys)
        self.key_of, self.key_of_row = key_reader(keys, "kept"), key_of_values(keys)
        """Makes the key of a row, and of the values of one."""
        self.by_key: dict[Hashable, TableRow] = {}
        self.indexes = Indexes("kept")
        self.bounded = Bounded(f"table '{declaration.name}'", declaration.bounds)
        self.seq = 0
        self.stamps = count(1)
        """The stamps of the rows that calls write from now on."""
        self.events = 0
        """The number of the last event that a row has counted."""
        self.holder = new_holder()

    def made(self, row: Mapping[str, Any], now_ms: int) -> TableRow:
        """A row of these values that is not in the table yet."""
        found = self.row_class(time_ms=now_ms, seq=0)
        found.put(row)
        if self.makers:
            found.accumulators = tuple([make() for make in self.makers.values()])
            found.refresh()
        return found

    def numbered(self, event: Event) -> Event:
        """An event that a row counts, with a number of the table: the statements that write a table number
        their events each for itself."""
        self.events += 1
        return Event(event.row, event.time_ms, self.events)

    def add(self, row: TableRow, now_ms: int) -> None:
        """A row comes that was made for it."""
        self.seq += 1
        row.seq = self.seq
        row.stamp = next(self.stamps)
        self.by_key[self.key_of(row)] = row
        self.indexes.add(row)
        self.bounded.wrote(row, now_ms)

    def remove(self, event: Event) -> None:
        assert isinstance(event, TableRow)
        self.indexes.remove(event)
        self.bounded.left(event)
        del self.by_key[self.key_of(event)]

    def update(self, updates: Sequence[tuple[Event, Mapping[str, Any]]], now_ms: int) -> None:
        """Change rows in their place; those whose key changes leave it first, since they may swap keys."""
        moved: list[TableRow] = []
        stamp = next(self.stamps)
        for event, row in updates:
            assert isinstance(event, TableRow)
            self.indexes.remove(event)
            key = self.key_of(event)
            event.put(row)
            if key != self.key_of(event):
                del self.by_key[key]
                moved.append(event)
            event.stamp = stamp
            self.bounded.wrote(event, now_ms)
        for event in moved:
            self.by_key[self.key_of(event)] = event
        for event, _ in updates:
            self.indexes.add(event)

    def clear(self) -> None:
        """No row is left, before a snapshot is put back."""
        self.by_key.clear()
        for index in self.indexes.all:
            index.by_key.clear()

    def put_back(self, row: Row, time_ms: int, seq: int) -> TableRow:
        """A row of a snapshot, its aggregates still empty."""
        self.seq = seq - 1  # an ordered index finds a row by its number
        found = self.made(row, time_ms)
        found.stale = bool(self.makers)
        self.add(found, time_ms)
        return found
