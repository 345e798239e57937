"""The plan of a pattern: names, types and conditions known, before any state exists.

Expressions read tags through `Read(i, column)`, i being the tag's place among `PatternPlan.tags`; a filter
reads its own event as source `OWN`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sql.errors import NOWHERE, Span
from sql.plan.bound import Bound
from sql.syntax import ColumnType, CronField
from sql.types import Type

OWN = -1
"""The source number of the event that a filter tests."""


@dataclass(frozen=True, slots=True)
class LengthPlan:
    """A length of time, evaluated when its node starts: (amount, unit) parts."""

    parts: tuple[tuple[Bound, str], ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Base of the nodes of a pattern."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False)

    def children(self) -> tuple[StepPlan, ...]:
        """The nodes directly below, left to right."""
        return ()

    def walk(self) -> Iterator[StepPlan]:
        """This node and all below it, depth first."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class FilterPlan(StepPlan):
    """An event of a stream that fits a condition; it becomes the tag's value."""

    stream: str
    tag: int | None = None
    condition: Bound | None = None
    consume: int = 0


@dataclass(frozen=True, slots=True)
class IntervalPlan(StepPlan):
    """`timer:interval`."""

    length: LengthPlan


@dataclass(frozen=True, slots=True)
class CrontabPlan(StepPlan):
    """`timer:at`."""

    fields: tuple[CronField, ...]


@dataclass(frozen=True, slots=True)
class SchedulePlan(StepPlan):
    """`timer:schedule`: a text in ISO 8601, or its parts."""

    iso: Bound | None = None
    date: Bound | None = None
    length: LengthPlan | None = None
    repetitions: Bound | None = None


@dataclass(frozen=True, slots=True)
class FollowedByPlan(StepPlan):
    """Steps one after the other; `maxima` bounds how many instances of the next step
    wait, one entry per arrow."""

    steps: tuple[StepPlan, ...]
    maxima: tuple[Bound | None, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return self.steps


@dataclass(frozen=True, slots=True)
class AllOfPlan(StepPlan):
    """`and`."""

    parts: tuple[StepPlan, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class AnyOfPlan(StepPlan):
    """`or`."""

    parts: tuple[StepPlan, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class AbsentPlan(StepPlan):
    """`not`."""

    operand: StepPlan

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class EveryPlan(StepPlan):
    """`every`; with keys `every-distinct`, whose keys are forgotten after `length`."""

    operand: StepPlan
    keys: tuple[Bound, ...] = ()
    length: LengthPlan | None = None

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class RepeatPlan(StepPlan):
    """`[low:high] operand until stop`; `tags` are those of the operand, which become lists."""

    operand: StepPlan
    until: StepPlan | None
    low: Bound | None
    high: Bound | None
    tags: tuple[int, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,) if self.until is None else (self.operand, self.until)


@dataclass(frozen=True, slots=True)
class WithinPlan(StepPlan):
    """`where timer:within` and `timer:withinmax`."""

    operand: StepPlan
    length: LengthPlan
    maximum: Bound | None = None

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class WhilePlan(StepPlan):
    """`while (condition)`."""

    operand: StepPlan
    condition: Bound

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for events. `is_list`: it stands under a repeat and is the list of them."""

    name: str
    stream: str
    is_list: bool = False
    columns: dict[str, Type] | None = field(default=None, compare=False)
    """The columns of its stream; None: every name is legal."""
    declared: tuple[tuple[str, ColumnType], ...] = field(default=(), compare=False)
    """The full types of the columns, where they are declared."""


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """A whole pattern. A match is the tuple of its tags' values in the order of `tags`."""

    root: StepPlan
    tags: tuple[Tag, ...]
    suppress: bool = False
    """Of the matches of one event keep none that shares an event with an earlier one."""
    discard: bool = False
    """A match ends every partial match that holds one of its events."""
    text: str = field(default="", compare=False, repr=False)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it listens to, each once, in order of appearance."""
        return tuple(dict.fromkeys(step.stream for step in self.root.walk() if isinstance(step, FilterPlan)))
