"""The plan of a context: its levels (one, or several nested), each bound, with the
properties its partitions have.

A property of a partition stands at a place: `values[index]` of the level at `depth`. Inside a definition the
names of the starting events are such places as well. Plain data, like `sql.plan.logical`.
"""

from __future__ import annotations

from sql.errors import NOWHERE, Span
from sql.plan.bound import Bound, Slot, slot_kinds, sources_read
from sql.plan.clauses import PeriodArgument
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import PatternPlan
from sql.record import Record, field
from sql.syntax import CronField
from sql.types import Type

WORD = "context"
"""The qualifier of a property of the partition: `context.id`."""


class Property(Record):
    """A property of the partitions of one level. `columns` of an event: those of its
    stream, None where free."""

    beside = Record.beside | {"columns"}

    name: str
    type: Type
    columns: dict[str, Type] | None = None


def reads_partition_alone(value: Bound) -> bool:
    """True if an expression reads properties of the partition and nothing of an event."""
    return slot_kinds(value) == {WORD} and not sources_read(value)


# --- points -------------------------------------------------------------------------------------------------


class Correlation(Record):
    """`column = name.property`: the event's side and the partition's side of an equality,
    for an index by hash."""

    event: Bound
    partition: Bound


class EventPointPlan(Record):
    """An event of `stream` that passes `filter`; it becomes the property at `place`.

    `filter` reads the event as source 0 and the partition's names as context slots. Where it is a conjunction
    that holds an equality between the two, `correlation` is that equality and `filter` the rest.
    """

    stream: str
    filter: Bound | None = None
    place: int | None = None
    correlation: Correlation | None = None

    @property
    def asks_each(self) -> bool:
        """True if, as an end, it must be tested with each partition."""
        return self.correlation is None and "context" in slot_kinds(self.filter)


class PatternPointPlan(Record):
    """A pattern; `places` are those of its tags, `place` that of the whole match, if it has a name."""

    pattern: PatternPlan
    places: tuple[int | None, ...] = ()
    place: int | None = None
    inclusive: bool = False


class CrontabPlan(Record):
    """The earliest of several crontabs."""

    crontabs: tuple[tuple[CronField, ...], ...]


class AfterPlan(Record):
    """A period that begins when the condition becomes active."""

    period: PeriodArgument


class NowPlan(Record):
    """`@now`."""


EndPlan = EventPointPlan | PatternPointPlan | CrontabPlan | AfterPlan
StartPlan = EndPlan | NowPlan


# --- kinds --------------------------------------------------------------------------------------------------


class KeyedTypePlan(Record):
    """A listed type: a filter of its events, and their keys. `place`: of the partition's first event."""

    stream: str
    keys: tuple[Bound, ...]
    filter: Bound | None = None
    place: int | None = None


class KeyedPlan(Record):
    """A partition per key. `initiated` empty: the first event of a key starts the partition."""

    types: tuple[KeyedTypePlan, ...]
    initiated: tuple[EventPointPlan, ...] = ()
    end: EndPlan | None = None


class HashedTypePlan(Record):
    """A listed type: a filter of its events, and the arguments of the hash, or the value of a function."""

    stream: str
    arguments: tuple[Bound, ...]
    filter: Bound | None = None


class HashedPlan(Record):
    """A partition per hash modulo `granularity`. `hash`: consistent_hash_crc32, hash_code, or value."""

    hashes: tuple[str, ...]
    types: tuple[HashedTypePlan, ...]
    granularity: int
    preallocate: bool


class CategoriesPlan(Record):
    """A partition per category."""

    stream: str
    labels: tuple[str, ...]
    conditions: tuple[Bound, ...]
    filter: Bound | None = None


class SpanPlan(Record):
    """One partition or none (`start … end …`)."""

    start: StartPlan
    end: EndPlan | None = None


class OverlappingPlan(Record):
    """A partition per trigger. `now`: one more at activation."""

    start: StartPlan
    end: EndPlan | None = None
    distinct: tuple[Bound, ...] = ()
    now: bool = False


KindPlan = KeyedPlan | HashedPlan | CategoriesPlan | SpanPlan | OverlappingPlan


class LevelPlan(Record):
    """One level: its name, its kind, and the properties of its partitions, by place."""

    name: str
    kind: KindPlan
    properties: tuple[Property, ...]
    span: Span = NOWHERE

    @property
    def listed(self) -> frozenset[str]:
        """The streams a segmented level divides among its partitions; empty for others."""
        if isinstance(self.kind, KeyedPlan | HashedPlan):
            return frozenset(item.stream for item in self.kind.types)
        return frozenset((self.kind.stream,)) if isinstance(self.kind, CategoriesPlan) else frozenset()

    @property
    def ending(self) -> frozenset[int]:
        """The places of what ends a partition: an event, a match, or its tags."""
        end = None if isinstance(self.kind, HashedPlan | CategoriesPlan) else self.kind.end
        if not isinstance(end, EventPointPlan | PatternPointPlan):
            return frozenset()
        tags = end.places if isinstance(end, PatternPointPlan) else ()
        return frozenset(place for place in (end.place, *tags) if place is not None)

    @property
    def patterns(self) -> list[PatternPlan]:
        """The patterns by which its partitions start and end."""
        kind, points = self.kind, []
        if isinstance(kind, SpanPlan | OverlappingPlan):
            points = [kind.start, kind.end]
        elif isinstance(kind, KeyedPlan):
            points = [kind.end]
        return [point.pattern for point in points if isinstance(point, PatternPointPlan)]


class ContextPlan(Record, dict=True):
    """A context. `reads`: the columns that its conditions read of each stream; None for whole events."""

    beside = Record.beside | {"text"}

    name: str
    levels: tuple[LevelPlan, ...]
    options: RuleOptions
    nested: bool = False
    priority: int = 0
    max_partitions: int = 100_000
    oldest_first: bool = False
    """Beyond the bound a new partition ends the oldest one; otherwise its event is refused."""
    idle_ms: int | None = None
    """The time without events of its key after which a partition of a keyed level ends."""
    reads: dict[str, frozenset[str] | None] = field(default_factory=dict)
    text: str = ""

    def names_end(self, value: Bound) -> bool:
        """True if an expression reads what ends a partition."""
        ends = {(depth, place) for depth, level in enumerate(self.levels) for place in level.ending}
        return any(isinstance(part, Slot) and part.kind == WORD and part.key in ends for part in value.walk())

    @property
    def endless(self) -> tuple[LevelPlan, ...]:
        """The keyed levels whose partitions never end, and so grow with the keys."""
        bounded = self.idle_ms is not None
        found = []
        for level in self.levels:
            if isinstance(level.kind, KeyedPlan) and level.kind.end is None and not bounded:
                found.append(level)
            ends = (
                isinstance(level.kind, KeyedPlan | SpanPlan | OverlappingPlan) and level.kind.end is not None
            )
            bounded = bounded or ends
        return tuple(found)
