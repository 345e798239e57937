"""Alone, Meet and Join: how windows combine.

Meet keeps an event while all members do; what one evicts is taken from the others (feedback), so expiry frees slots. A
single window is Alone. Join keeps an event while any member does, by reference count.

         Meet(length(2), time(10 s))     a@1  b@2  c@3 −a     11: nothing (a is gone)   12 −b
         Join(length(2), time(10 s))     a@1  b@2  c@3        11 −a                     b, c stay
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.gate.batch import Batch
from sql.algebra.operator import FindEvent, Operator, earliest
from sql.algebra.retain.policies import Policy
from sql.algebra.sight import ByArrival, ByList, Sight


class Alone(Operator):
    """One policy: a Meet of one, without feedback."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.departure = policy.departure

    def push(self, delta: Delta, now: int) -> list[Delta]:
        policy = self.policy
        removed = [event for event in delta.removed if policy.discard(event)]
        inserted = []
        for event in delta.inserted:
            if policy.admits(event, now):
                inserted.append(event)
                removed += policy.insert(event, now)
        return [Delta(inserted, removed)] if inserted or removed else []

    def discard(self, event: Event) -> bool:
        """The event leaves for another reason; whether it was held."""
        return self.policy.discard(event)

    def next_deadline(self) -> int | None:
        return self.policy.deadline()

    def advance(self, now: int) -> list[Delta]:
        removed = self.policy.expire(now)
        return [Delta((), removed)] if removed else []

    def variable_changed(self, now: int) -> list[Delta]:
        expelled = self.policy.variable_changed()
        return [Delta((), expelled)] if expelled else []

    def content(self) -> Iterable[Event]:
        return self.policy.content()

    def sight(self, event: Event) -> Sight:
        return self.policy.sight()

    def is_blank(self) -> bool:
        return self.policy.is_blank()

    def snapshot(self) -> Any:
        return self.policy.snapshot()

    def restore(self, state: Any, find: FindEvent) -> None:
        self.policy.restore(state, find)


class Meet(Operator):
    """The intersection of policies, with at most one batch behind their feedback.

    In one step each member decides before any feedback. An event that one member refuses touches no member. With a
    batch
    the policies run first and take their evictions out of the forming batch silently; what is posted leaves the
    policies.
    """

    def __init__(self, *policies: Policy, batch: Batch | None = None) -> None:
        self.policies = policies
        self.batch = batch
        self.departure = _departure(policies, batch)

    def push(self, delta: Delta, now: int) -> list[Delta]:
        inserted: list[Event] = []
        removed: list[Event] = [event for event in delta.removed if self.discard(event)]
        posts: list[Delta] = []
        for event in delta.inserted:
            if not all(policy.admits(event, now) for policy in self.policies):
                continue
            if self.batch is not None:
                self.batch.admits(event, now)
            evicted = self._evicted(event, now)
            if self.batch is None:
                inserted.append(event)
                removed += evicted
            elif event not in evicted:
                posts += self._posted(self.batch.insert(event, now))
        return ([Delta(inserted, removed)] if inserted or removed else []) + posts

    def _evicted(self, event: Event, now: int) -> list[Event]:
        if len(self.policies) == 1 and self.batch is None:
            return self.policies[0].insert(event, now)
        evicted = list(dict.fromkeys(out for policy in self.policies for out in policy.insert(event, now)))
        for out in evicted:
            self._take_back(out)
        return evicted

    def _take_back(self, event: Event) -> None:
        for policy in self.policies:
            policy.discard(event)
        if self.batch is not None:
            self.batch.discard(event)

    def _posted(self, post: Delta | None) -> list[Delta]:
        if post is None:
            return []
        for event in post.inserted:
            for policy in self.policies:
                policy.discard(event)
        return [post]

    def discard(self, event: Event) -> bool:
        """The event leaves every member; whether a policy held it and it was posted."""
        held = [policy.discard(event) for policy in self.policies]
        return any(held) if self.batch is None else (self.batch.discard(event), False)[1]

    def next_deadline(self) -> int | None:
        deadlines = [policy.deadline() for policy in self.policies]
        return earliest(deadlines if self.batch is None else [*deadlines, self.batch.deadline()])

    def advance(self, now: int) -> list[Delta]:
        if self.batch is None:
            removed = self._expired(now)
            return [Delta((), removed)] if removed else []
        due, release = earliest(policy.deadline() for policy in self.policies), self.batch.deadline()
        # Overdue timers go in order of their due times; at one instant expiry comes before the release.
        if due is not None and (release is None or due <= release):
            self._expired(now)
        out = self._posted(self.batch.advance(now))
        self._expired(now)
        return out

    def _expired(self, now: int) -> list[Event]:
        removed = list(dict.fromkeys(out for policy in self.policies for out in policy.expire(now)))
        if len(self.policies) > 1 or self.batch is not None:
            for event in removed:
                self._take_back(event)
        return removed

    def variable_changed(self, now: int) -> list[Delta]:
        expelled = [event for policy in self.policies for event in policy.variable_changed()]
        for event in expelled:
            self._take_back(event)
        post = None if self.batch is None else self.batch.changed(now)
        if self.batch is not None:
            return self._posted(post)
        return [Delta((), expelled)] if expelled else []

    def content(self) -> Iterable[Event]:
        if self.batch is not None:
            return self.batch.content()
        return self._leading().content()

    def _leading(self) -> Policy:
        """Every member holds the same events; a ranked one gives the order `prev` is documented to see."""
        return next((policy for policy in self.policies if policy.ranked), self.policies[0])

    def settle(self) -> None:
        if self.batch is not None:
            self.batch.settle()

    def held(self) -> Iterable[Event]:
        return self.content() if self.batch is None else self.batch.all_events()

    def sight(self, event: Event) -> Sight:
        return ByList(self.batch.posted()) if self.batch is not None else self._leading().sight()

    def is_blank(self) -> bool:
        return self.batch is None and all(policy.is_blank() for policy in self.policies)

    def snapshot(self) -> Any:
        return [policy.snapshot() for policy in self.policies] + ([self.batch.snapshot()] if self.batch else [])

    def restore(self, state: Any, find: FindEvent) -> None:
        for policy, part in zip(self.policies, state, strict=False):
            policy.restore(part, find)
        if self.batch is not None:
            self.batch.restore(state[-1], find)


