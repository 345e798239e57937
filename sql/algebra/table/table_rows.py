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
from sql.algebra.table.index import Indexes, key_reader
from sql.algebra.table.row import Row, shaped
from sql.plan.declared import TableDeclaration

NONE: dict[str, Accumulator] = {}
"""The accumulators of a row without aggregating columns."""


class TableRow(Event, eq=False):
    """A row of a table with the accumulators of its aggregating columns.

    stale   these are not computed yet
    stamp   of its last write: writes between which a snapshot may lie have different ones
    """

    key: Hashable = None
    stamp: int = 0
    accumulators: dict[str, Accumulator] = NONE
    stale: bool = False

    def refresh(self) -> None:
        """Compute the columns that aggregate, in a new row: a holder of the old one keeps it."""
        self.stale = False
        self.row = {**self.row, **{name: item.result() for name, item in self.accumulators.items()}}


class TableRows:
    """Writes one row at a time and checks nothing: `Table` has made sure that a write is possible."""

    def __init__(self, declaration: TableDeclaration, makers: dict[str, Callable[[], Accumulator]]) -> None:
        """`makers`: what makes the accumulator of each aggregating column."""
        self.columns = tuple(declaration.columns)
        self.makers = makers
        self.key_of_row = key_reader(declaration.keys) if declaration.keys else lambda row: ()
        self.by_key: dict[Hashable, TableRow] = {}
        self.indexes = Indexes()
        self.bounded = Bounded(f"table '{declaration.name}'", declaration.bounds)
        self.seq = 0
        self.stamps = count(1)
        """The stamps of the rows that calls write from now on."""
        self.holder = new_holder()

    def add(self, key: Hashable, row: Mapping[str, Any], now_ms: int) -> TableRow:
        """A row comes."""
        self.seq += 1
        accumulators = {name: make() for name, make in self.makers.items()} or NONE
        event = self.by_key[key] = TableRow(
            shaped(row, self.columns),
            now_ms,
            self.seq,
            key=key,
            stamp=next(self.stamps),
            accumulators=accumulators,
            stale=bool(accumulators),
        )
        self.indexes.add(event)
        self.bounded.wrote(event, now_ms)
        return event

    def remove(self, event: Event) -> None:
        """A row leaves."""
        assert isinstance(event, TableRow)
        self.indexes.remove(event)
        self.bounded.left(event)
        del self.by_key[event.key]

    def update(self, updates: Sequence[tuple[Event, Row]], now_ms: int) -> None:
        """Change rows in their place; those whose key changes leave it first, since they may swap keys."""
        moved: list[tuple[TableRow, Hashable]] = []
        stamp = next(self.stamps)
        for event, row in updates:
            assert isinstance(event, TableRow)
            self.indexes.remove(event)
            key = self.key_of_row(row)
            if key != event.key:
                del self.by_key[event.key]
                moved.append((event, key))
            event.row = row
            event.stamp = stamp
            self.bounded.wrote(event, now_ms)
        for event, key in moved:
            event.key = key
            self.by_key[key] = event
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
        return self.add(self.key_of_row(row), row, time_ms)
