"""`with unique k` of stream queries: of the items a window holds only the newest per key counts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent, Operator
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.sight import Sight
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.plan.bound import Bound
from sql.types import Saved


def net(deltas: Iterable[Delta]) -> Delta:
    """One delta for several, without the events that entered and left inside them."""
    inserted: dict[Event, None] = {}
    removed: dict[Event, None] = {}
    for delta in deltas:
        inserted.update(dict.fromkeys(delta.inserted))
        for event in delta.removed:
            if event in inserted:
                del inserted[event]
            else:
                removed[event] = None
    return Delta(list(inserted), list(removed))


class UniqueLots(Operator):
    """`with unique k`: of the items the window shows only the newest per key counts; the
    older keep their places."""

    departure = Removal.ANY

    def __init__(self, nodes: Sequence[Bound], key: Callable[[Event], Hashable]) -> None:
        self.nodes = nodes
        self.key = key
        self.visible: dict[Hashable, Event] = {}

    def push(self, delta: Delta, now: int) -> list[Delta]:
        removed: list[Event] = []
        for event in delta.inserted:
            removed += self.show(event)
        for event in delta.removed:
            removed += self.hide(event)
        out = net((Delta(delta.inserted, removed),))
        return [out] if out.inserted or out.removed else []

    def show(self, event: Event) -> tuple[Event, ...]:
        """The item is the newest of its key; the one it hides, if any."""
        key = self.key(event)
        hidden = self.visible.pop(key, None)
        self.visible[key] = event
        return () if hidden is None else (hidden,)

    def hide(self, event: Event) -> tuple[Event, ...]:
        """The item leaves; itself, if it was visible."""
        key = self.key(event)
        if self.visible.get(key) is not event:
            return ()
        del self.visible[key]
        return (event,)

    def content(self) -> Iterable[Event]:
        return self.visible.values()

    def is_blank(self) -> bool:
        return not self.visible

    def snapshot(self) -> list[int]:
        return [event.seq for event in self.visible.values()]

    def restore(self, state: list[int], find: FindEvent) -> None:
        self.visible = {self.key(event): event for event in map(find, state)}


class LatestOf(Policy):
    """A queue of which only the newest item per key counts."""

    departure = Removal.ANY

    def __init__(self, line: Policy, latest: UniqueLots) -> None:
        self.line = line
        self.latest = latest
        self.has_timers = line.has_timers

    @property
    def needs_event(self) -> bool:
        return self.line.needs_event

    def insert(self, event: Event, now: int) -> list[Event]:
        left = [*self.latest.show(event)]
        for gone in self.line.insert(event, now):
            left += self.latest.hide(gone)
        return left

    def write_load(self, source: SourceWriter, place: str) -> None:
        self.line.write_load(source, f"{place}.line")
        source.line(f"visible, hide = {place}.latest.visible, {place}.latest.hide")

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.key(self.latest.nodes, "unique")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("y = visible.pop(unique, None)")
        source.line("visible[unique] = x")
        with source.block("if y is not None:"):
            leave()

        def evicted() -> None:
            with source.block("if hide(y):"):
                leave()

        self.line.write_enter(source, evicted)

    def next_deadline(self) -> int | None:
        return self.line.next_deadline()

    def expire(self, now: int) -> list[Event]:
        return [event for gone in self.line.expire(now) for event in self.latest.hide(gone)]

    def discard(self, event: Event) -> bool:
        return self.line.discard(event) and bool(self.latest.hide(event))

    def content(self) -> Iterable[Event]:
        return self.latest.content()

    def held(self) -> Iterable[Event]:
        return self.line.content()

    def sight(self, event: Event) -> Sight:
        return self.line.sight(event)

    def is_blank(self) -> bool:
        return self.line.is_blank()

    def snapshot(self) -> tuple[Saved, list[int]]:
        return self.line.snapshot(), self.latest.snapshot()

    def restore(self, state: tuple[Saved, list[int]], find: FindEvent) -> None:
        self.line.restore(state[0], find)
        self.latest.restore(state[1], find)
