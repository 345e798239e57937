"""Retention by key: the newest per key (unique), the first per key (firstunique)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy
from sql.algebra.sight import ByArrival, Sight


class PerKey(Policy):
    """Base: at most one event per key, held in order of arrival."""

    departure = Removal.ANY

    def __init__(self, key: Callable[[Event], Hashable]) -> None:
        self.key = key
        self.by_key: OrderedDict[Hashable, Event] = OrderedDict()

    def discard(self, event: Event) -> bool:
        key = self.key(event)
        if self.by_key.get(key) is not event:
            return False
        del self.by_key[key]
        return True

    def content(self) -> Iterable[Event]:
        return self.by_key.values()

    def sight(self) -> Sight:
        return ByArrival(self.by_key.values())

    def is_blank(self) -> bool:
        return not self.by_key

    def restore(self, state: Any, find: FindEvent) -> None:
        self.by_key = OrderedDict((self.key(event), event) for event in map(find, state))


class LatestPerKey(PerKey):
    """unique: a new event replaces the older one of its key in the same step."""

    def insert(self, event: Event, now: int) -> list[Event]:
        key = self.key(event)
        replaced = self.by_key.pop(key, None)
        self.by_key[key] = event
        return [] if replaced is None else [replaced]


class FirstPerKey(PerKey):
    """firstunique: the first event of each key stays; later ones are refused."""

    departure = Removal.NEVER

    def admits(self, event: Event, now: int) -> bool:
        return self.key(event) not in self.by_key

    def insert(self, event: Event, now: int) -> list[Event]:
        self.by_key[self.key(event)] = event
        return []
