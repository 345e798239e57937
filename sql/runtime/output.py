"""Output limits: when the rows of a statement are given out, and which of them (epl.md section 7).

A `Condition` says when (the same triggers as everywhere: a grid, a count, a crontab, an expression); an `OutputLimit` keeps
what there will be to say. Without a limit every step is given out at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sql.calendar.period import Period
from sql.runtime.emission import Out, Update
from sql.windows.operator import earliest

if TYPE_CHECKING:
    from sql.calendar.crontab import Crontab


class Condition(ABC):
    """When output happens."""

    pending = False
    """Whether a changed variable has already decided for an output, which follows at the next advance of time."""

    def on_update(self, update: Update, now: int) -> bool:
        """An update reaches the output stage: whether to give out now."""
        return False

    def deadline(self) -> int | None:
        return None

    def advance(self, now: int) -> bool:
        """Whether output is due at or before `now` by time."""
        return False

    def done(self, now: int) -> None:
        """Called after each output."""

    @abstractmethod
    def snapshot(self) -> Any: ...

    @abstractmethod
    def restore(self, state: Any) -> None: ...


class EveryPeriod(Condition):
    """A grid from the first update; then every grid point, also without anything to say."""

    def __init__(self, period: Callable[[], Period], zone: Any) -> None:
        self.period = period
        self.zone = zone
        self.origin_ms: int | None = None
        self.due_ms: int | None = None

    def on_update(self, update: Update, now: int) -> bool:
        if self.origin_ms is None:
            self.origin_ms = now
            self.due_ms = self.period().next_after(now, now, self.zone)
        return False

    def deadline(self) -> int | None:
        return self.due_ms

    def advance(self, now: int) -> bool:
        if self.due_ms is None or self.due_ms > now:
            return False
        assert self.origin_ms is not None
        self.due_ms = self.period().next_after(now, self.origin_ms, self.zone)
        return True

    def snapshot(self) -> Any:
        return [self.origin_ms, self.due_ms]

    def restore(self, state: Any) -> None:
        self.origin_ms, self.due_ms = state


class EveryEvents(Condition):
    """Counts inserts and removes apart; whichever reaches n first."""

    def __init__(self, count: Callable[[], int]) -> None:
        self.count = count
        self.inserted = self.removed = 0

    def on_update(self, update: Update, now: int) -> bool:
        self.inserted += update.inserted
        self.removed += update.removed
        return self.inserted >= self.count() or self.removed >= self.count()

    def done(self, now: int) -> None:
        self.inserted = self.removed = 0

    def snapshot(self) -> Any:
        return [self.inserted, self.removed]

    def restore(self, state: Any) -> None:
        self.inserted, self.removed = state


class At(Condition):
    """A crontab, from the start of the statement."""

    def __init__(self, crontab: Crontab, start_ms: int) -> None:
        self.crontab = crontab
        self.due_ms: int = crontab.next_after(start_ms)

    def deadline(self) -> int | None:
        return self.due_ms

    def advance(self, now: int) -> bool:
        if self.due_ms > now:
            return False
        self.due_ms = self.crontab.next_after(now)
        return True

    def snapshot(self) -> Any:
        return self.due_ms

    def restore(self, state: Any) -> None:
        self.due_ms = state


class Counters:
    """The built-in properties of `output when`."""

    def __init__(self) -> None:
        self.count_insert = self.count_remove = 0
        self.count_insert_total = self.count_remove_total = 0
        self.last_output_timestamp: int | None = None

    def get(self, name: str) -> Any:
        """The value of a property."""
        return getattr(self, name)


class When(Condition):
    """An expression over counters and variables, tested at each update and variable change.

    A change of a variable is seen at once (`then set` runs), its rows follow at the next advance of time.
    """

    def __init__(self, test: Callable[[Counters], bool], then_set: Callable[[Counters], None]) -> None:
        self.test = test
        self.then_set = then_set
        self.counters = Counters()

    def on_update(self, update: Update, now: int) -> bool:
        self.counters.count_insert += update.inserted
        self.counters.count_remove += update.removed
        self.counters.count_insert_total += update.inserted
        self.counters.count_remove_total += update.removed
        if not self.test(self.counters):
            return False
        self.then_set(self.counters)
        return True

    def variable_changed(self) -> None:
        """A variable has changed."""
        if not self.pending and self.test(self.counters):
            self.pending = True
            self.then_set(self.counters)

    def advance(self, now: int) -> bool:
        fires, self.pending = self.pending, False
        return fires

    def done(self, now: int) -> None:
        self.counters.count_insert = self.counters.count_remove = 0
        self.counters.last_output_timestamp = now

    def snapshot(self) -> Any:
        return [vars(self.counters), self.pending]

    def restore(self, state: Any) -> None:
        vars(self.counters).update(state[0])
        self.pending = state[1]


class Always(Condition):
    """Only `after` limits the output: everything behind it at once."""

    def on_update(self, update: Update, now: int) -> bool:
        return True

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        return None


class After:
    """`after n events` swallows n, `after d` what comes before start + d."""

    def __init__(self, events: int | None, opens_ms: int | None) -> None:
        self.left = events or 0
        self.opens_ms = opens_ms

    def cut(self, update: Update, now: int) -> Update | None:
        """What is left of an update; None for nothing."""
        if self.opens_ms is not None and now < self.opens_ms:
            return None
        if not self.left:
            return update
        swallowed = min(self.left, max(len(update.new), len(update.old)))
        self.left -= swallowed
        rest = Update(update.new[swallowed:], update.old[swallowed:], max(0, update.inserted - swallowed),
                      max(0, update.removed - swallowed))  # fmt: skip
        return rest if rest.new or rest.old else None


class Given(ABC):
    """What is given out: keeps rows between two outputs."""

    immediate = False
    """Whether rows may go out with the update itself (`first`)."""

    def take(self, update: Update, now: int) -> tuple[list[Out], list[Out]] | None:
        """An update arrives; rows that go out at once, if any."""
        return None

    @abstractmethod
    def give(self) -> tuple[list[Out], list[Out]] | None:
        """The rows of this output; None for no output at all."""

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        return None


class Everything(Given):
    """default, and all of plain rows: everything since the last output.

    `repeat` gives the present row again, as new and as old, when a statement of only aggregates has not changed.
    """

    def __init__(self, repeat: Callable[[], list[Out]] | None) -> None:
        self.new: list[Out] = []
        self.old: list[Out] = []
        self.repeat = repeat

    def take(self, update: Update, now: int) -> None:
        self.new += update.new
        self.old += update.old

    def give(self) -> tuple[list[Out], list[Out]]:
        if not self.new and not self.old and self.repeat is not None:
            row = self.repeat()
            return row, list(row)
        out = self.new, self.old
        self.new, self.old = [], []
        return out

    def snapshot(self) -> Any:
        return [pack_outs(self.new), pack_outs(self.old)]

    def restore(self, state: Any) -> None:
        self.new, self.old = unpack_outs(state[0]), unpack_outs(state[1])


class LastRow(Given):
    """last of plain rows: the last insert row and the last remove row."""

    def __init__(self) -> None:
        self.new: list[Out] = []
        self.old: list[Out] = []

    def take(self, update: Update, now: int) -> None:
        self.new = update.new[-1:] or self.new
        self.old = update.old[-1:] or self.old

    def give(self) -> tuple[list[Out], list[Out]]:
        out = self.new, self.old
        self.new, self.old = [], []
        return out

    def snapshot(self) -> Any:
        return [pack_outs(self.new), pack_outs(self.old)]

    def restore(self, state: Any) -> None:
        self.new, self.old = unpack_outs(state[0]), unpack_outs(state[1])


class LastValue(Given):
    """last of only aggregates: the present row; old is the first old row of the interval, or again the present one."""

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

    def snapshot(self) -> Any:
        return [self.changed, pack_outs(self.old)]

    def restore(self, state: Any) -> None:
        self.changed, self.old = state[0], unpack_outs(state[1])


class LastPerGroup(Given):
    """last of groups: per changed group its last row, and its first old row (`first_old`) or its last."""

    def __init__(self, first_old: bool) -> None:
        self.first_old = first_old
        self.new: dict[Any, Out] = {}
        self.old: dict[Any, Out] = {}

    def take(self, update: Update, now: int) -> None:
        for row in update.old:
            if not (self.first_old and row.key in self.old):
                self.old[row.key] = row
        for row in update.new:
            self.new[row.key] = row

    def give(self) -> tuple[list[Out], list[Out]]:
        out = list(self.new.values()), list(self.old.values())
        self.new, self.old = {}, {}
        return out

    def snapshot(self) -> Any:
        return [pack_outs(self.new.values()), pack_outs(self.old.values())]

    def restore(self, state: Any) -> None:
        self.new, self.old = ({row.key: row for row in unpack_outs(part)} for part in state)


class AllGroups(Given):
    """all of groups: the present row of every group ever seen; old is the first old row, or the row given out last."""

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

    def snapshot(self) -> Any:
        from sql.runtime.state import pack_key

        seen = [pack_key(key) for key in self.seen]
        return [seen, pack_outs(self.old.values()), pack_outs(self.given.values())]

    def restore(self, state: Any) -> None:
        from sql.runtime.state import unpack_key

        self.seen = {unpack_key(key): None for key in state[0]}
        self.old, self.given = ({row.key: row for row in unpack_outs(part)} for part in state[1:])


class AllGroupEvents(Given):
    """all of groups with other columns: every row, and for each group without a new row its present one."""

    def __init__(self, current: Callable[[Any], list[Out]]) -> None:
        self.current = current
        self.seen: dict[Any, None] = {}
        self.new: list[Out] = []
        self.old: list[Out] = []

    def take(self, update: Update, now: int) -> None:
        self.new += update.new
        self.old += update.old
        self.seen.update(dict.fromkeys(row.key for row in update.new))

    def give(self) -> tuple[list[Out], list[Out]]:
        shown = {row.key for row in self.new}
        rest = [row for key in self.seen if key not in shown for row in self.current(key)]
        out = self.new + rest, self.old
        self.new, self.old = [], []
        return out

    def snapshot(self) -> Any:
        from sql.runtime.state import pack_key

        return [[pack_key(key) for key in self.seen], pack_outs(self.new), pack_outs(self.old)]

    def restore(self, state: Any) -> None:
        from sql.runtime.state import unpack_key

        self.seen = {unpack_key(key): None for key in state[0]}
        self.new, self.old = unpack_outs(state[1]), unpack_outs(state[2])


class FirstUpdate(Given):
    """first of ungrouped rows: the first update of the interval, whole and at once, then mute."""

    immediate = True

    def __init__(self) -> None:
        self.open = True

    def take(self, update: Update, now: int) -> tuple[list[Out], list[Out]] | None:
        if not self.open:
            return None
        self.open = False
        return update.new, update.old

    def give(self) -> None:
        self.open = True

    def snapshot(self) -> Any:
        return self.open

    def restore(self, state: Any) -> None:
        self.open = state


class FirstPerGroup(Given):
    """first of groups: per group a row at once, then mute for the period since it, or until n more of its events."""

    def __init__(self, period_ms: Callable[[int], int] | None, count: Callable[[], int] | None) -> None:
        self.period_ms = period_ms
        self.count = count
        self.marks: dict[Any, int] = {}
        """Per group until when it is mute, or how many of its events have been held back."""

    def take(self, update: Update, now: int) -> tuple[list[Out], list[Out]] | None:
        touched = dict.fromkeys(row.key for row in (*update.new, *update.old))
        passing = {key for key in touched if self._passes(key, now)}
        new: dict[Any, Out] = {}
        old: dict[Any, Out] = {}
        for row in update.new:
            if row.key in passing:
                new.setdefault(row.key, row)
        for row in update.old:
            if row.key in passing:
                old.setdefault(row.key, row)
        return (list(new.values()), list(old.values())) if new or old else None

    def _passes(self, key: Any, now: int) -> bool:
        mark = self.marks.get(key)
        if self.period_ms is not None:
            if mark is not None and now < mark:
                return False
            self.marks[key] = self.period_ms(now)
            return True
        assert self.count is not None
        if mark is not None and mark + 1 < self.count():
            self.marks[key] = mark + 1
            return False
        self.marks[key] = 0
        return True

    def give(self) -> None:
        return None

    def snapshot(self) -> Any:
        from sql.runtime.state import pack_key

        return [[pack_key(key), mark] for key, mark in self.marks.items()]

    def restore(self, state: Any) -> None:
        from sql.runtime.state import unpack_key

        self.marks = {unpack_key(key): mark for key, mark in state}


class Snapshot(Given):
    """snapshot: the present content; nothing before the first event."""

    def __init__(self, content: Callable[[], list[Out]]) -> None:
        self.content = content

    def give(self) -> tuple[list[Out], list[Out]]:
        return self.content(), []


class OutputLimit:
    """A condition and what it gives."""

    def __init__(self, condition: Condition, given: Given, after: After | None) -> None:
        self.condition = condition
        self.given = given
        self.after = after
        self.looks = isinstance(given, Snapshot)
        self.forces = not isinstance(condition, EveryEvents | Always)
        """Whether an output without rows is posted: by time and by expression, not by count."""

    def update(self, updates: Iterable[Update], now: int) -> list[tuple[list[Out], list[Out]]]:
        """The outputs that the updates of one step cause."""
        out = []
        for update in updates:
            cut = update if self.after is None else self.after.cut(update, now)
            if cut is None:
                continue
            fires = self.condition.on_update(cut, now)
            at_once = self.given.take(cut, now)
            if at_once is not None:
                out.append(at_once)
            if fires:
                out += self._fire(now)
        return out

    def _fire(self, now: int) -> list[tuple[list[Out], list[Out]]]:
        rows = self.given.give()
        self.condition.done(now)
        return [] if rows is None else [rows]

    def next_deadline(self) -> int | None:
        return earliest((self.condition.deadline(),))

    def advance(self, now: int) -> list[tuple[list[Out], list[Out]]]:
        """The output due at or before `now`."""
        return self._fire(now) if self.condition.advance(now) else []

    def snapshot(self) -> Any:
        after = None if self.after is None else [self.after.left, self.after.opens_ms]
        return [self.condition.snapshot(), self.given.snapshot(), after]

    def restore(self, state: Any) -> None:
        self.condition.restore(state[0])
        self.given.restore(state[1])
        if self.after is not None:
            self.after.left, self.after.opens_ms = state[2]


def pack_outs(rows: Iterable[Out]) -> Any:
    """Output rows as JSON, with their places among groups and in ORDER BY."""
    from sql.aggregates.state import encode
    from sql.runtime.state import pack_key

    return [[encode(row.row), pack_key(row.key), pack_key(row.order)] for row in rows]


def unpack_outs(packed: Any) -> list[Out]:
    """The rows `pack_outs` packed."""
    from sql.aggregates.state import decode
    from sql.runtime.state import unpack_key

    return [Out(decode(row), unpack_key(key), unpack_key(order)) for row, key, order in packed]
