"""Named windows: rows that a chain of data windows keeps, indexed, read and written by many statements.

A row enters as an event enters a window of FROM, and leaves as the windows say or by hand. An updated row is
a new row: the old one leaves, the new one enters every data window as the newest. Rows are never changed in
place, so old rows stay as they are. Every change is a `Delta` that the caller passes on to the consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.event import Delta, Event, merged
from sql.algebra.operator import Operator, earliest
from sql.algebra.row_blocks import new_holder
from sql.algebra.table.bounds import Bounded
from sql.algebra.table.index import Index, Indexes
from sql.algebra.table.lookup import Name
from sql.algebra.table.row import Change, KeptRow, Written, row_class
from sql.algebra.table.searched import FindRange, KeyIndex
from sql.codegen.functions import DATA_ERRORS
from sql.plan.declared import WindowDeclaration


class NamedWindow:
    """The rows of one named window.

    declaration  what was declared
    operator     its data windows
    """

    kind = "window"

    def __init__(self, declaration: WindowDeclaration, operator: Operator, *, batches: bool) -> None:
        """`batches`: a batch gathers, so that what is in the window and what was posted are two things."""
        self.declaration = declaration
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.operator = operator
        self.batches = batches
        self.bounded = Bounded(f"named window '{declaration.name}'", declaration.bounds)
        self.row_class: type[KeptRow] = row_class(self.columns, KeptRow)
        self.indexes = Indexes("kept")
        self.named: dict[str, Index] = {}
        self.rows: dict[Event, None] = {}
        """The rows of the window, in order of arrival; of a batch window the last batch posted."""
        self.seq = 0
        self.holder = new_holder()
        """The holder of rows whose numbers are those of `seq`."""
        self.version = 0
        """Grows with every change: a reader that keeps results computed from the rows compares it."""
        self.begin: Callable[[int], None] = lambda now_ms: None
        """Called before the data windows work, where several named windows share their functions."""
        self.check: Callable[[Event], None] = lambda event: None
        """Raises what the data windows would raise of a row that enters."""
        self.failure: Callable[[BaseException], BaseException] = lambda error: error
        """An error of the data windows, as it is reported."""
        self.publish: Callable[[NamedWindow, Delta], None] = lambda window, delta: None
        """Called for every change. The engine passes it on to the consumers."""
        self.entered: Callable[[NamedWindow, Mapping[str, Any]], None] = lambda window, row: None
        """Called for every row inserted, which the engine passes on to patterns."""

    def all_parts(self) -> tuple[NamedWindow]:
        """Itself: the rows of a relation of a context are in several parts."""
        return (self,)

    # --- reading --------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        """The rows, in the order of the data windows; of a batch what gathers."""
        return self.operator.content()

    def numbers(self) -> dict[Event, Any]:
        return {event: event.seq for event in self.rows}

    def __len__(self) -> int:
        return len(self.rows) if not self.batches else sum(1 for _ in self.content())

    def by_key(self, equal: tuple[Name, ...]) -> KeyIndex | None:
        """The index by these columns; None where the rows cannot be indexed."""
        return None if self.batches else self.indexes.by_key(equal, self.rows).lookups

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> FindRange | None:
        """The function that finds rows by these columns and in order of one more."""
        return None if self.batches else self.indexes.in_order(equal, ordered, self.rows).find

    def create_index(self, name: str, equal: tuple[str, ...], ordered: str | None, *, unique: bool) -> None:
        """A declared index. Raises DataError where rows collide in a unique one; a row that a data window
        replaces collides with none."""
        unique = unique and not self.declaration.replaces((*equal, *filter(None, (ordered,))))
        self.named[name] = self.indexes.declare(name, equal, ordered, self.rows, unique=unique)

    # --- writing --------------------------------------------------------------------------------------------

    def insert(self, row: Mapping[str, Any], now_ms: int) -> Delta:
        """A row of `insert into` enters. Raises DataError where a unique index or the bound refuses it."""
        delta = self.change([row], (), now_ms)
        self.entered(self, row)
        return delta

    def change(self, rows: Sequence[Mapping[str, Any]], removed: Iterable[Event], now_ms: int) -> Delta:
        """Rows leave and others enter, all or none of them. Raises DataError where one is refused."""
        return self._exchange([self.made(row, now_ms) for row in rows], removed, now_ms)

    def _exchange(self, events: Sequence[KeptRow], removed: Iterable[Event], now_ms: int) -> Delta:
        leaving = dict.fromkeys(removed)
        leaving |= dict.fromkeys(self.bounded.room(len(self.rows) - len(leaving), len(events), leaving))
        self.indexes.check(events, leaving)
        for event in events:
            self.seq += 1
            event.seq = self.seq
        return self._apply(Delta(events, list(leaving)), now_ms)

    def made(self, row: Mapping[str, Any], time_ms: int, seq: int = 0, extra: object = None) -> KeptRow:
        """A row of these values that is not in the window yet."""
        found = self.row_class(time_ms=time_ms, seq=seq, extra=extra)
        found.put(row)
        return found

    def write(self, written: Written, removed: Sequence[Event], now_ms: int) -> Change:
        """Rows are updated, which makes new rows of them, others come and go, all or none of them. They enter
        in the order given. What the data windows push out for them is no part of the change."""
        before = [*(event for event, _ in written if event is not None), *removed]
        came = [self.made(row, now_ms) for _, row in written]
        self._exchange(came, before, now_ms)
        return [event.row for event in came], [event.row for event in before]

    def _apply(self, delta: Delta, now_ms: int) -> Delta:
        """Let the data windows take a change in, whole or not at all. Raises DataError where they refuse a
        row."""
        self.begin(now_ms)
        leaving = [Delta((), delta.removed)] if delta.removed else []
        parts = (*leaving, *(Delta((event,)) for event in delta.inserted))
        posts: list[Delta] = []
        taken: list[Delta] = []
        try:
            if len(parts) > 1:  # what one row raises it raises before it changes anything
                for event in delta.inserted:
                    self.check(event)
            for part in parts:
                posts += self._noted(self.operator.push(part, now_ms))
                taken.append(part)
        except DATA_ERRORS as error:
            if taken:
                self._take_back(taken, posts, now_ms)
            raise self.failure(error) from error
        return self._posted(posts)

    def _take_back(self, parts: Sequence[Delta], posts: list[Delta], now_ms: int) -> None:
        """Undo the parts of a change that the data windows refuse to take whole: a key beyond `maxGroups` is
        known only once rows have left. Rows that had left enter again as the newest."""
        for inserted, removed in reversed(parts):
            posts += self._noted(self.operator.push(Delta(removed, inserted), now_ms))
        came, left = merged(posts)
        stays = {*came} & {*left}
        self._posted([Delta(*([event for event in side if event not in stays] for side in (came, left)))])

    def advance(self, now_ms: int) -> Delta:
        """Time has come to `now_ms`: rows expire, batches are released."""
        self.begin(now_ms)
        posts: list[Delta] = []
        while (deadline := self.operator.next_deadline()) is not None and deadline <= now_ms:
            posts += self._noted(self.operator.advance(now_ms))
        aged = self.bounded.aged(now_ms)
        if aged:
            posts += self._noted(self.operator.push(Delta((), aged), now_ms))
        return self._posted(posts)

    def next_deadline(self) -> int | None:
        """When rows expire or batches are released next."""
        return earliest((self.operator.next_deadline(), self.bounded.next_deadline()))

    def variable_changed(self, now_ms: int) -> Delta:
        """Time has come to `now_ms` after a variable has changed: data windows let go of rows."""
        self.begin(now_ms)
        return self._posted(self._noted(self.operator.variable_changed(now_ms)))

    def _noted(self, posts: list[Delta]) -> list[Delta]:
        """Change rows, indexes and bounds by posts of the data windows; the posts."""
        for inserted, removed in posts:
            for event in inserted:
                self.rows[event] = None
                self.indexes.add(event)
                self.bounded.wrote(event, event.time_ms)
            for event in removed:
                if event in self.rows:
                    del self.rows[event]
                    self.indexes.remove(event)
                    self.bounded.left(event)
        return posts

    def _posted(self, posts: Sequence[Delta]) -> Delta:
        self.version += 1
        delta = merged(posts)
        if delta.inserted or delta.removed:
            self.publish(self, delta)
        else:
            self.bounded.wake()  # a batch gathers, and is released later
        self.operator.end_step()
        return delta
