"""Meet and Union: how windows combine.

Meet keeps an event while all members do; what one evicts is taken from the others (feedback), so expiry frees
slots. Where all members keep the order of arrival, `sql.algebra.retain.together.Together` does it with one
queue. Union keeps an event while any member does, by reference count.

         Meet(length(2), time(10 s))     a@1  b@2  c@3 −a     11: nothing (a is gone)   12 −b
         Union(length(2), time(10 s))     a@1  b@2  c@3        11 −a                     b, c stay
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.gate.batch import BatchGate
from sql.algebra.gate.gate import BatchWindow
from sql.algebra.operator import FindEvent, earliest
from sql.algebra.retain.by_key import LatestPerKey
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.queues import Queue
from sql.algebra.retain.together import Together
from sql.algebra.sight import ByArrival, Sight
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Saved


def meet(members: Sequence[Policy]) -> Policy:
    """The intersection of windows."""
    if len(members) == 1:
        return members[0]
    lines = [member for member in members if isinstance(member, Queue) and member.is_queue]
    return Together(lines) if len(lines) == len(members) else Meet(members)


class Meet(Policy):
    """The intersection of policies.

    In one step each member decides before any feedback. An event that one member refuses touches no member.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = policies
        allow_gaps(policies)
        self.departure = _departure(policies)
        self.has_timers = any(policy.has_timers for policy in policies)

    def admits(self, event: Event, now: int) -> bool:
        return all(policy.admits(event, now) for policy in self.policies)

    def insert(self, event: Event, now: int) -> list[Event]:
        return self._take_back([out for policy in self.policies for out in policy.insert(event, now)])

    def _take_back(self, evicted: list[Event]) -> list[Event]:
        """Remove the events that one member has evicted from the others; each event once, in order."""
        if len(evicted) > 1:
            evicted = list(dict.fromkeys(evicted))
        for event in evicted:
            for policy in self.policies:
                policy.discard(event)
        return evicted

    def discard(self, event: Event) -> bool:
        held = [policy.discard(event) for policy in self.policies]
        return any(held)

    def next_deadline(self) -> int | None:
        return earliest(policy.next_deadline() for policy in self.policies)

    def expire(self, now: int) -> list[Event]:
        return self._take_back([out for policy in self.policies for out in policy.expire(now)])

    def expel(self) -> list[Event]:
        return self._take_back([event for policy in self.policies for event in policy.expel()])

    def content(self) -> Iterable[Event]:
        return self._leading().content()

    def _leading(self) -> Policy:
        """Every member holds the same events; a ranked one gives the order `prev` is documented to see."""
        return next((policy for policy in self.policies if policy.ranked), self.policies[0])

    def sight(self, event: Event) -> Sight:
        return self._leading().sight(event)

    def is_blank(self) -> bool:
        return all(policy.is_blank() for policy in self.policies)

    def snapshot(self) -> Saved:
        return [policy.snapshot() for policy in self.policies]

    def restore(self, state: Saved, find: FindEvent) -> None:
        for policy, part in zip(self.policies, state, strict=True):
            policy.restore(part, find)


class MeetBatch(BatchWindow):
    """The intersection of policies and one batch behind their feedback.

    The policies run first and take their evictions out of the forming batch silently;
    what is posted leaves them.
    """

    def __init__(self, policies: Sequence[Policy], batch: BatchGate) -> None:
        super().__init__(batch)
        self.policies = Meet(policies)
        kinds = {policy.departure for policy in policies}
        self.departure = Removal.FIFO if kinds <= {Removal.FIFO, Removal.NEVER} else Removal.ANY

    def push(self, delta: Delta, now: int) -> list[Delta]:
        for event in delta.removed:
            self.discard(event)
        posts: list[Delta] = []
        for event in delta.inserted:
            if not self.policies.admits(event, now):
                continue
            self.batch.admits(event, now)
            evicted = self.policies.insert(event, now)
            self._take_back(evicted)
            if event not in evicted:
                posts += self._posted(self.batch.insert(event, now))
        return posts

    def _take_back(self, evicted: list[Event]) -> None:
        for event in evicted:
            self.batch.discard(event)

    def _posted(self, post: Delta | None) -> list[Delta]:
        if post is None:
            return []
        for event in post.inserted:
            self.policies.discard(event)
        return [post]

    def discard(self, event: Event) -> bool:
        """The event leaves the forming batch; whether it had been posted: never."""
        self.policies.discard(event)
        self.batch.discard(event)
        return False

    def next_deadline(self) -> int | None:
        return earliest((self.policies.next_deadline(), self.batch.next_deadline()))

    def advance(self, now: int) -> list[Delta]:
        due, release = self.policies.next_deadline(), self.batch.next_deadline()
        # Overdue timers go in order of their due times; at one instant expiry comes before the release.
        if due is not None and (release is None or due <= release):
            self._take_back(self.policies.expire(now))
        out = self._posted(self.batch.advance(now))
        self._take_back(self.policies.expire(now))
        return out

    def variable_changed(self, now: int) -> list[Delta]:
        self._take_back(self.policies.expel())
        return self._posted(self.batch.changed(now))

    def snapshot(self) -> Saved:
        return [*self.policies.snapshot(), self.batch.snapshot()]

    def restore(self, state: Saved, find: FindEvent) -> None:
        *policies, batch = state
        self.policies.restore(policies, find)
        self.batch.restore(batch, find)


