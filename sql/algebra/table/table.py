"""Tables: rows by primary key, of plain columns and of aggregates that `into table`
keeps. Without a key, one row.

A table has no data window and posts nothing. A row keeps its identity when it is updated. The columns that
aggregate are computed when the row is read, once after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from sql.aggregates.base import Accumulator
from sql.algebra.event import Delta, Event
from sql.algebra.row_blocks import new_holder
from sql.algebra.table.bounds import Bounded
from sql.algebra.table.index import Bucket, FindBucket, Index, Indexes, key_reader
from sql.algebra.table.named_window import Change, Row, check_collisions
from sql.errors import DataError
from sql.plan.declared import TableDeclaration
from sql.types import key_of

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


class Table:
    """The rows of one table; without a primary key one row, which is there from the start."""

    kind = "table"
    batches = False

    def __init__(self, declaration: TableDeclaration, makers: dict[str, Callable[[], Accumulator]]) -> None:
        """`makers`: what makes the accumulator of each aggregating column."""
        self.declaration = declaration
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.makers = makers
        self.bounded = Bounded(f"table '{declaration.name}'", declaration.bounds)
        self.wake: Callable[[], None] = lambda: None
        """Called when a row came that will be too old some day."""
        self.key_of_row = key_reader(declaration.keys) if declaration.keys else lambda row: ()
        self.indexes = Indexes()
        self.named: dict[str, Index] = {}
        self.rows: dict[Hashable, TableRow] = {}
        self.seq = 0
        self.version = 0
        self.stamps = count(1)
        """The stamps of the rows that calls write from now on."""
        self.holder = new_holder()

    def all_parts(self) -> tuple[Table]:
        """Itself: the rows of a relation of a context are in several parts."""
        return (self,)

    # --- reading --------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        """The rows in order of creation."""
        for row in self.rows.values():
            if row.stale:
                row.refresh()
        return self.rows.values()

    def __len__(self) -> int:
        return len(self.rows)

    def value_at(self, key: Hashable, column: str) -> Any:
        """A column of the row of a key; NULL without one."""
        row = self.rows.get(key)
        if row is None:
            return None
        found = row.accumulators.get(column)
        return row.row[column] if found is None else found.result()

    def row_at(self, key: Hashable) -> Row | None:
        """The row of a key as an object; NULL without one."""
        row = self.rows.get(key)
        if row is None:
            return None
        if row.stale:
            row.refresh()
        found: Row = row.row
        return found

    def keys(self) -> list[Any]:
        """The keys: values of one column, or lists of several."""
        columns = self.declaration.keys
        if len(columns) == 1:
            return [row.row[columns[0]] for row in self.rows.values()]
        return [[row.row[column] for column in columns] for row in self.rows.values()]

    def index(self, equal: tuple[str, ...], ordered: str | None) -> Index | PrimaryKey | Fresh | None:
        """The index by these columns; None for columns that aggregate, which change without notice."""
        if ordered is None and self.declaration.keys and set(equal) == set(self.declaration.keys):
            return PrimaryKey(self, tuple(equal.index(key) for key in self.declaration.keys))
        if any(column in self.makers for column in (*equal, ordered)):
            return None
        index = self.indexes.over(equal, ordered, self.rows.values())
        return Fresh(index) if self.makers else index

    def create_index(self, name: str, equal: tuple[str, ...], ordered: str | None, *, unique: bool) -> None:
        """A declared index. Raises DataError where rows collide in a unique one, or its columns aggregate."""
        if any(column in self.makers for column in (*equal, ordered)):
            raise DataError(f"index '{name}': a column that aggregates cannot be indexed")
        index = self.indexes.over(equal, ordered, self.rows.values())
        if unique:
            check_collisions(index, self.rows.values(), name)
            self.indexes.unique[name] = index
        self.named[name] = index

    # --- writing --------------------------------------------------------------------------------------------

    def shaped(self, row: Mapping[str, Any]) -> Row:
        """A row of just the declared columns; those it lacks are NULL."""
        return {column: row.get(column) for column in self.columns}

    def insert(self, row: Mapping[str, Any], now_ms: int) -> Delta:
        """A row comes. Raises DataError where its key is taken."""
        return self.change([row], (), now_ms)

    def change(self, rows: Sequence[Mapping[str, Any]], removed: Iterable[Event], now_ms: int) -> Delta:
        """Rows leave and others come, all or none of them. Raises DataError where a key is taken."""
        leaving = dict.fromkeys(removed)
        leaving |= self._room(rows, leaving)
        self._check(rows, leaving)
        for event in leaving:
            self._remove(event)
        self.version += 1
        return Delta([self._add(self.key_of_row(row), row, now_ms) for row in rows], list(leaving))

    def rewrite(self, event: TableRow, row: Row, now_ms: int) -> Change:
        """A row gets other values under its key. Raises DataError where a unique index refuses them."""
        if self.indexes.all:
            return self.write([(event, row)], (), (), now_ms)
        before = event.row
        event.row = row
        event.stamp = next(self.stamps)
        if self.bounded.is_kept:
            self.touched(event, now_ms)
        self.version += 1
        return [row], [before]

    def write(
        self,
        updates: Sequence[tuple[Event, Row]],
        rows: Sequence[Mapping[str, Any]],
        removed: Sequence[Event],
        now_ms: int,
    ) -> Change:
        """Rows are updated in their place, others come and go, all or none.

        `updates`: rows with just the declared columns.
        """
        there, key_of_row = self.rows, self.key_of_row
        is_alike = not (rows or removed or self.indexes.unique)
        for event, row in updates:
            is_alike = is_alike and there.get(key_of_row(row)) is event
        if not is_alike:
            return self._write(updates, rows, removed, now_ms)
        came, before, stamp = [], [], next(self.stamps)
        indexes, is_kept = self.indexes.all, self.bounded.is_kept
        for event, row in updates:
            came.append(row)
            before.append(event.row)
            for index in indexes:
                index.remove(event)
            assert isinstance(event, TableRow)
            event.row = row
            event.stamp = stamp
            for index in indexes:
                index.add(event)
            if is_kept:
                self.touched(event, now_ms)
        self.version += 1
        return came, before

    def _write(
        self,
        updates: Sequence[tuple[Event, Row]],
        rows: Sequence[Mapping[str, Any]],
        removed: Sequence[Event],
        now_ms: int,
    ) -> Change:
        changed = [row for _, row in updates]
        updated = dict.fromkeys(event for event, _ in updates)
        removed = [*removed, *self._room(rows, {**updated, **dict.fromkeys(removed)}, len(removed))]
        self._check([*changed, *rows], {**updated, **dict.fromkeys(removed)})
        before = [event.row for event in (*updated, *removed)]
        for event in removed:
            self._remove(event)
        self._rewrite(updates, now_ms)
        added = [self._add(self.key_of_row(row), row, now_ms) for row in rows]
        self.version += 1
        return [event.row for event in (*updated, *added)], before

    def _rewrite(self, updates: Sequence[tuple[Event, Row]], now_ms: int) -> None:
        """Change rows in their place; those whose key changes leave it first, since they may swap keys."""
        moved: list[tuple[TableRow, Hashable]] = []
        stamp = next(self.stamps)
        for event, row in updates:
            assert isinstance(event, TableRow)
            self.indexes.remove(event)
            key = self.key_of_row(row)
            if key != event.key:
                del self.rows[event.key]
                moved.append((event, key))
            event.row = row
            event.stamp = stamp
            self.touched(event, now_ms)
        for event, key in moved:
            event.key = key
            self.rows[key] = event
        for event, _ in updates:
            self.indexes.add(event)

    def clear(self) -> None:
        """No row is left, before a snapshot is put back."""
        self.rows.clear()
        for index in self.indexes.all:
            index.by_key.clear()

    def put_back(self, row: Row, time_ms: int, seq: int) -> TableRow:
        """A row of a snapshot, its aggregates still empty."""
        self.seq = seq - 1  # an ordered index finds a row by its number
        return self._add(self.key_of_row(row), row, time_ms)

    def _room(
        self, rows: Sequence[Any], leaving: Mapping[Event, Any], gone: int | None = None
    ) -> dict[Event, None]:
        """The rows that go so that `rows` fit; `gone`: how many of those leaving do not come back."""
        held = len(self.rows) - (len(leaving) if gone is None else gone)
        return dict.fromkeys(self.bounded.room(held, len(rows), leaving))

    def touched(self, row: Event, now_ms: int) -> None:
        """A row was written."""
        bounded = self.bounded
        if bounded.is_kept:
            was_empty = not bounded.written
            bounded.wrote(row, now_ms)
            if was_empty and bounded.bounds.ttl_ms is not None:
                self.wake()

    def advance(self, now_ms: int) -> None:
        """Time has come to `now_ms`: rows that were not written for long go."""
        aged = self.bounded.aged(now_ms)
        for row in aged:
            self._remove(row)
        self.version += bool(aged)

    def _check(self, rows: Sequence[Mapping[str, Any]], leaving: Mapping[Event, Any]) -> None:
        taken: set[Hashable] = set()
        for row in rows:
            key = self.key_of_row(row)
            holder = self.rows.get(key)
            if key in taken or (holder is not None and holder not in leaving):
                self.bounded.refused += 1
                raise DataError(f"table '{self.name}' has a row of the key {key!r} already")
            taken.add(key)
            if self.indexes.unique:
                self.indexes.check(row, leaving)

    def _add(self, key: Hashable, row: Mapping[str, Any], now_ms: int) -> TableRow:
        self.seq += 1
        accumulators = {name: make() for name, make in self.makers.items()} or NONE
        event = self.rows[key] = TableRow(
            self.shaped(row),
            now_ms,
            self.seq,
            key=key,
            stamp=next(self.stamps),
            accumulators=accumulators,
            stale=bool(accumulators),
        )
        self.indexes.add(event)
        self.touched(event, now_ms)
        return event

    def _remove(self, event: Event) -> None:
        assert isinstance(event, TableRow)
        self.indexes.remove(event)
        self.bounded.left(event)
        del self.rows[event.key]

    # --- aggregating ----------------------------------------------------------------------------------------

    def row_for(self, values: Sequence[Any], now_ms: int) -> TableRow:
        """The row that `into table` aggregates into; the first event of a key makes it."""
        key = tuple(map(key_of, values)) if len(values) != 1 else key_of(values[0])
        row = self.rows.get(key)
        if row is None:
            for oldest in self.bounded.room(len(self.rows), 1, ()):
                self._remove(oldest)
            row = self._add(key, dict(zip(self.declaration.keys, values, strict=True)), now_ms)
        return row


class PrimaryKey:
    """The primary key of a table as an index; `order`: the places of its columns in the key of a search."""

    is_single = True

    def __init__(self, table: Table, order: tuple[int, ...]) -> None:
        self.by_key = table.rows
        self.order = order
        self.is_plain = not table.makers and order == tuple(range(len(order)))
        self.bucket: FindBucket = table.rows.get if self.is_plain else self._row

    def buckets(self, keys: Iterable[Hashable]) -> list[TableRow | None]:
        """The row of each key without NULL."""
        return [*map(self.by_key.get, keys)]

    def _row(self, key: Any) -> TableRow | None:
        """The row of a key without NULL."""
        if len(self.order) > 1:
            key = tuple([key[place] for place in self.order])
        row = self.by_key.get(key)
        if row is not None and row.stale:
            row.refresh()
        return row


class Fresh:
    """An index whose rows are computed anew, where their aggregates have changed, before they are shown."""

    is_single = False
    is_plain = False

    def __init__(self, index: Index) -> None:
        self.index = index

    def bucket(self, key: object) -> Bucket | None:
        """The rows of a key without NULL."""
        return dict.fromkeys(self.find(key))

    def find(self, key: Hashable, span: Any = None) -> Iterable[Event]:
        """The rows of a key."""
        for row in self.index.find(key, span):
            assert isinstance(row, TableRow)
            if row.stale:
                row.refresh()
            yield row
