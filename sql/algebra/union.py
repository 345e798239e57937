"""Union: an event is kept while any member keeps it, by reference count.

Union(length(2), time(10 s))     a@1  b@2  c@3        11 −a                     b, c stay
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from sql.aggregates.base import Removal
from sql.algebra.content_view import ContentView
from sql.algebra.event import Delta, Event
from sql.algebra.gate.batch import EventBatch
from sql.algebra.operator import FindEvent, earliest
from sql.algebra.retain.by_key import LatestPerKey
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.queues import Queue
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Saved


class UnionState(TypedDict):
    """The events with the number of members that hold each, and the states of the members."""

    holders: list[tuple[int, int]]
    members: list[Saved]


class Union(Policy):
    """The union of members: an event is in while at least one member holds it."""

    def __init__(self, *members: Policy | EventBatch) -> None:
        self.members = members
        self.holders: dict[Event, int] = {}
        self.departure = Removal.ANY
        self.has_timers = any(member.has_timers for member in members)
        self.written = _written(members)
        """The members, if the statements of all of them stand in the loop."""

    def admits(self, event: Event, now: int) -> bool:
        admitted = [member.admits(event, now) for member in self.members]
        return any(admitted)

    def insert(self, event: Event, now: int) -> list[Event]:
        return self.enter(event, now) or []

    def enter(self, event: Event, now: int) -> list[Event] | None:
        members = [member for member in self.members if member.admits(event, now)]
        if not members:
            return None
        evicted = [out for member in members for out in _removed(member.insert(event, now))]
        self.holders[event] = len(members)
        return self._release(evicted) if evicted else evicted

    @property
    def needs_event(self) -> bool:
        return not self.written

    def write_load(self, source: SourceWriter, place: str) -> None:
        if not self.written:
            super().write_load(source, place)
            return
        source.line(f"holders = {place}.holders")
        for number, member in enumerate(self.written):
            member.window, member.mark = f"window_{number}", f"_{number}"
            member.write_load(source, f"{place}.members[{number}]")

    def write_prepare(self, loop: LoopWriter) -> None:
        if not self.written:
            super().write_prepare(loop)
        for member in self.written:
            member.write_prepare(loop)

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        if not self.written:
            super().write_enter(source, leave)
            return

        def release() -> None:
            source.line("holders[y] -= 1")
            with source.block("if not holders[y]:"):
                source.line("del holders[y]")
                leave()

        source.line(f"holders[x] = {len(self.members)}")
        for member in self.written:
            member.write_enter(source, release)

    def discard(self, event: Event) -> bool:
        for member in self.members:
            member.discard(event)
        return self.holders.pop(event, None) is not None

    def _release(self, evicted: Iterable[Event]) -> list[Event]:
        out = []
        for event in evicted:
            if event not in self.holders:
                continue  # it was deleted by hand, from a batch that had been posted
            self.holders[event] -= 1
            if not self.holders[event]:
                del self.holders[event]
                out.append(event)
        return out

    def next_deadline(self) -> int | None:
        return earliest(member.next_deadline() for member in self.members)

    def expire(self, now: int) -> list[Event]:
        return self._release(out for member in self.members for out in _removed(member.expire(now)))

    def depends_on(self, variable: str) -> bool:
        return any(isinstance(m, Policy) and m.depends_on(variable) for m in self.members)

    def expel(self) -> list[Event]:
        return self._release([e for m in self.members if isinstance(m, Policy) for e in m.expel()])

    def content(self) -> Iterable[Event]:
        return self.holders

    def view_from(self, event: Event) -> ContentView:
        return ContentView(self.holders)

    def is_blank(self) -> bool:
        return not self.holders and all(isinstance(m, Policy) and m.is_blank() for m in self.members)

    def snapshot(self) -> UnionState:
        held = [(event.seq, count) for event, count in self.holders.items()]
        return {"holders": held, "members": [member.snapshot() for member in self.members]}

    def restore(self, state: UnionState, find: FindEvent) -> None:
        self.holders = {find(seq): count for seq, count in state["holders"]}
        for member, part in zip(self.members, state["members"], strict=True):
            member.restore(part, find)


def _written(members: Sequence[Policy | EventBatch]) -> Sequence[LatestPerKey | Queue]:
    """The members, if all take every event and keep it at first; else none."""
    found = [
        member
        for member in members
        if isinstance(member, LatestPerKey)
        or (isinstance(member, Queue) and member.is_queue and not member.refuses)
    ]
    return found if len(found) == len(members) else ()


def _removed(out: Sequence[Event] | Delta | None) -> Sequence[Event]:
    """The events that leave a member: a policy gives them, a batch gives a release."""
    if isinstance(out, Delta):
        return out.removed
    return out or ()
