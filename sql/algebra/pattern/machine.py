"""The state that all instances of a running pattern share: the instant, timers, bounds and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from datetime import tzinfo
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol, TypeVar

from sql.algebra.pattern.listening import Binding, Listening
from sql.calendar.period import Period
from sql.codegen.functions import DATA_ERRORS
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
        """One is over."""
        self.live -= 1
        if self.by_age is not None:
            self.by_age.pop(instance, None)


class Timed(Protocol):
    """An instance that waits for an instant. `seq` decides between two that are due at once."""

    seq: int
    due: int | None
    """The time in ms; None: it waits no more, and is skipped when its turn comes."""

    def fire(self) -> None:
        """The instant has come."""


class PatternTimers:
    """A heap of all waiting timers, by (due, seq). An ended one stays in until it surfaces, or until more
    than half have ended."""

    SWEEP_MIN = 64

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Timed]] = []
        self.ended = 0

    def add(self, timed: Timed) -> None:
        """Wait for the instance's `due`."""
        assert timed.due is not None
        heappush(self.heap, (timed.due, timed.seq, timed))

    def cancel(self, timed: Timed) -> None:
        """An instance has ended; if it waits, it does so no more."""
        if timed.due is None:
            return
        timed.due = None
        self.ended += 1
        if self.ended > self.SWEEP_MIN and 2 * self.ended > len(self.heap):
            self.heap = [entry for entry in self.heap if entry[2].due is not None]
            heapify(self.heap)
            self.ended = 0

    def deadline(self) -> int | None:
        """The earliest due."""
        while self.heap and self.heap[0][2].due is None:
            heappop(self.heap)
            self.ended -= 1
        return self.heap[0][0] if self.heap else None

    def take(self, now: int) -> Timed | None:
        """The next that is due by now, which waits no more."""
        due = self.deadline()
        if due is None or due > now:
            return None
        timed = heappop(self.heap)[2]
        timed.due = None
        return timed


class Machine:
    """The state shared by the instances of one pattern."""

    def __init__(self, zone: tzinfo, options: RuleOptions, *, keeps_matched: bool) -> None:
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
        self.timers = PatternTimers()
        self.counts: Counter[str] = Counter()
        self.partials = Partials(options, self.counts)
        self.failures: list[BaseException] = []
        """The errors of evaluation while instances acted; the caller that drives the pattern
        takes and reports them."""

    def evaluate(self, function: Callable[[Binding], Value], binding: Binding) -> Value | None:
        """The value of a parameter; NULL, and a failure noted, where it cannot be evaluated."""
        try:
            return function(binding)
        except DATA_ERRORS as error:
            self.failures.append(error)
            return None

    def length(self, length: Length, binding: Binding) -> Period | None:
        """A length of time; NULL is counted, for what waits for it waits for ever."""
        found = self.evaluate(length, binding)
        if found is None:
            self.counts["lengths_null"] += 1
        return found
