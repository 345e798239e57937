"""Retention by order: the n best (sort, rank), and events that wait for their own time (time_order,
timetolive)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from heapq import heappop, heappush
from typing import Any
from zoneinfo import ZoneInfo

from sql.aggregates.base import Removal
from sql.aggregates.structures.ordered_multiset import OrderedMultiset
from sql.algebra.content_view import ContentView, RankedView
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy
from sql.calendar.period import Period

Entry = tuple[Any, int, Event]
"""(criteria, -seq, event): of equal criteria the newest is first."""


class Ranked(Policy):
    """sort: the first n in the order of `criteria`; of tied events the oldest leaves first,
    ties list newest first."""

    departure = Removal.ANY
    ranked = True
    expels_arrivals = True

    def __init__(self, size: int, criteria: Callable[[Event], Any]) -> None:
        self.size = size
        self.criteria = criteria
        self.entries = OrderedMultiset()  # best first

    def insert(self, event: Event, now: int) -> list[Event]:
        entry, entries = (self.criteria(event), -event.seq, event), self.entries
        if entries.count < self.size:
            entries.add(entry)
            return []
        if entries.highest() < entry:
            return [event]
        entries.add(entry)
        return [entries.pop()[2]]

    def discard(self, event: Event) -> bool:
        try:
            self.entries.remove((self.criteria(event), -event.seq, event))
        except KeyError:
            return False
        return True

    def content(self) -> Iterable[Event]:
        return (entry[2] for entry in self.entries)

    def view_from(self, event: Event) -> ContentView:
        return RankedView(self.entries)

    def is_blank(self) -> bool:
        return not self.entries

    def restore(self, state: list[int], find: FindEvent) -> None:
        self.entries = OrderedMultiset(
            (self.criteria(event), -event.seq, event) for event in map(find, state)
        )


class RankedPerKey(Ranked):
    """rank: only the newest event of a key takes part, and a pushed-out key is forgotten."""

    def __init__(self, size: int, criteria: Callable[[Event], Any], key: Callable[[Event], Hashable]) -> None:
        super().__init__(size, criteria)
        self.key = key
        self.by_key: dict[Hashable, Entry] = {}

    def insert(self, event: Event, now: int) -> list[Event]:
        key = self.key(event)
        entry = (self.criteria(event), -event.seq, event)
        out = []
        older, entries = self.by_key.pop(key, None), self.entries
        if older is not None:
            out.append(entries.remove(older)[2])
        if entries.count >= self.size and entries.highest() < entry:
            out.append(event)
            return out
        entries.add(entry)
        if not _is_unranked(entry[0]):
            self.by_key[key] = entry
        if entries.count > self.size:
            worst = entries.pop()[2]
            self._forget(worst)
            out.append(worst)
        return out

    def _forget(self, event: Event) -> None:
        key = self.key(event)
        entry = self.by_key.get(key)
        if entry is not None and entry[2] is event:
            del self.by_key[key]

    def discard(self, event: Event) -> bool:
        held = super().discard(event)
        if held:
            self._forget(event)
        return held

    def restore(self, state: list[int], find: FindEvent) -> None:
        super().restore(state, find)
        ranked = sorted(
            (entry for entry in self.entries if not _is_unranked(entry[0])), key=lambda entry: -entry[1]
        )
        self.by_key = {self.key(entry[2]): entry for entry in ranked}


def _is_unranked(criteria: tuple[Any, ...]) -> bool:
    """An event whose only criterion is NULL is not its key's last one: what follows does not replace it
    (reference)."""
    return len(criteria) == 1 and bool(criteria[0][0] == 0)


class Scheduled(Policy):
    """time_order: an event stays until its own time + d; one that is already older enters
    and leaves in one step."""

    departure = Removal.ANY
    ranked = True
    has_timers = True

    def __init__(self, timestamp: Callable[[Event], int | None], period: Period, zone: ZoneInfo) -> None:
        self.timestamp = timestamp
        self.period = period
        self.zone = zone
        self.heap: list[tuple[int, int, Event]] = []
        self.waiting: set[Event] = set()

    def _leaves_ms(self, event: Event) -> int:
        timestamp = self.timestamp(event)
        return event.time_ms if timestamp is None else self.period.add(timestamp, self.zone)

    def admits(self, event: Event, now: int) -> bool:
        self._leaves_ms(event)
        return True

    def insert(self, event: Event, now: int) -> list[Event]:
        leaves = self._leaves_ms(event)
        if leaves <= now:
            return [event]
        heappush(self.heap, (leaves, event.seq, event))
        self.waiting.add(event)
        return []

    def discard(self, event: Event) -> bool:
        if event not in self.waiting:
            return False
        self.waiting.remove(event)
        self._drop_gone()
        return True

    def _drop_gone(self) -> None:
        while self.heap and self.heap[0][2] not in self.waiting:
            heappop(self.heap)

    def next_deadline(self) -> int | None:
        return self.heap[0][0] if self.heap else None

    def expire(self, now: int) -> list[Event]:
        out = []
        while self.heap and self.heap[0][0] <= now:
            event = heappop(self.heap)[2]
            self.waiting.remove(event)
            out.append(event)
            self._drop_gone()
        return out

    def content(self) -> Iterable[Event]:
        return (event for _, _, event in self._in_order())

    def _in_order(self) -> list[tuple[int, int, Event]]:
        return [entry for entry in sorted(self.heap, key=lambda entry: entry[:2]) if entry[2] in self.waiting]

    def view_from(self, event: Event) -> ContentView:
        # A heap is ordered at its head only: a place in the middle needs the rest sorted.
        return RankedView(OrderedMultiset(entry for entry in self.heap if entry[2] in self.waiting))

    def is_blank(self) -> bool:
        return not self.waiting

    def snapshot(self) -> list[tuple[int, int]]:
        return [(seq, leaves) for leaves, seq, _ in self._in_order()]

    def restore(self, state: list[tuple[int, int]] | list[int], find: FindEvent) -> None:
        """`state`: the events with their times; an older version had the events alone."""
        for item in state:
            event = find(item if isinstance(item, int) else item[0])
            leaves = self._leaves_ms(event) if isinstance(item, int) else item[1]
            self.heap.append((leaves, event.seq, event))  # sorted, hence a heap
            self.waiting.add(event)