def _departure(policies: Sequence[Policy], batch: Batch | None) -> Removal:
    kinds = {policy.departure for policy in policies}
    if batch is not None:
        return Removal.FIFO if kinds <= {Removal.FIFO, Removal.NEVER} else Removal.ANY
    if kinds == {Removal.NEVER}:
        return Removal.NEVER
    return Removal.FIFO if Removal.ANY not in kinds else Removal.ANY


class Join(Operator):
    """The union of members: an event is in while at least one member holds it."""

    def __init__(self, *members: Policy | Batch) -> None:
        self.members = members
        self.holders: dict[Event, int] = {}
        self.departure = Removal.ANY

    def push(self, delta: Delta, now: int) -> list[Delta]:
        inserted: list[Event] = []
        removed: list[Event] = [event for event in delta.removed if self.discard(event)]
        for event in delta.inserted:
            evicted: list[Event] = []
            for member in [member for member in self.members if member.admits(event, now)]:
                if isinstance(member, Batch):
                    post = member.insert(event, now)
                    evicted += post.removed if post else ()
                else:
                    evicted += member.insert(event, now)
                self.holders[event] = self.holders.get(event, 0) + 1
            if event in self.holders:
                inserted.append(event)
                removed += self._release(evicted)
        return [Delta(inserted, removed)] if inserted or removed else []

    def discard(self, event: Event) -> bool:
        """The event leaves every member; whether one held it."""
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
        return earliest(member.deadline() for member in self.members)

    def advance(self, now: int) -> list[Delta]:
        evicted: list[Event] = []
        for member in self.members:
            if isinstance(member, Batch):
                post = member.advance(now)
                evicted += post.removed if post else ()
            else:
                evicted += member.expire(now)
        removed = self._release(evicted)
        return [Delta((), removed)] if removed else []

    def variable_changed(self, now: int) -> list[Delta]:
        expelled = [e for m in self.members if isinstance(m, Policy) for e in m.variable_changed()]
        removed = self._release(expelled)
        return [Delta((), removed)] if removed else []

    def content(self) -> Iterable[Event]:
        return self.holders

    def sight(self, event: Event) -> Sight:
        return ByArrival(self.holders)

    def is_blank(self) -> bool:
        return not self.holders and all(isinstance(m, Policy) and m.is_blank() for m in self.members)

    def snapshot(self) -> Any:
        held = [[event.seq, count] for event, count in self.holders.items()]
        return {"holders": held, "members": [member.snapshot() for member in self.members]}

    def restore(self, state: Any, find: FindEvent) -> None:
        self.holders = {find(seq): count for seq, count in state["holders"]}
        for member, part in zip(self.members, state["members"], strict=True):
            member.restore(part, find)
