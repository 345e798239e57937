"""Intersect: an event is kept while all members keep it.

What one evicts is taken from the others (feedback), so expiry frees slots. Members that all keep the order of
arrival share one queue.

         Intersect(length(2), time(10 s))     a@1  b@2  c@3 −a     11: nothing (a is gone)   12 −b
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from sql.aggregates.base import Removal
from sql.algebra.content_view import ContentView
from sql.algebra.event import Event
from sql.algebra.operator import Composed, FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.queues import Held, Queue
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Saved


def intersect(members: Sequence[Policy]) -> Policy:
    if len(members) == 1:
        return members[0]
    queues = [member for member in members if isinstance(member, Queue) and member.is_queue]
    return IntersectedQueue(queues) if len(queues) == len(members) else Intersect(members)


class Intersect(Composed, Policy):
    """The intersection of policies.

    In one step each member decides before any feedback. An event that one member refuses touches no member.
    """

    members: Sequence[Policy]

    def __init__(self, members: Sequence[Policy]) -> None:
        self.members = members
        self.departure = _departure(members)
        self.has_timers = any(policy.has_timers for policy in members)

    def admits(self, event: Event, now: int) -> bool:
        return all(policy.admits(event, now) for policy in self.members)

    def insert(self, event: Event, now: int) -> list[Event]:
        return self._take_back([out for policy in self.members for out in policy.insert(event, now)])

    def _take_back(self, evicted: list[Event]) -> list[Event]:
        """Remove the events that one member has evicted from the others; each event once, in order."""
        if len(evicted) > 1:
            evicted = list(dict.fromkeys(evicted))
        for event in evicted:
            for policy in self.members:
                policy.discard(event)
        return evicted

    def discard(self, event: Event) -> bool:
        held = [policy.discard(event) for policy in self.members]
        return any(held)

    def expire(self, now: int) -> list[Event]:
        return self._take_back([out for policy in self.members for out in policy.expire(now)])

    def expel(self) -> list[Event]:
        return self._take_back([event for policy in self.members for event in policy.expel()])

    def content(self) -> Iterable[Event]:
        return self._leading().content()

    def _leading(self) -> Policy:
        """Every member holds the same events; a ranked one gives the order `prev` is documented to see."""
        return next((policy for policy in self.members if policy.ranked), self.members[0])

    def view_from(self, event: Event) -> ContentView:
        return self._leading().view_from(event)


def _departure(policies: Sequence[Policy]) -> Removal:
    kinds = {policy.departure for policy in policies}
    if kinds == {Removal.NEVER}:
        return Removal.NEVER
    return Removal.FIFO if Removal.ANY not in kinds else Removal.ANY


class IntersectedQueue(Composed, Queue):
    """The intersection of windows in order of arrival: one queue, whose oldest event
    leaves as soon as one of them evicts it.

    All members hold the same events, so each decides over the one queue; what one evicts
    the others have lost too.
    """

    members: Sequence[Queue]

    def __init__(self, members: Sequence[Queue]) -> None:
        self.members = members
        self.departure = _departure(members)
        self.has_timers = any(member.has_timers for member in members)
        self.leaves_on_arrival = any(member.leaves_on_arrival for member in members)
        super().__init__()
        self.hold(self.events)

    def hold(self, events: deque[Event] | Held) -> None:
        super().hold(events)
        for member in self.members:
            member.hold(events)

    @property
    def needs_event(self) -> bool:
        return any(member.needs_event for member in self.members)

    @property
    def refuses(self) -> bool:
        return any(member.refuses for member in self.members)

    def admits(self, event: Event, now: int) -> bool:
        return all(member.admits(event, now) for member in self.members)

    def evict(self, event: Event) -> list[Event]:
        return [out for member in self.members for out in member.evict(event)]

    def expire(self, now: int) -> list[Event]:
        return [out for member in self.members for out in member.expire(now)]

    def restore(self, state: Saved, find: FindEvent) -> None:
        super().restore(state, find)
        self.hold(self.members[0].events)

    def write_load(self, source: SourceWriter, place: str) -> None:
        for number, member in enumerate(self.members):
            member.mark = f"_{number}"
            member.write_load(source, f"{place}.members[{number}]")

    def write_prepare(self, loop: LoopWriter) -> None:
        for member in self.members:
            member.write_prepare(loop)

    def write_evict(self, source: SourceWriter, leave: WriteLeaving) -> None:
        for member in self.members:
            member.write_evict(source, leave)
