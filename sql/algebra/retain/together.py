"""The intersection of windows that keep the order of arrival: one queue for all."""

from __future__ import annotations

from collections.abc import Sequence

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent, earliest
from sql.algebra.retain.policies import WriteLeaving
from sql.algebra.retain.queues import Queue
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Saved


class Together(Queue):
    """The intersection of windows in order of arrival: one queue, whose oldest event
    leaves as soon as one of them evicts it.

    All members hold the same events, so each decides over the one queue; what one evicts
    the others have lost too.
    """

    def __init__(self, members: Sequence[Queue]) -> None:
        self.members = members
        kinds = {member.departure for member in members}
        self.departure = Removal.NEVER if kinds == {Removal.NEVER} else Removal.FIFO
        self.has_timers = any(member.has_timers for member in members)
        self.leaves_on_arrival = any(member.leaves_on_arrival for member in members)
        super().__init__()
        self._share()

    def _share(self) -> None:
        for member in self.members:
            member.events = self.events

    def allow_gaps(self) -> None:
        super().allow_gaps()
        self._share()

    @property
    def needs_event(self) -> bool:
        return any(member.needs_event for member in self.members)

    def admits(self, event: Event, now: int) -> bool:
        return all(member.admits(event, now) for member in self.members)

    def evict(self, event: Event) -> list[Event]:
        return [out for member in self.members for out in member.evict(event)]

    def next_deadline(self) -> int | None:
        return earliest(member.next_deadline() for member in self.members)

    def expire(self, now: int) -> list[Event]:
        return [out for member in self.members for out in member.expire(now)]

    def is_blank(self) -> bool:
        return all(member.is_blank() for member in self.members)

    def snapshot(self) -> Saved:
        return [member.snapshot() for member in self.members]

    def restore(self, state: Saved, find: FindEvent) -> None:
        for member, part in zip(self.members, state, strict=True):
            member.restore(part, find)
        self.events = self.members[0].events
        self._share()

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
