"""The bound on live partial matches, and the reaction when it is reached."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from sql.algebra.pattern.nodes import PatternInstance
from sql.plan.options import RuleOptions
from sql.record import Record


class PartialBounds(Record):
    """The limits of what a pattern holds.

    partials    instances begun by an arrow that live at once (`maxPatternPartials`)
    overflow    what happens to one more: it is refused, or the oldest makes room for it (`patternOverflow`)
    remembered  matches that an `and` remembers for the other side, and events in the list of a repeat
    keys        keys of one `every-distinct`; the oldest is forgotten
    rows        matches that one event may make of the parts of an `and`
    """

    partials: int = 100_000
    overflow: Literal["refuse", "drop_oldest"] = "refuse"
    remembered: int = 10_000
    keys: int = 100_000
    rows: int = 10_000

    @classmethod
    def of(cls, options: RuleOptions) -> PartialBounds:
        """The limits that a rule sets."""
        return cls(
            options.max_pattern_partials,
            options.pattern_overflow,
            options.max_pattern_rows,
            options.max_pattern_keys,
        )


class Partials:
    """Counts the instances that arrows have begun."""

    def __init__(self, bounds: PartialBounds, counts: Counter[str]) -> None:
        self.most = bounds.partials
        self.live = 0
        self.counts = counts
        self.by_age: dict[PatternInstance, None] | None = {} if bounds.overflow == "drop_oldest" else None
        """Those that live, oldest first, where that matters."""

    def has_room(self) -> bool:
        """True if one more may begin."""
        return self.live < self.most or self.by_age is not None

    def enter(self, instance: PatternInstance) -> None:
        """One begins. Where the oldest makes room it ends as false."""
        self.live += 1
        self.counts["partials_started"] += 1
        if self.by_age is None:
            return
        self.by_age[instance] = None
        if self.live > self.most:
            oldest = next(iter(self.by_age))
            parent = oldest.parent
            self.counts["partials_dropped"] += 1
            oldest.quit()
            if parent is not None:
                parent.on_false(oldest)

    def leave(self, instance: PatternInstance) -> None:
        """One is over."""
        self.live -= 1
        if self.by_age is not None:
            self.by_age.pop(instance, None)
