"""EPL's windows together (epl.md section 3): intersections, unions and one for each key.

A relation that lets events in at once is a list of the events it holds. One with a batch holds events back
instead and posts them together.
"""

from __future__ import annotations

from typing import Any, Protocol

from sql.plan.clauses import SourcePlan, WindowPlan
from tests.reference.batches import BATCHES, Batch
from tests.reference.members import Delta, Retain
from tests.reference.rows import Event, key


class Relation(Protocol):
    """What stands between a stream and the rows of a statement."""

    def insert(self, event: Event, now: int) -> list[Delta]: ...
    def advance(self, now: int) -> list[Delta]: ...
    def due_ms(self) -> int | None: ...
    def content(self) -> list[Event]: ...
    def remembers(self) -> bool: ...


class Current:
    """No window: an event is there for its own step only."""

    def insert(self, event: Event, now: int) -> list[Delta]:
        return [Delta([event], [])]

    def advance(self, now: int) -> list[Delta]:
        return []

    def due_ms(self) -> int | None:
        return None

    def content(self) -> list[Event]:
        return []

    def remembers(self) -> bool:
        return False


class Intersection:
    """An event stays while all members hold it; they decide on an arrival before any
    feedback. One may be a batch."""

    def __init__(self, windows: tuple[WindowPlan, ...], start_ms: int) -> None:
        self.members = [Retain(window, start_ms) for window in windows if window.name not in BATCHES]
        self.batch = next((Batch(window, start_ms) for window in windows if window.name in BATCHES), None)
        self.held: list[Event] = []

    def admits(self, event: Event, now: int) -> bool:
        return all(member.admits(self.held, event, now) for member in self.members)

    def insert(self, event: Event, now: int) -> list[Delta]:
        if not self.admits(event, now):
            return []
        self.held = [*self.held, event]
        out = once(leaver for member in self.members for leaver in member.pushed_out(self.held, event, now))
        self.drop(out)
        if self.batch is None:
            return [Delta([event], out)]
        # What leaves a sibling leaves the forming batch silently; what is posted leaves the siblings.
        self.batch.held = [other for other in self.batch.held if other not in out]
        return self._posted(None if event in out else self.batch.insert(event, now))

    def advance(self, now: int) -> list[Delta]:
        """Overdue timers go by due times, at one instant expiry first; this takes all that is overdue."""
        if self.batch is None:
            out = self._expired(now)
            return [Delta([], out)] if out else []
        leaves, posts = self._leaves_ms(), self.batch.due_ms()
        if leaves is not None and (posts is None or leaves <= posts):
            self._expired(now)
        return self._posted(self.batch.advance(now))

    def _expired(self, now: int) -> list[Event]:
        out = once(leaver for member in self.members for leaver in member.expired(self.held, now))
        self.drop(out)
        if self.batch is not None:
            self.batch.held = [other for other in self.batch.held if other not in out]
        return out

    def _leaves_ms(self) -> int | None:
        return earliest(member.leave_ms(self.held, event) for member in self.members for event in self.held)

    def _posted(self, delta: Delta | None) -> list[Delta]:
        if delta is None or not (delta.inserted or delta.removed or delta.forced):
            return []
        self.drop(delta.inserted)
        return [delta]

    def drop(self, events: list[Event]) -> None:
        self.held = [event for event in self.held if event not in events]

    def due_ms(self) -> int | None:
        return earliest([self._leaves_ms(), self.batch.due_ms() if self.batch else None])

    def content(self) -> list[Event]:
        return self.batch.held if self.batch else self.held

    def remembers(self) -> bool:
        """Whether it differs from a new one."""
        return bool(
            self.held or self.batch or any(member.window.name == "firsttime" for member in self.members)
        )


class Union:
    """An event stays while any member holds it; admitted if any admits."""

    def __init__(self, windows: tuple[WindowPlan, ...], start_ms: int) -> None:
        self.members = [Intersection((window,), start_ms) for window in windows]

    def insert(self, event: Event, now: int) -> list[Delta]:
        if not any(member.admits(event, now) for member in self.members):
            return []
        before = self.content()
        for member in self.members:
            member.insert(event, now)
        return [Delta([event], [other for other in [*before, event] if other not in self.content()])]

    def advance(self, now: int) -> list[Delta]:
        before = self.content()
        for member in self.members:
            member.advance(now)
        gone = [event for event in before if event not in self.content()]
        return [Delta([], gone)] if gone else []

    def due_ms(self) -> int | None:
        return earliest(member.due_ms() for member in self.members)

    def remembers(self) -> bool:
        return any(member.remembers() for member in self.members)

    def content(self) -> list[Event]:
        """In order of arrival; a batch member holds what it collects and what it posted last."""
        held = [event for member in self.members for event in member.held]
        held += [event for m in self.members if m.batch for event in (*m.batch.held, *m.batch.posted)]
        return sorted(once(held), key=lambda event: event.seq)


class PerKey:
    """groupwin: one relation per key, each posting its own updates; of one instant by
    due time, then by creation: that of `time` by the arrival of its oldest event.

    A relation that has become as good as new is dropped, and is created anew by its key's next event.
    """

    def __init__(self, source: SourcePlan, windows: tuple[WindowPlan, ...]) -> None:
        self.keys = source.windows[0].arguments["keys"]
        self.source, self.windows = source, windows
        self.relations: dict[Any, Relation] = {}

    def insert(self, event: Event, now: int) -> list[Delta]:
        name = key(self.keys, event)
        if name not in self.relations:
            self.relations[name] = combined(self.windows, self.source.union, now)
        return self._tidy(self.relations[name].insert(event, now))

    def advance(self, now: int) -> list[Delta]:
        due = [(at, each) for each in self.relations.values() if (at := each.due_ms()) is not None]
        by_arrival = [window.name for window in self.windows] == ["time"]
        due.sort(key=lambda pair: (pair[0], pair[1].content()[0].seq if by_arrival else 0))
        return self._tidy([delta for _, relation in due for delta in relation.advance(now)])

    def _tidy(self, deltas: list[Delta]) -> list[Delta]:
        self.relations = {name: relation for name, relation in self.relations.items() if relation.remembers()}
        return deltas

    def due_ms(self) -> int | None:
        return earliest(relation.due_ms() for relation in self.relations.values())

    def content(self) -> list[Event]:
        return [event for relation in self.relations.values() for event in relation.content()]

    def remembers(self) -> bool:
        return bool(self.relations)


def relation_of(source: SourcePlan, start_ms: int) -> Relation:
    """The windows of one source."""
    names = [window.name for window in source.windows]
    if (
        unknown := set(names) & {"size", "uni", "linest", "correl", "weighted_avg", "merge"}
        or source.reclaim_ms
    ):
        raise NotImplementedError(f"the reference evaluator has no {unknown}")
    if "groupwin" in names:
        return PerKey(source, source.windows[1:])
    return combined(source.windows, source.union, start_ms)


def combined(windows: tuple[WindowPlan, ...], union: bool, start_ms: int) -> Relation:
    if not windows:
        return Current()
    return Union(windows, start_ms) if union else Intersection(windows, start_ms)


def once(events: Any) -> list[Event]:
    """Each event once, at its first place."""
    return list(dict.fromkeys(events))


def earliest(times: Any) -> int | None:
    return min((time for time in times if time is not None), default=None)
