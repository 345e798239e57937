"""The levels of a context as functions: made once from the plan, shared by all partitions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sql.algebra.context.by_property import Sides
from sql.algebra.context.pattern_watch import PatternCondition
from sql.algebra.event import Event
from sql.rows import as_dict

Row = Sequence[Any]
"""The properties of a partition: the values of each level (the id comes behind them)."""

Test = Callable[[Event, Row], bool]


@dataclass(slots=True)
class EventCondition:
    """An event of `stream` that passes, and the place it is kept at.

    sides      those of an equality that must hold as well: such points are found by hash
    asks_each  true if `passes` reads the partition, and no key finds it
    """

    stream: str
    passes: Test | None = None
    place: int | None = None
    sides: Sides | None = None
    asks_each: bool = False

    def fits(self, event: Event, row: Row) -> bool:
        """True if an event is this point for the partition of `row`."""
        if self.sides is not None and not self.sides.fit(event, row):
            return False
        return self.passes is None or self.passes(event, row)

    def keep(self, event: Event, values: list[Any]) -> None:
        """Put the event among the partition's values, where it has a name."""
        if self.place is not None:
            values[self.place] = as_dict(event.row)


@dataclass(slots=True)
class TimePoint:
    """A crontab or a period: when it comes, seen from the instant at which it begins to be watched."""

    next_ms: Callable[[int], int]


@dataclass(slots=True)
class NowCondition:
    """`@now`."""


End = EventCondition | TimePoint | PatternCondition | None
Start = EventCondition | TimePoint | PatternCondition | NowCondition


@dataclass(slots=True)
class LevelDefinition:
    """Base of what a level is: its place, and the names of the properties of its partitions."""

    name: str
    depth: int
    properties: tuple[str, ...]
    chosen_by: str
    """The word by which a query chooses its partitions: `keys`, `hashes`, `labels`, or none."""


@dataclass(slots=True)
class ListedType:
    """A stream that a segmented level divides: which of its events count, and where they belong (`key`)."""

    key: Callable[[Event], Any]
    passes: Callable[[Event], bool] | None = None
    values: Callable[[Event], list[Any]] | None = None
    """The values of the keys, as they are."""
    place: int | None = None


@dataclass(slots=True)
class KeyedDefinition(LevelDefinition):
    """A partition per key, or per hash modulo the granularity."""

    types: dict[str, ListedType]
    initiated: dict[str, EventCondition] = field(default_factory=dict)
    end: End = None
    idle_ms: int | None = None
    at_once: Iterable[Hashable] = ()
    """The keys of partitions that are there from the start."""


@dataclass(slots=True)
class CategoriesDefinition(LevelDefinition):
    """A partition per category."""

    stream: str
    labels: tuple[str, ...]
    conditions: tuple[Callable[[Event], bool], ...]
    passes: Callable[[Event], bool] | None = None


@dataclass(slots=True)
class SpanDefinition(LevelDefinition):
    """One partition or none. The first two properties are its start and end times."""

    start: Start
    end: End = None
    assumes_inside: bool = False
    """Crontabs for both: at activation `now` is inside if the next end comes before, or
    with, the next start."""


@dataclass(slots=True)
class OverlappingDefinition(LevelDefinition):
    """A partition per trigger. The first two properties are its start and end times."""

    start: Start
    end: End = None
    distinct: Callable[[Event], Any] | None = None
    now: bool = False
