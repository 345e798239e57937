"""Named windows and tables by the book: lists of rows, which are searched from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sql.plan.declared import TableDeclaration, WindowDeclaration
from sql.types import key_of
from tests.reference.expressions import Row
from tests.reference.members import Delta
from tests.reference.rows import Event
from tests.reference.windows import Intersection, once

Written = Sequence[tuple[Event | None, Row]]
"""Rows to write, in order, each with the row that it updates; None where it is a new one."""


class Refused(Exception):
    """A key is taken: the change is not made."""


class Store(Protocol):
    """A relation."""

    name: str
    columns: tuple[str, ...]

    def content(self) -> list[Event]: ...
    def write(self, written: Written, removed: Sequence[Event], now: int) -> Delta: ...
    def due_ms(self) -> int | None: ...
    def advance(self, now: int) -> Delta: ...


class NamedWindow:
    """Rows that data windows keep. An updated row is a new row; an old one is never changed."""

    def __init__(self, declaration: WindowDeclaration, start_ms: int) -> None:
        if declaration.source.union:
            raise NotImplementedError("the twin has no unions that rows are taken out of by hand")
        if any(window.name == "groupwin" for window in declaration.source.windows):
            raise NotImplementedError("the twin has no named windows in groups")
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.windows = Intersection(declaration.source.windows, start_ms)
        if self.windows.batch is not None:
            raise NotImplementedError("the twin has no named windows of batches")
        self.seq = 0

    def content(self) -> list[Event]:
        return self.windows.content()

    def write(self, written: Written, removed: Sequence[Event], now: int) -> Delta:
        leaving = once([*(event for event, _ in written if event is not None), *removed])
        self.windows.drop(leaving)
        inserted: list[Event] = []
        for _, row in written:
            self.seq += 1
            for delta in self.windows.insert(Event(now, self.seq, shaped(row, self.columns)), now):
                inserted += delta.inserted
                leaving += delta.removed
        return Delta(inserted, leaving)

    def due_ms(self) -> int | None:
        return self.windows.due_ms()

    def advance(self, now: int) -> Delta:
        return Delta([], [event for delta in self.windows.advance(now) for event in delta.removed])


class Table:
    """Rows by key, without a primary key one at most. An updated row keeps its place, and no timer fires."""

    def __init__(self, declaration: TableDeclaration) -> None:
        if declaration.aggregates:
            raise NotImplementedError("the twin has no tables that aggregate")
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.keys = declaration.keys
        self.rows: list[Event] = []
        self.seq = 0

    def content(self) -> list[Event]:
        return list(self.rows)

    def write(self, written: Written, removed: Sequence[Event], now: int) -> Delta:
        rows = [row for event, row in written if event is None]
        changed = {e: Event(now, e.seq, shaped(row, self.columns)) for e, row in written if e is not None}
        came = [Event(now, self.seq + place, shaped(row, self.columns)) for place, row in enumerate(rows, 1)]
        after = [changed.get(event, event) for event in self.rows if event not in removed] + came
        keys = [key_of([event.row[column] for column in self.keys]) for event in after]
        if len(set(keys)) < len(keys):
            raise Refused
        self.rows, self.seq = after, self.seq + len(came)
        return Delta([*changed.values(), *came], [*changed, *removed])

    def due_ms(self) -> int | None:
        return None

    def advance(self, now: int) -> Delta:
        return Delta([], [])


def shaped(row: Row, columns: Sequence[str]) -> Row:
    """A row of just the declared columns."""
    return {column: row.get(column) for column in columns}
