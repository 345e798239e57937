"""The triggers of output limits: they decide when a statement emits its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sql.algebra.stored import PLAIN, Stored
from sql.emission import Update
from sql.types import Saved


class OutputTrigger(Stored):
    """When output happens."""

    pending = False
    """True if a changed variable has caused an output, which follows at the next advance of time."""

    defers = False
    """True if an update never brings forward a deadline that is set."""

    def begins_with(self, update: Update) -> bool:
        """True if an interval of `first` may begin with this update; some triggers need rows of it."""
        return True

    def begin(self, now: int) -> None:
        """Time counts from now on, before any update."""

    def on_update(self, update: Update, now: int) -> bool:
        """Take an update; True if the statement emits now."""
        return False

    def deadline(self) -> int | None:
        return None

    def advance(self, now: int) -> bool:
        """True if output is due at or before `now` by time."""
        return False

    def done(self, now: int) -> None:
        """Called after each output."""


class AtInstants(OutputTrigger):
    """Outputs at the instants of a period or a crontab, from the first update on, with rows or without."""

    stored = (("origin_ms", PLAIN), ("due_ms", PLAIN))

    def __init__(self, next_ms: Callable[[int, int], int], moved: Callable[[], bool] | None = None) -> None:
        """`next_ms(now, origin)`: the first instant after `now`; a period is counted from `origin`. `moved`:
        whether the variables of the period have changed since; then the next update sets the instant anew."""
        self.next_ms = next_ms
        self.moved = moved
        self.defers = moved is None
        self.origin_ms: int | None = None
        self.due_ms: int | None = None

    def begins_with(self, update: Update) -> bool:
        return bool(update.new or update.old)  # else HAVING keeps all of it back

    def begin(self, now: int) -> None:
        if self.origin_ms is None:
            self.origin_ms, self.due_ms = now, self.next_ms(now, now)

    def on_update(self, update: Update, now: int) -> bool:
        if self.origin_ms is not None and self.moved is not None and self.moved():
            self.due_ms = self.next_ms(now, self.origin_ms)
        self.begin(now)
        return False

    def deadline(self) -> int | None:
        return self.due_ms

    def advance(self, now: int) -> bool:
        if self.origin_ms is None or self.due_ms is None or self.due_ms > now:
            return False
        self.due_ms = self.next_ms(now, self.origin_ms)
        return True

    def restore(self, state: Saved) -> None:
        # Of a crontab earlier versions stored the next instant alone.
        super().restore((state, state) if isinstance(state, int | None) else state)


class EveryEvents(OutputTrigger):
    """Counts inserts and removes apart; whichever reaches n first."""

    stored = (("inserted", PLAIN), ("removed", PLAIN))

    def __init__(self, count: Callable[[], int]) -> None:
        self.count = count
        self.inserted = self.removed = 0

    def begins_with(self, update: Update) -> bool:
        return False  # its events count from the first that goes out

    def on_update(self, update: Update, now: int) -> bool:
        self.inserted += update.inserted
        self.removed += update.removed
        return max(self.inserted, self.removed) >= self.count()

    def done(self, now: int) -> None:
        self.inserted = self.removed = 0


class Counters:
    """The built-in properties of `output when`."""

    def __init__(self, start_ms: int) -> None:
        """`start_ms`: the time stamp of the last output before there is one."""
        self.count_insert = self.count_remove = 0
        self.count_insert_total = self.count_remove_total = 0
        self.last_output_timestamp = start_ms

    def count(self, update: Update) -> None:
        self.count_insert += update.inserted
        self.count_remove += update.removed
        self.count_insert_total += update.inserted
        self.count_remove_total += update.removed

    def done(self, now: int) -> None:
        self.count_insert = self.count_remove = 0
        self.last_output_timestamp = now


class CountedCondition:
    """An expression over counters and variables, and what is set where it holds: that of `output when`, and
    that of `when terminated` at the end of the partition."""

    def __init__(
        self, test: Callable[[Counters], bool], then_set: Callable[[Counters], None], start_ms: int
    ) -> None:
        self.test = test
        self.then_set = then_set
        self.counters = Counters(start_ms)
        self.is_setting = False

    def is_met(self) -> bool:
        """True if it holds now; then `then set` has run. What `then set` changes does not test it again."""
        if self.is_setting or not self.test(self.counters):
            return False
        self.is_setting = True
        try:
            self.then_set(self.counters)
        finally:
            self.is_setting = False
        return True

    def snapshot(self) -> dict[str, int | None]:
        return vars(self.counters)

    def restore(self, state: dict[str, int | None]) -> None:
        """Put a snapshot back. Earlier versions had no time stamp before the first output."""
        vars(self.counters).update({name: value for name, value in state.items() if value is not None})


class WhenExpression(OutputTrigger):
    """A condition, tested at each update and at each change of a variable that it reads.

    A change of a variable is tested at once (`then set` runs); its rows follow at the next advance of time.
    """

    def __init__(self, condition: CountedCondition, variables: Collection[str]) -> None:
        self.condition = condition
        self.variables = variables

    def on_update(self, update: Update, now: int) -> bool:
        self.condition.counters.count(update)
        return self.condition.is_met()

    def variable_changed(self, name: str) -> None:
        self.pending = self.pending or (name in self.variables and self.condition.is_met())

    def advance(self, now: int) -> bool:
        fires, self.pending = self.pending, False
        return fires

    def done(self, now: int) -> None:
        self.condition.counters.done(now)

    def snapshot(self) -> tuple[dict[str, int | None], bool]:
        return self.condition.snapshot(), self.pending

    def restore(self, state: tuple[dict[str, int | None], bool]) -> None:
        self.condition.restore(state[0])
        self.pending = state[1]


class Always(OutputTrigger):
    """Every update is emitted at once: only `after` limits the output."""

    def on_update(self, update: Update, now: int) -> bool:
        return True


class Never(OutputTrigger):
    """Nothing is emitted before the end of the partition."""


class After:
    """`after n events` drops updates until more than n have come, `after d` those before start + d."""

    def __init__(self, events: int | None, opens_ms: int | None) -> None:
        self.left = events + 1 if events else 0
        """The number of events that must come before an update passes."""
        self.opens_ms = opens_ms

    def passes(self, came: int, now: int) -> bool:
        """True if an update with `came` events passes."""
        if self.opens_ms is not None and now < self.opens_ms:
            return False
        self.left = max(0, self.left - came)
        return not self.left
