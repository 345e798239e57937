"""The state that all instances of a running pattern share: the instant, timers, bounds and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from datetime import tzinfo
from typing import NamedTuple, Protocol, TypeVar

from sql.algebra.deadlines import Deadlines, HasDeadline
from sql.algebra.pattern.listening import Binding, Listening
from sql.calendar.period import Period
from sql.codegen.functions import DATA_ERRORS
from sql.errors import Fail
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import StepPlan

Length = Callable[[Binding], Period | None]
"""A length of time where a binding stands; None for NULL."""

Value = TypeVar("Value")

COUNTERS = (
    "partials",
    "partials_started",
    "partials_expired",
    "partials_dropped",
    "remembered_dropped",
    "keys_dropped",
    "lengths_null",
    "matches",
    "matches_dropped",
)
"""The size of a pattern, and what it counts."""


ROWS_MAX = 10_000
"""The matches that one event may make of the parts of an `and`."""


class PatternWait(NamedTuple):
    """A filter or a timer for which a search waits since `begun_ms`, as `explain` shows it.

    tags    the events that have been found so far, in the order of the plan's tags
    due_ms  when the timer is true, or the time of the search is over; None: not known or never
    """

    tags: Binding
    step: StepPlan
    begun_ms: int
    due_ms: int | None


class Partial(Protocol):
    """An instance that an arrow has begun."""

    def fail(self) -> None:
        """End with false."""


class Partials:
    """Counts the instances that arrows have begun."""

    def __init__(self, options: RuleOptions, counts: Counter[str]) -> None:
        self.most = options.max_pattern_partials
        self.live = 0
        self.counts = counts
        self.by_age: dict[Partial, None] | None = {} if options.pattern_overflow == "drop_oldest" else None
        """Those that live, oldest first, where that matters."""

    def has_room(self) -> bool:
        """True if one more may begin."""
        return self.live < self.most or self.by_age is not None

    def enter(self, instance: Partial) -> None:
        """One begins. Where the oldest makes room it ends as false."""
        self.live += 1
        self.counts["partials_started"] += 1
        if self.by_age is None:
            return
        self.by_age[instance] = None
        if self.live > self.most:
            self.counts["partials_dropped"] += 1
            next(iter(self.by_age)).fail()

    def leave(self, instance: Partial) -> None:
        self.live -= 1
        if self.by_age is not None:
            self.by_age.pop(instance, None)


class Timed(HasDeadline, Protocol):
    """An instance that waits for an instant. `seq` decides between two that are due at once."""

    seq: int

    def fire(self) -> None:
        """The instant has come."""


class Machine:
    """The state shared by the instances of one pattern."""

    def __init__(self, zone: tzinfo, options: RuleOptions, fail: Fail, *, keeps_matched: bool) -> None:
        self.keeps_matched = keeps_matched
        """True if an `and` remembers what no later row can need, because a match ends
        what holds its events."""
        self.zone = zone
        self.options = options
        self.now = 0
        self.seq = 0
        """The number of the last start; it orders matches, and timers that are due together."""
        self.listening: dict[Hashable, Listening] = {}
        """What listens, by the node of the filter."""
        self.timers: Deadlines[Timed] = Deadlines()
        self.counts: Counter[str] = Counter()
        self.partials = Partials(options, self.counts)
        self.fail = fail
        """Takes the errors of evaluation; the pattern goes on without the part that failed."""

    def evaluate(self, function: Callable[[Binding], Value], binding: Binding) -> Value | None:
        """The value of a parameter; NULL, and the error reported, where it cannot be evaluated."""
        try:
            return function(binding)
        except DATA_ERRORS as error:
            self.fail(None, error)
            return None

    def length(self, length: Length, binding: Binding) -> Period | None:
        """A length of time; NULL is counted, for what waits for it waits for ever."""
        found = self.evaluate(length, binding)
        if found is None:
            self.counts["lengths_null"] += 1
        return found
