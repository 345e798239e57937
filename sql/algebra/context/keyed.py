"""Segmented levels: a partition per key, per hash or per category."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from sql.algebra.context.context_conditions import ConditionBuilder, EventCondition
from sql.algebra.context.ends import IdleEnds, ends_of
from sql.algebra.context.hashes import hash_key
from sql.algebra.context.level import LiveLevel
from sql.algebra.context.partition import Arrival, LevelDefinition, Partition
from sql.algebra.event import Event
from sql.plan.context_plan import CategoriesPlan, HashedPlan, KeyedPlan, KeyedTypePlan, LevelPlan
from sql.rows import as_dict


@dataclass(slots=True)
class ListedType:
    """A stream that a segmented level divides: which of its events count, and where they belong (`key`)."""

    key: Callable[[Event], Any]
    passes: Callable[[Event], bool] | None = None
    values: Callable[[Event], list[Any]] | None = None
    """The values of the keys, as they are."""
    place: int | None = None


class KeyedDefinition(LevelDefinition):
    """A partition per key."""

    chosen_by = "keys"
    at_once: Iterable[Hashable] = ()
    """The keys of partitions that are there from the start."""

    def __init__(self, plan: LevelPlan, depth: int, build: ConditionBuilder) -> None:
        super().__init__(plan, depth)
        kind = plan.kind
        assert isinstance(kind, KeyedPlan)
        self.types = {item.stream: _listed(item, build) for item in kind.types}
        self.initiated = {item.stream: build.event(item) for item in kind.initiated}
        self.end = build.end(kind.end)
        self.idle_ms = build.idle_ms if kind.end is None else None


def _listed(plan: KeyedTypePlan, build: ConditionBuilder) -> ListedType:
    values = [build.functions.value(key) for key in plan.keys]

    def values_of(event: Event) -> list[Any]:
        return [value(event) for value in values]

    return ListedType(build.functions.key(plan.keys), build.passes(plan.filter), values_of, plan.place)


class HashedDefinition(LevelDefinition):
    """A partition per hash modulo the granularity: keyed by this number, and nothing but what is around ends
    it."""

    chosen_by = "hashes"

    def __init__(self, plan: LevelPlan, depth: int, build: ConditionBuilder) -> None:
        super().__init__(plan, depth)
        kind = plan.kind
        assert isinstance(kind, HashedPlan)
        self.types: dict[str, ListedType] = {}
        for name, item in zip(kind.hashes, kind.types, strict=True):
            values = [build.functions.value(argument) for argument in item.arguments]
            key = hash_key(name, values, kind.granularity)
            self.types[item.stream] = ListedType(key, build.passes(item.filter))
        self.at_once: Iterable[Hashable] = range(kind.granularity) if kind.preallocate else ()
        self.initiated: dict[str, EventCondition] = {}
        self.end = None
        self.idle_ms = None


class KeyedLevel(LiveLevel):
    """A partition per key or hash. An event of a listed stream belongs to the one of its key, any other to
    all; the first event of a key that may allocates it."""

    definition: KeyedDefinition | HashedDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        definition = self.definition
        if definition.idle_ms is not None:
            self.ends = IdleEnds(self, self.life, definition.idle_ms)
        else:
            end = definition.end
            of_all = isinstance(end, EventCondition) and end.stream not in definition.types
            self.ends = ends_of(end, self, self.life, of_all=of_all)
        self.is_plain = not definition.initiated and definition.end is None
        """True if events that do not pass the filter of their type have no effect."""

    def watch(self, now_ms: int) -> None:
        for key in self.definition.at_once:
            self.life.open(self, key, self.values(), now_ms)

    def act(self, arrival: Arrival) -> None:
        listed = self.definition.types.get(arrival.stream)
        if listed is None:
            self.ends.enter_all(arrival)
            self.visit_all(arrival)
            return
        event = arrival.event
        passes = listed.passes is None or listed.passes(event)
        if not passes and self.is_plain:
            return
        key = listed.key(event)
        partition = self.by_key.get(key)
        if partition is None:
            self._start(key, listed, arrival, counts=passes)
        elif not self.ends.enter(partition, arrival) and passes:
            self.ends.touch(partition, arrival.now_ms)
            self.visit(partition, arrival)

    def start_by_event(self, arrival: Arrival) -> None:
        listed = self.definition.types.get(arrival.stream)
        if listed is not None and (key := listed.key(arrival.event)) not in self.by_key:
            passes = listed.passes is None or listed.passes(arrival.event)
            self._start(key, listed, arrival, counts=passes)

    def _start(self, key: object, listed: ListedType, arrival: Arrival, *, counts: bool) -> None:
        """Allocate the partition of a key, if the event may. `counts`: whether it is one of those the context
        divides."""
        event, now_ms, initiated = arrival.event, arrival.now_ms, self.definition.initiated
        point = initiated.get(arrival.stream)
        if not (point.fits(event, ()) if point is not None else counts and not initiated):
            return
        values = self.values()
        keys = () if listed.values is None else listed.values(event)
        values[: len(keys)] = keys
        place = listed.place if point is None else point.place
        if place is not None:
            values[place] = as_dict(event.row)
        due_ms = self.ends.next_ms(now_ms)
        self.life.open(self, key, values, now_ms, arrival if counts else None, due_ms=due_ms)

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        listed = self.definition.types.get(arrival.stream)
        if listed is None:
            return self.partitions()
        if listed.passes is not None and not listed.passes(arrival.event):
            return ()
        found = self.by_key.get(listed.key(arrival.event))
        return () if found is None else (found,)


class CategoryDefinition(LevelDefinition):
    """A partition per category."""

    chosen_by = "labels"

    def __init__(self, plan: LevelPlan, depth: int, build: ConditionBuilder) -> None:
        super().__init__(plan, depth)
        kind = plan.kind
        assert isinstance(kind, CategoriesPlan)
        self.stream = kind.stream
        self.labels = kind.labels
        self.conditions = [build.functions.true(item) for item in kind.conditions]
        self.passes = build.passes(kind.filter)


class CategoryLevel(LiveLevel):
    """A partition per category, all from the start; an event belongs to each whose condition is TRUE."""

    definition: CategoryDefinition

    def watch(self, now_ms: int) -> None:
        for label in self.definition.labels:
            self.life.open(self, label, [label], now_ms)

    def act(self, arrival: Arrival) -> None:
        if arrival.stream != self.definition.stream:
            self.visit_all(arrival)
            return
        self.visit_each(self.belonging(arrival), arrival)

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        definition, event = self.definition, arrival.event
        if arrival.stream != definition.stream:
            return self.partitions()
        if definition.passes is not None and not definition.passes(event):
            return ()
        return [
            item
            for item, test in zip(self.by_key.values(), definition.conditions, strict=True)
            if test(event)
        ]