def allow_gaps(policies: Iterable[Policy]) -> None:
    """Events will be taken out of the middle of the queues."""
    for policy in policies:
        if isinstance(policy, Queue):
            policy.allow_gaps()


def _departure(policies: Sequence[Policy]) -> Removal:
    kinds = {policy.departure for policy in policies}
    if kinds == {Removal.NEVER}:
        return Removal.NEVER
    return Removal.FIFO if Removal.ANY not in kinds else Removal.ANY


class Union(Policy):
    """The union of members: an event is in while at least one member holds it."""

    def __init__(self, *members: Policy | BatchGate) -> None:
        self.members = members
        self.holders: dict[Event, int] = {}
        self.departure = Removal.ANY
        self.has_timers = any(isinstance(member, BatchGate) or member.has_timers for member in members)

    def admits(self, event: Event, now: int) -> bool:
        admitted = [member.admits(event, now) for member in self.members]
        return any(admitted)

    def insert(self, event: Event, now: int) -> list[Event]:
        return self.enter(event, now) or []

    def enter(self, event: Event, now: int) -> list[Event] | None:
        members = [member for member in self.members if member.admits(event, now)]
        if not members:
            return None
        evicted: list[Event] = []
        for member in members:
            if isinstance(member, BatchGate):
                post = member.insert(event, now)
                evicted += post.removed if post else ()
            else:
                evicted += member.insert(event, now)
        self.holders[event] = len(members)
        return self._release(evicted) if evicted else evicted

    @property
    def needs_event(self) -> bool:
        return not self._is_written

    @property
    def _is_written(self) -> bool:
        """True if the statements of all members stand in the loop: all take every event
        and keep it at first."""
        return all(
            isinstance(member, LatestPerKey)
            or (isinstance(member, Queue) and member.is_queue and not member.refuses)
            for member in self.members
        )

    def write_load(self, source: SourceWriter, place: str) -> None:
        if not self._is_written:
            super().write_load(source, place)
            return
        source.line(f"holders = {place}.holders")
        for number, member in enumerate(self.members):
            assert isinstance(member, LatestPerKey | Queue)
            member.window = f"window_{number}"
            if isinstance(member, LatestPerKey):
                member.unique = f"unique_{number}"
            else:
                member.mark = f"_{number}"
            member.write_load(source, f"{place}.members[{number}]")

    def write_prepare(self, loop: LoopWriter) -> None:
        if not self._is_written:
            super().write_prepare(loop)
            return
        for member in self.members:
            assert isinstance(member, Policy)
            member.write_prepare(loop)

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        if not self._is_written:
            super().write_enter(source, leave)
            return

        def release() -> None:
            source.line("holders[y] -= 1")
            with source.block("if not holders[y]:"):
                source.line("del holders[y]")
                leave()

        source.line(f"holders[x] = {len(self.members)}")
        for member in self.members:
            assert isinstance(member, Policy)
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
        evicted: list[Event] = []
        for member in self.members:
            if isinstance(member, BatchGate):
                post = member.advance(now)
                evicted += post.removed if post else ()
            else:
                evicted += member.expire(now)
        return self._release(evicted)

    def expel(self) -> list[Event]:
        return self._release([e for m in self.members if isinstance(m, Policy) for e in m.expel()])

    def content(self) -> Iterable[Event]:
        return self.holders

    def sight(self, event: Event) -> Sight:
        return ByArrival(self.holders)

    def is_blank(self) -> bool:
        return not self.holders and all(isinstance(m, Policy) and m.is_blank() for m in self.members)

    def snapshot(self) -> Saved:
        held = [[event.seq, count] for event, count in self.holders.items()]
        return {"holders": held, "members": [member.snapshot() for member in self.members]}

    def restore(self, state: Saved, find: FindEvent) -> None:
        self.holders = {find(seq): count for seq, count in state["holders"]}
        for member, part in zip(self.members, state["members"], strict=True):
            member.restore(part, find)
