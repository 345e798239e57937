"""Aggregates over a queue of panes, at a cost that does not depend on how many there are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from sql.aggregates.base import Accumulator, Removal
from sql.aggregates.extremes import Extreme
from sql.algebra.accumulators import maker_of
from sql.algebra.sample.aggregate_calls import is_numeric
from sql.algebra.sample.folding.group_fold import Group, MixedGroup
from sql.costs import CONSTANT, Growth
from sql.plan.bound import AggregateCall


class Stacks:
    """The aggregate over a queue of parts in two stacks: each part is merged a constant number of times.

    front   merged from each part to the last of them, the oldest on top     [c+d, ...] <- leaves here
    back    merged as they come                                              e+f+...    <- enters here
    """

    __slots__ = ("back", "front", "make", "parts")

    def __init__(self, make: Callable[[], Accumulator]) -> None:
        self.make = make
        self.front: list[Accumulator] = []
        self.back = make()
        self.parts: list[Accumulator] = []
        """The parts of `back`, oldest first."""

    def push(self, part: Accumulator) -> None:
        """A part comes."""
        self.back.merge(part)
        self.parts.append(part)

    def pop(self) -> None:
        """The oldest part goes."""
        if not self.front:
            later: Accumulator | None = None
            for part in reversed(self.parts):
                merged = self.make()
                merged.merge(part)
                if later is not None:
                    merged.merge(later)
                self.front.append(merged)
                later = merged
            self.parts = []
            self.back = self.make()
        self.front.pop()

    def result(self) -> Any:
        """The aggregate over all parts."""
        if not self.front:
            return self.back.result()
        if not self.parts:
            return self.front[-1].result()
        merged = self.make()
        merged.merge(self.front[-1])
        merged.merge(self.back)
        return merged.result()


class RunningParts:
    """The aggregate over a queue of parts where what came can be taken away again."""

    __slots__ = ("parts", "whole")

    def __init__(self, make: Callable[[], Accumulator]) -> None:
        self.whole = make()
        self.parts: deque[Accumulator] = deque()

    def push(self, part: Accumulator) -> None:
        """A part comes."""
        self.whole.merge(part)
        self.parts.append(part)

    def pop(self) -> None:
        """The oldest part goes."""
        self.whole.unmerge(self.parts.popleft())

    def result(self) -> Any:
        """The aggregate over all parts."""
        return self.whole.result()


class AtLook:
    """The aggregate over a queue of parts too large to be merged beforehand: merged at each sample."""

    __slots__ = ("make", "parts")

    def __init__(self, make: Callable[[], Accumulator]) -> None:
        self.make = make
        self.parts: deque[Accumulator] = deque()

    def push(self, part: Accumulator) -> None:
        """A part comes."""
        self.parts.append(part)

    def pop(self) -> None:
        """The oldest part goes."""
        self.parts.popleft()

    def result(self) -> Any:
        """The aggregate over all parts."""
        merged = self.make()
        for part in self.parts:
            merged.merge(part)
        return merged.result()


Queue = Stacks | RunningParts | AtLook


class Total:
    """One key's groups in all cut panes, oldest first, and the aggregates over them."""

    __slots__ = ("aggregates", "groups", "mixed", "numbers")

    def __init__(self, aggregates: list[Queue]) -> None:
        self.groups: deque[Group] = deque()
        self.numbers: deque[int] = deque()
        """The places of the groups' first events in order of arrival."""
        self.mixed = 0
        """In how many panes the key has text."""
        self.aggregates = aggregates

    def push(self, group: Group, number: int) -> None:
        """The key's group of the newest pane, folded."""
        group.earlier = ()
        self.groups.append(group)
        self.numbers.append(number)
        self.mixed += isinstance(group, MixedGroup)
        for aggregate, part in zip(self.aggregates, group.accumulators, strict=True):
            aggregate.push(part)

    def pop(self) -> None:
        """The oldest pane leaves the window."""
        self.mixed -= isinstance(self.groups.popleft(), MixedGroup)
        self.numbers.popleft()
        for aggregate in self.aggregates:
            aggregate.pop()


def queue_of(call: AggregateCall) -> Queue:
    """An empty queue of the parts of a call."""
    make = maker_of(call, Removal.NEVER)
    if not is_numeric(call) and (call.distinct or call.definition.cost != CONSTANT):
        return AtLook(make)
    return RunningParts(make) if call.definition.invertible else Stacks(make)


def is_merged(call: AggregateCall) -> bool:
    """True if a call over a window can be put together from what its panes hold."""
    if is_numeric(call):
        return True
    definition = call.definition
    if not definition.mergeable or definition.needs_event or definition.ever or call.group_by is not None:
        return False
    if call.distinct and definition.name != "count":
        return False  # of equal values the first counts, which may have left
    if isinstance(definition.make(Removal.NEVER, *call.constants), Extreme):
        return False  # it may refuse a value because of those before
    return definition.cost.event is not Growth.ROOT  # its values would be put in order again for each window
