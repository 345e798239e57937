"""Tables: rows by primary key, of plain columns and of aggregates that `into table`
keeps. Without a key, one row at most.

A table has no data window and posts nothing. A row keeps its identity when it is updated. The columns that
aggregate are computed when the row is read, once after each change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sql.aggregates.base import Accumulator
from sql.algebra.buckets import items_of
from sql.algebra.event import Delta, Event
from sql.algebra.table.index import Index, found_in
from sql.algebra.table.lookup import Name
from sql.algebra.table.readers import column_reader
from sql.algebra.table.row import Change, TableRow, Written
from sql.algebra.table.searched import FindRange, KeyIndex
from sql.algebra.table.table_rows import TableRows
from sql.emission import Row
from sql.errors import DataError
from sql.plan.declared import TableDeclaration
from sql.types import key_of


class Table:
    """The rows of one table; without a primary key one row at most."""

    kind = "table"
    batches = False

    def __init__(self, declaration: TableDeclaration, makers: dict[str, Callable[[], Accumulator]]) -> None:
        """`makers`: what makes the accumulator of each aggregating column."""
        self.declaration = declaration
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.readers = {column: column_reader(column, "kept") for column in self.columns}
        self.rows = TableRows(declaration, makers)
        self.makers = makers
        self.places = {column: place for place, column in enumerate(makers)}
        """The place of the accumulator of each aggregating column."""
        self.bounded, self.indexes = self.rows.bounded, self.rows.indexes
        self.named: dict[str, Index] = {}
        self.version = 0
        """Grows with every change: a reader that keeps results computed from the rows compares it."""

    def all_parts(self) -> tuple[Table]:
        """Itself: the rows of a relation of a context are in several parts."""
        return (self,)

    # --- reading --------------------------------------------------------------------------------------------

    def content(self) -> Collection[Event]:
        """The rows in order of creation."""
        for row in self.rows.by_key.values():
            if row.stale:
                row.refresh()
        return self.rows.by_key.values()

    def __len__(self) -> int:
        return len(self.rows.by_key)

    def value_at(self, key: Hashable, column: str) -> Any:
        """A column of the row of a key; NULL without one."""
        row = self.rows.by_key.get(key)
        if row is None:
            return None
        place = self.places.get(column)
        return self.readers[column](row) if place is None else row.accumulators[place].result()

    def row_at(self, key: Hashable) -> Row | None:
        """The row of a key as an object; NULL without one."""
        row = self.rows.by_key.get(key)
        if row is None:
            return None
        if row.stale:
            row.refresh()
        found: Row = row.row
        return found

    def keys(self) -> list[Any]:
        """The keys: values of one column, or lists of several."""
        readers = [self.readers[column] for column in self.declaration.keys]
        if len(readers) == 1:
            return [*map(readers[0], self.rows.by_key.values())]
        return [[read(row) for read in readers] for row in self.rows.by_key.values()]

    def by_key(self, equal: tuple[Name, ...]) -> KeyIndex | None:
        """The index by these columns; None for columns that aggregate, which change without notice."""
        keys = self.declaration.keys
        if keys and set(equal) == set(keys):
            return primary_key(self.rows, tuple(equal.index(key) for key in keys))
        if any(column in self.makers for column in equal):
            return None
        index = self.indexes.by_key(equal, self.rows.by_key.values()).lookups
        if not self.makers:
            return index
        find = index.find
        return KeyIndex(lambda key: dict.fromkeys(fresh(items_of(find(key)))))

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> FindRange | None:
        """The function that finds rows by these columns and in order of one more."""
        if any(column in self.makers for column in (*equal, ordered)):
            return None
        find = self.indexes.in_order(equal, ordered, self.rows.by_key.values()).find
        return (lambda key, span: fresh(find(key, span))) if self.makers else find

    def create_index(self, name: str, equal: tuple[str, ...], ordered: str | None, *, unique: bool) -> None:
        """A declared index. Raises DataError where rows collide in a unique one, or its columns aggregate."""
        if any(column in self.makers for column in (*equal, ordered)):
            raise DataError(f"index '{name}': a column that aggregates cannot be indexed")
        rows = self.rows.by_key.values()
        self.named[name] = self.indexes.declare(name, equal, ordered, rows, unique=unique)

    # --- writing --------------------------------------------------------------------------------------------

    def insert(self, row: Mapping[str, Any], now_ms: int) -> Delta:
        """A row comes. Raises DataError where its key is taken."""
        return self.change([row], (), now_ms)

    def change(self, rows: Sequence[Mapping[str, Any]], removed: Iterable[Event], now_ms: int) -> Delta:
        """Rows leave and others come, all or none of them. Raises DataError where a key is taken."""
        return Delta(*self._exchange((), rows, list(dict.fromkeys(removed)), now_ms))

    def _exchange(
        self,
        updates: Sequence[tuple[Event, Row]],
        rows: Sequence[Mapping[str, Any]],
        removed: Sequence[Event],
        now_ms: int,
    ) -> tuple[list[TableRow], list[Event]]:
        """Rows are updated in their place, others come and go, all or none: those that came and went."""
        updated = dict.fromkeys(event for event, _ in updates)
        held, leaving = len(self.rows.by_key) - len(removed), {**updated, **dict.fromkeys(removed)}
        gone = [*removed, *self.bounded.room(held, len(rows), leaving)]
        made = [self.rows.made(row, now_ms) for row in rows]
        if made or gone or self.indexes.unique or not all(itertools.starmap(self._is_under, updates)):
            changed = [self.rows.made(row, now_ms) for _, row in updates]
            self._check([*changed, *made], {**updated, **dict.fromkeys(gone)})
        for event in gone:
            self.rows.remove(event)
        self.rows.update(updates, now_ms)
        for event in made:
            self.rows.add(event, now_ms)
        self.version += 1
        return made, gone

    def next_stamp(self) -> int | None:
        """The stamp of rows whose columns the caller changes itself, under their keys; None where indexes or
        bounds depend on it, so that `rewrite` has to do it."""
        if self.indexes.all or self.bounded.is_kept:
            return None
        self.version += 1
        return next(self.rows.stamps)

    def rewrite(self, event: TableRow, row: Row, now_ms: int) -> None:
        """A row gets other values under its key. Raises DataError where a unique index refuses them."""
        if self.indexes.unique:
            self._check([self.rows.made(row, now_ms)], {event: None})
        self.rows.update([(event, row)], now_ms)
        self.version += 1

    def write(self, written: Written, removed: Sequence[Event], now_ms: int) -> Change:
        """Rows are updated in their place, others come and go, all or none."""
        updates = [(event, row) for event, row in written if event is not None]
        before = [event.row for event, _ in updates]
        rows = [row for event, row in written if event is None]
        made, gone = self._exchange(updates, rows, removed, now_ms)
        new = iter(made)
        came = [row if event is not None else next(new).row for event, row in written]
        return came, before + [event.row for event in gone]

    def _is_under(self, event: Event, row: Row) -> bool:
        """True if values of a row are under its present key."""
        return self.rows.by_key.get(self.rows.key_of_row(row)) is event

    def advance(self, now_ms: int) -> None:
        """Time has come to `now_ms`: rows that were not written for long go."""
        aged = self.bounded.aged(now_ms)
        for row in aged:
            self.rows.remove(row)
        self.version += bool(aged)

    def _check(self, rows: Sequence[TableRow], leaving: Mapping[Event, Any]) -> None:
        taken: set[Hashable] = set()
        for row in rows:
            key = self.rows.key_of(row)
            holder = self.rows.by_key.get(key)
            if key in taken or (holder is not None and holder not in leaving):
                self.bounded.refused += 1
                of_key = f" of the key {key!r}" if key != () else ", its only one,"
                raise DataError(f"table '{self.name}' has a row{of_key} already")
            taken.add(key)
        self.indexes.check(rows, leaving)

    # --- aggregating ----------------------------------------------------------------------------------------

    def row_for(self, values: Sequence[Any], now_ms: int) -> TableRow:
        """The row that `into table` aggregates into; the first event of a key makes it."""
        row = self.rows.by_key.get(key_for(values))
        if row is None:
            for oldest in self.bounded.room(len(self.rows.by_key), 1, ()):
                self.rows.remove(oldest)
            row = self.rows.made(dict(zip(self.declaration.keys, values, strict=True)), now_ms)
            self.rows.add(row, now_ms)
        return row


def key_for(values: Sequence[Any]) -> Any:
    """The key of the row with these values in its key columns."""
    return tuple(map(key_of, values)) if len(values) != 1 else key_of(values[0])


def primary_key(rows: TableRows, order: tuple[int, ...]) -> KeyIndex:
    """The primary key of a table as an index; `order`: the places of its columns in the key of a search."""
    by_key, is_ordered = rows.by_key, order == tuple(range(len(order)))
    if is_ordered and not rows.makers:
        return KeyIndex(by_key.get, True, partial(found_in, by_key))

    def find(key: Any) -> TableRow | None:
        row = by_key.get(key if is_ordered else tuple([key[place] for place in order]))
        if row is not None and row.stale:
            row.refresh()
        return row

    return KeyIndex(find, True)


def fresh(rows: Iterable[Event]) -> Iterator[TableRow]:
    """Rows of a table, with aggregates that are computed."""
    for row in rows:
        assert isinstance(row, TableRow)
        if row.stale:
            row.refresh()
        yield row
