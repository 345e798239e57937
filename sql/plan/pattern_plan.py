"""The plan of a pattern: names, types and conditions known, before any state exists.

Expressions read tags through `Read(i, column)`, i being the tag's place among `PatternPlan.tags`; a filter
reads its own event as source `OWN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sql.errors import NOWHERE, Span
from sql.plan.bound import Bound, Const
from sql.record import Record
from sql.rows import as_dict, as_dicts
from sql.syntax import ColumnType, CronField
from sql.types import Type

OWN = -1
"""The source number of the event that a filter tests."""


class LengthPlan(Record):
    """A length of time, evaluated when its node starts: (amount, unit) parts."""

    parts: tuple[tuple[Bound, str], ...]
    span: Span = NOWHERE


def is_constant(length: LengthPlan) -> bool:
    """True if a length of time reads no tag."""
    return all(isinstance(amount, Const) for amount, _ in length.parts)


class StepPlan(Record, kw_only=True):
    """The base of the nodes of a pattern."""

    span: Span = NOWHERE

    def children(self) -> tuple[StepPlan, ...]:
        """The nodes directly below, left to right."""
        return ()

    def walk(self) -> Iterator[StepPlan]:
        """This node and all below it, depth first."""
        yield self
        for child in self.children():
            yield from child.walk()


class FilterPlan(StepPlan):
    """An event of a stream that satisfies a condition; it becomes the tag's value."""

    stream: str
    tag: int | None = None
    condition: Bound | None = None
    consume: int = 0


class IntervalPlan(StepPlan):
    """`timer:interval`."""

    length: LengthPlan


class AtPlan(StepPlan):
    """`timer:at`."""

    fields: tuple[CronField, ...]
    values: tuple[Bound | None, ...] = ()
    """Per field what is computed as the timer begins; none at all where every field is known."""


class SchedulePlan(StepPlan):
    """`timer:schedule`: a text in ISO 8601, or its parts."""

    iso: Bound | None = None
    date: Bound | None = None
    length: LengthPlan | None = None
    repetitions: Bound | None = None


class FollowedByPlan(StepPlan):
    """Steps one after the other; `maxima` bounds the waiting instances of the next step, one entry per
    arrow."""

    steps: tuple[StepPlan, ...]
    maxima: tuple[Bound | None, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return self.steps


class AllOfPlan(StepPlan):
    """`and`."""

    parts: tuple[StepPlan, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return self.parts


class AnyOfPlan(StepPlan):
    """`or`."""

    parts: tuple[StepPlan, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return self.parts


class AbsentPlan(StepPlan):
    """`not`."""

    operand: StepPlan

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


class EveryPlan(StepPlan):
    """`every`; with keys `every-distinct`, whose keys are forgotten after `length`."""

    operand: StepPlan
    keys: tuple[Bound, ...] = ()
    length: LengthPlan | None = None

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


class RepeatPlan(StepPlan):
    """`[low:high] operand until stop`; `tags` are those of the operand, which become lists."""

    operand: StepPlan
    until: StepPlan | None
    low: Bound | None
    high: Bound | None
    tags: tuple[int, ...]

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,) if self.until is None else (self.operand, self.until)


class WithinPlan(StepPlan):
    """`where timer:within` and `timer:withinmax`."""

    operand: StepPlan
    length: LengthPlan
    maximum: Bound | None = None

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


class WhilePlan(StepPlan):
    """`while (condition)`."""

    operand: StepPlan
    condition: Bound

    def children(self) -> tuple[StepPlan, ...]:
        return (self.operand,)


class Tag(Record):
    """A name for events. `is_list`: it is below a repeat, and names the list of them."""

    beside = Record.beside | {"columns", "declared"}

    name: str
    stream: str
    is_list: bool = False
    columns: dict[str, Type] | None = None
    """The columns of its stream; None: every name is legal."""
    declared: tuple[tuple[str, ColumnType], ...] = ()
    """The full types of the columns, if they are declared."""


class PatternPlan(Record):
    """A whole pattern. A match is the tuple of its tags' values in the order of `tags`."""

    beside = Record.beside | {"text"}

    root: StepPlan
    tags: tuple[Tag, ...]
    suppress: bool = False
    """True if matches of one event that share an event with an earlier match of it are dropped."""
    discard: bool = False
    """True if a match ends every partial match that contains one of its events."""
    text: str = ""
    windows: tuple[str, ...] = ()
    """Those of its streams that are named windows: their rows are its events."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, each once, in order of appearance."""
        return tuple(dict.fromkeys(step.stream for step in self.root.walk() if isinstance(step, FilterPlan)))

    def by_name(self, match: Sequence[Any]) -> dict[str, Any]:
        """A match as columns: its tags with their events."""
        return {
            tag.name: None if value is None else as_dicts(value) if tag.is_list else as_dict(value)
            for tag, value in zip(self.tags, match, strict=True)
        }
