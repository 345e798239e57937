"""The rows of an output limit: what is kept until its condition holds, and what is emitted then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from sql.aggregates.plain_values import decode, encode
from sql.algebra.event_store import pack_key, unpack_key
from sql.algebra.output.suppression import Suppression
from sql.algebra.stored import PLAIN, Form, Layout, Stored
from sql.emission import Out, Update, shown
from sql.types import Plain, Saved

PackedOuts = list[tuple[Plain, Plain, Plain]]
"""Output rows, with their places among groups and in ORDER BY."""


def _pack(rows: Iterable[Out | None]) -> PackedOuts:
    return [(encode(row.row), pack_key(row.key), pack_key(row.order)) for row in rows if row is not None]


def _unpack(packed: PackedOuts) -> list[Out]:
    return [Out(decode(row), unpack_key(key), unpack_key(order)) for row, key, order in packed]


OUTS = Form(_pack, _unpack)
OUTS_BY_KEY = Form(lambda rows: _pack(rows.values()), lambda state: {row.key: row for row in _unpack(state)})
"""Output rows in order, and those of each group."""

KEYS = Form(lambda keys: [*map(pack_key, keys)], lambda state: dict.fromkeys(map(unpack_key, state)))
"""The keys of groups."""


class LimitedRows(Stored, ABC):
    """The rows of an output limit: keeps those between two outputs."""

    ends = True
    """True if there is output at the end of a partition."""
    ends_empty = False
    """True if that output is emitted even without rows."""

    @property
    def waits(self) -> bool:
        """True if the interval has not begun: it begins with the first rows that go out."""
        return False

    def take(self, update: Update, now: int) -> tuple[list[Out], list[Out]] | None:
        """An update arrives; rows that go out at once, if any."""
        return None

    @abstractmethod
    def give(self) -> tuple[list[Out], list[Out]] | None:
        """The rows of this output; None for no output at all."""


class Buffered(LimitedRows):
    """Base of what collects rows and gives them out once."""

    stored: ClassVar[Layout] = (("new", OUTS), ("old", OUTS))

    def __init__(self) -> None:
        self.new: list[Out] = []
        self.old: list[Out] = []

    def give(self) -> tuple[list[Out], list[Out]]:
        out = self.new, self.old
        self.new, self.old = [], []
        return out


class Everything(Buffered):
    """default, and all of plain rows: everything since the last output.

    `repeat` gives the present row again, as new and as old, when a statement of only
    aggregates has not changed.
    """

    stored = (*Buffered.stored, ("shown", OUTS))

    def __init__(self, repeat: Callable[[], list[Out]] | None, *, ends_empty: bool = False) -> None:
        super().__init__()
        self.repeat = repeat
        self.ends_empty = ends_empty
        self.shown = [] if repeat is None else repeat()
        """The row of a statement of only aggregates as of the last output."""

    def take(self, update: Update, now: int) -> None:
        self.new += update.new
        self.old += update.old

    def give(self) -> tuple[list[Out], list[Out]]:
        self.shown = self.new[-1:] or self.shown
        if not self.new and not self.old and self.repeat is not None:
            row = self.repeat()
            return row, list(row)
        return super().give()


class LastRows(Buffered):
    """last of plain rows: the last insert row and the last remove row."""

    def take(self, update: Update, now: int) -> None:
        self.new = update.new[-1:] or self.new
        self.old = update.old[-1:] or self.old


class LastValue(LimitedRows):
    """last of only aggregates: the present row; old is the first old row of the interval, or again the
    present one."""

    stored = (("changed", PLAIN), ("old", OUTS))

    def __init__(self, present: Callable[[], list[Out]]) -> None:
        self.present = present
        self.changed = False
        self.old: list[Out] = []

    def take(self, update: Update, now: int) -> None:
        self.changed = True
        self.old = self.old or update.old[:1]

    def give(self) -> tuple[list[Out], list[Out]]:
        new = self.present()
        out = (new, self.old) if self.changed else (new, list(new))
        self.changed, self.old = False, []
        return out


class LastPerGroup(LimitedRows):
    """last of groups: per changed group its last row, and its first old row or its last. With a row for each
    group, `is_of_groups`, there is none where HAVING drops the present one, and the old row is the first."""

    stored = (("new", OUTS_BY_KEY), ("old", OUTS_BY_KEY))

    def __init__(self, *, is_of_groups: bool) -> None:
        self.is_of_groups = is_of_groups
        self.new: dict[Any, Out | None] = {}
        self.old: dict[Any, Out] = {}

    def take(self, update: Update, now: int) -> None:
        for row in update.old:
            if not (self.is_of_groups and row.key in self.old):
                self.old[row.key] = row
        if self.is_of_groups:
            self.new.update(dict.fromkeys(update.keys))
        for row in update.new:
            self.new[row.key] = row

    def give(self) -> tuple[list[Out], list[Out]]:
        out = [row for row in self.new.values() if row is not None], list(self.old.values())
        self.new, self.old = {}, {}
        return out


class LastOfTouched(LimitedRows):
    """last of groups whose rows are made when they are emitted: nothing happens with an update."""

    stored = (("rows", OUTS_BY_KEY),)

    def __init__(self, touched: Callable[[], list[Out]]) -> None:
        self.touched = touched
        self.rows: dict[Any, Out] = {}

    def _collect(self) -> None:
        for row in self.touched():
            self.rows[row.key] = row

    def give(self) -> tuple[list[Out], list[Out]]:
        self._collect()
        rows, self.rows = self.rows, {}
        return list(rows.values()), []

    def snapshot(self) -> Saved:
        self._collect()
        return super().snapshot()


class AllGroups(LimitedRows):
    """all of groups: the present row of every group ever seen; old is the first old row, or
    the row emitted last."""

    stored = (("seen", KEYS), ("old", OUTS_BY_KEY), ("given", OUTS_BY_KEY))

    def __init__(self, current: Callable[[Any], list[Out]]) -> None:
        self.current = current
        self.seen: dict[Any, None] = {}
        self.old: dict[Any, Out] = {}
        self.given: dict[Any, Out] = {}

    def take(self, update: Update, now: int) -> None:
        for row in update.old:
            self.old.setdefault(row.key, row)
        self.seen.update(dict.fromkeys(update.keys))

    def give(self) -> tuple[list[Out], list[Out]]:
        new = [row for key in self.seen for row in self.current(key)]
        old = [self.old.get(key) or self.given.get(key) for key in self.seen]
        self.old = {}
        self.given = {row.key: row for row in new}
        return new, [row for row in old if row is not None]


class AllGroupEvents(Buffered):
    """all of groups with other columns: every row,
    and each group without a new row once with its present one."""

    def __init__(self, current: Callable[[Any], list[Out]]) -> None:
        super().__init__()
        self.current = current
        self.seen: dict[Any, None] = {}

    def take(self, update: Update, now: int) -> None:
        self.new += update.new
        self.old += update.old
        self.seen.update(dict.fromkeys(row.key for row in update.new))

    def give(self) -> tuple[list[Out], list[Out]]:
        shown = {row.key for row in self.new}
        self.new += [row for key in self.seen if key not in shown for row in self.current(key)]
        return super().give()

    def snapshot(self) -> tuple[list[Plain], Saved]:
        return KEYS.pack(self.seen), super().snapshot()

    def restore(self, state: tuple[list[Plain], Saved]) -> None:
        self.seen = KEYS.unpack(state[0])
        super().restore(state[1])


class FirstUpdate(LimitedRows):
    """first of ungrouped rows: the first update of the interval that has rows, whole
    and at once, then mute."""

    ends = False
    stored = (("open", PLAIN),)

    def __init__(self, selector: str) -> None:
        """`selector`: of the statement, so that rows that leave begin no interval where none are shown."""
        self.selector = selector
        self.open = True

    def take(self, update: Update, now: int) -> tuple[list[Out], list[Out]] | None:
        if not self.open or not any(shown(self.selector, update.new, update.old)):
            return None
        self.open = False
        return update.new, update.old

    @property
    def waits(self) -> bool:
        return self.open

    def give(self) -> None:
        self.open = True


class FirstPerGroup(LimitedRows):
    """first of groups: per group a row at once, then mute. Each event of an update is asked; of a group for
    which several pass, the last."""

    ends = False

    def __init__(self, mute: Suppression, *, is_of_events: bool) -> None:
        """`is_of_events`: rows are those of events, and one of a group passes, not an old one beside it."""
        self.mute = mute
        self.is_of_events = is_of_events

    def take(self, update: Update, now: int) -> tuple[list[Out], list[Out]] | None:
        new, old = self._of_events(update, now) if self.is_of_events else self._of_groups(update, now)
        return (list(new.values()), list(old.values())) if new or old else None

    def _of_events(self, update: Update, now: int) -> tuple[dict[Any, Out], dict[Any, Out]]:
        new: dict[Any, Out] = {}
        old: dict[Any, Out] = {}
        for row in update.new:
            if self.mute.passes(row.key, now, is_new=True):
                new[row.key] = row
        for row in update.old:
            if self.mute.passes(row.key, now, is_new=False):
                new.pop(row.key, None)
                old[row.key] = row
        return new, old

    def _of_groups(self, update: Update, now: int) -> tuple[dict[Any, Out], dict[Any, Out]]:
        new = {row.key: row for row in update.new}
        old = {row.key: row for row in update.old}
        passing = {key for key in update.came if key in new and self.mute.passes(key, now, is_new=True)}
        passing |= {key for key in update.left if key in old and self.mute.passes(key, now, is_new=False)}
        return (
            {key: row for key, row in new.items() if key in passing},
            {key: row for key, row in old.items() if key in passing},
        )

    def give(self) -> None:
        return None

    def snapshot(self) -> Saved:
        return self.mute.snapshot()

    def restore(self, state: Saved) -> None:
        self.mute.restore(state)


class Snapshot(LimitedRows):
    """snapshot: the present content; nothing before the first event."""

    ends_empty = True

    def __init__(self, content: Callable[[], list[Out]]) -> None:
        self.content = content

    def give(self) -> tuple[list[Out], list[Out]]:
        return self.content(), []
