"""From the plan of a context to the definitions of its levels."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from zlib import crc32

from sql.algebra.context.by_property import Sides
from sql.algebra.context.end_atoms import compiled
from sql.algebra.context.keyed import CategoriesLevel, KeyedLevel
from sql.algebra.context.level import LiveLevel
from sql.algebra.context.level_definitions import (
    CategoriesDefinition,
    End,
    EventCondition,
    KeyedDefinition,
    LevelDefinition,
    ListedType,
    NowCondition,
    OverlappingDefinition,
    SpanDefinition,
    TimePoint,
)
from sql.algebra.context.lifecycle import Bodies, Lifecycle
from sql.algebra.context.partition import Partition
from sql.algebra.context.pattern_watch import PatternCondition, Tell
from sql.algebra.context.trigger_levels import OverlappingLevel, SpanLevel
from sql.algebra.event import Event
from sql.algebra.pattern import PatternBuilder
from sql.calendar.crontab import Crontab
from sql.calendar.period import Period
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet, PatternReader, constant_value
from sql.codegen.support import Warnings
from sql.errors import DataError
from sql.functions.definition import Context
from sql.plan.bound import Bound
from sql.plan.clauses import PeriodArgument
from sql.plan.context_plan import (
    CategoriesPlan,
    ContextPlan,
    CrontabPlan,
    EndPlan,
    EventPointPlan,
    HashedPlan,
    KeyedPlan,
    KeyedTypePlan,
    LevelPlan,
    NowPlan,
    OverlappingPlan,
    PatternPointPlan,
    SpanPlan,
    StartPlan,
)

_LEVELS: dict[type[LevelDefinition], type[LiveLevel]] = {
    KeyedDefinition: KeyedLevel,
    CategoriesDefinition: CategoriesLevel,
    SpanDefinition: SpanLevel,
    OverlappingDefinition: OverlappingLevel,
}

_CHOSEN_BY = {KeyedPlan: "keys", HashedPlan: "hashes", CategoriesPlan: "labels"}
"""The words by which queries choose partitions."""


def life_of(
    plan: ContextPlan, functions: FunctionSet, catalog: Catalog, bodies: Bodies, tell: Tell
) -> Lifecycle:
    """The life cycle of a context, not yet active. `tell` gets what a pattern could not evaluate."""
    builder = _Builder(plan, functions, catalog, tell)
    definitions = [builder.level(depth, level) for depth, level in enumerate(plan.levels)]
    return Lifecycle(definitions, _level, bodies, plan.max_partitions, oldest_first=plan.oldest_first)


def _level(definition: LevelDefinition, life: Lifecycle, parent: Partition | None) -> LiveLevel:
    return _LEVELS[type(definition)](definition, life, parent)


class _Builder:
    def __init__(self, plan: ContextPlan, functions: FunctionSet, catalog: Catalog, tell: Tell) -> None:
        self.plan = plan
        self.tell = tell
        self.catalog = catalog
        self.functions = functions
        self.zone = plan.options.zone_info()

    def level(self, depth: int, plan: LevelPlan) -> LevelDefinition:
        properties = tuple(item.name for item in plan.properties)
        common = (plan.name, depth, properties, _CHOSEN_BY.get(type(plan.kind), ""))
        kind = plan.kind
        if isinstance(kind, KeyedPlan):
            types = {item.stream: self._keyed(item) for item in kind.types}
            initiated = {item.stream: self._event_point(item) for item in kind.initiated}
            return KeyedDefinition(
                *common,
                types,
                initiated,
                self._end(kind.end),
                self.plan.idle_ms if kind.end is None else None,
            )
        if isinstance(kind, HashedPlan):
            at_once = range(kind.granularity) if kind.preallocate else ()
            return KeyedDefinition(*common, self._hashed(kind), at_once=at_once)
        if isinstance(kind, CategoriesPlan):
            conditions = tuple(self.functions.true(item) for item in kind.conditions)
            return CategoriesDefinition(
                *common, kind.stream, kind.labels, conditions, self._passes(kind.filter)
            )
        if isinstance(kind, SpanPlan):
            crontabs = isinstance(kind.start, CrontabPlan) and isinstance(kind.end, CrontabPlan)
            return SpanDefinition(*common, self._start(kind.start), self._end(kind.end), crontabs)
        assert isinstance(kind, OverlappingPlan)
        distinct = self.functions.key(kind.distinct) if kind.distinct else None
        return OverlappingDefinition(
            *common, self._start(kind.start), self._end(kind.end), distinct, kind.now
        )

    def _passes(self, condition: Bound | None) -> Any:
        return None if condition is None else self.functions.true(condition)

    # --- segmented ------------------------------------------------------------------------------------------

    def _keyed(self, plan: KeyedTypePlan) -> ListedType:
        values = [self.functions.value(key) for key in plan.keys]

        def values_of(event: Event) -> list[Any]:
            return [value(event) for value in values]

        return ListedType(self.functions.key(plan.keys), self._passes(plan.filter), values_of, plan.place)

    def _hashed(self, plan: HashedPlan) -> dict[str, ListedType]:
        return {
            item.stream: ListedType(
                self._hash(name, item.arguments, plan.granularity), self._passes(item.filter)
            )
            for name, item in zip(plan.hashes, plan.types, strict=True)
        }

    def _hash(self, name: str, arguments: tuple[Bound, ...], granularity: int) -> Callable[[Event], int]:
        values = [self.functions.value(argument) for argument in arguments]
        code = _HASHES.get(name, _whole)
        if len(values) == 1:
            only = values[0]
            return lambda event: abs(code(only(event))) % granularity
        return lambda event: abs(code([value(event) for value in values])) % granularity

    # --- points ---------------------------------------------------------------------------------------------

    def _start(self, plan: StartPlan) -> EventCondition | TimePoint | PatternCondition | NowCondition:
        return NowCondition() if isinstance(plan, NowPlan) else self._point(plan)

    def _end(self, plan: EndPlan | None) -> End:
        return None if plan is None else self._point(plan)

    def _point(self, plan: EndPlan) -> EventCondition | TimePoint | PatternCondition:
        if isinstance(plan, EventPointPlan):
            return self._event_point(plan)
        if isinstance(plan, PatternPointPlan):
            return self._pattern_point(plan)
        return TimePoint(self._crontab(plan) if isinstance(plan, CrontabPlan) else self._after(plan.period))

    def _event_point(self, plan: EventPointPlan) -> EventCondition:
        functions, found = self.functions, plan.correlation
        sides = None if found is None else Sides.of(found, functions, functions)
        return EventCondition(plan.stream, self._passes(plan.filter), plan.place, sides, plan.asks_each)

    def _pattern_point(self, plan: PatternPointPlan) -> PatternCondition:
        pattern = plan.pattern
        places = plan.places or (None,) * len(pattern.tags)
        tags = tuple((tag.name, tag.stream, place) for tag, place in zip(pattern.tags, places, strict=True))
        at_work: list[Any] = []
        clock = Context(zone=self.zone, partition=at_work)
        functions = FunctionSet(self.catalog, clock, Warnings(), text=pattern.text, kind=PatternReader)
        builder = PatternBuilder(pattern, functions, self.zone, self.plan.options)
        atoms = compiled(pattern, functions, self.functions)
        return PatternCondition(
            builder, self.tell, functions, clock, at_work, atoms, tags, plan.place, plan.inclusive
        )

    def _crontab(self, plan: CrontabPlan) -> Callable[[int], int]:
        crontabs = [Crontab.parse([field.text for field in fields], self.zone) for fields in plan.crontabs]
        # With a field of seconds and none of milliseconds those of the moment remain: once
        # a second, from now on.
        keeps_millis = min(len(fields) for fields in plan.crontabs) in (6, 7)

        def due(now_ms: int) -> int:
            millis = now_ms % 1000 if keeps_millis else 0
            return min(crontab.next_after(now_ms - millis) for crontab in crontabs) + millis

        return due

    def _after(self, plan: PeriodArgument) -> Callable[[int], int]:
        def due(now_ms: int) -> int:
            amounts = {unit: constant_value(bound, self.functions) for bound, unit in plan.parts}
            try:
                return Period.of(amounts, zero_allowed=True).add(now_ms, self.zone)
            except ValueError as error:
                raise DataError(str(error), plan.span) from error

        return due


def _whole(value: object) -> int:
    if value is None:
        return 0
    if value.__class__ is not int:
        raise DataError(f"the hash of an event is a whole number, not {value!r}")
    return int(value)


def hash_code(value: object) -> int:
    """A stable hash: a whole number is its own, a text the polynomial h = 31 h + unit
    of UTF-16 in 32 bits."""
    if value is None:
        return 0
    if value.__class__ is int:
        return int(value)
    if value.__class__ is str:
        units = value.encode("utf-16-le", "surrogatepass")
        found = 0
        for low, high in zip(units[::2], units[1::2], strict=True):
            found = (31 * found + low + 256 * high) & 0xFFFFFFFF
        return found - 0x100000000 if found & 0x80000000 else found
    return crc32(_text(value))


def crc_code(value: object) -> int:
    """The CRC-32 of the UTF-8 text of a string, of the compact JSON of anything else; 0 of NULL."""
    if value is None:
        return 0
    return crc32(value.encode("utf-8", "surrogatepass") if value.__class__ is str else _text(value))


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, default=repr).encode(
        "utf-8", "surrogatepass"
    )


_HASHES: dict[str, Callable[[Any], int]] = {"consistent_hash_crc32": crc_code, "hash_code": hash_code}
