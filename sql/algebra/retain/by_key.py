"""Retention by key: the newest per key (unique), the first per key (firstunique), and the newest per key of
what a queue holds (`with unique k` of stream queries)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from sql.aggregates.base import Removal
from sql.algebra.content_view import ContentView
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.plan.bound import Bound
from sql.types import Saved


class OnePerKey(Policy):
    """Base: at most one event per key, held in order of arrival.

    nodes, key  the key of an event, as bound expressions and as function
    """

    departure = Removal.ANY
    needs_event = False
    window, mark = "window", ""
    """The name of the container in the text, and the suffix of the name of the key."""

    def __init__(self, nodes: Sequence[Bound], key: Callable[[Event], Hashable]) -> None:
        self.nodes = nodes
        self.key = key
        self.by_key: dict[Hashable, Event] = {}

    def discard(self, event: Event) -> bool:
        key = self.key(event)
        if self.by_key.get(key) is not event:
            return False
        del self.by_key[key]
        return True

    def content(self) -> Iterable[Event]:
        return self.by_key.values()

    def view_from(self, event: Event) -> ContentView:
        return ContentView(self.by_key.values())

    def is_blank(self) -> bool:
        return not self.by_key

    def restore(self, state: list[int], find: FindEvent) -> None:
        self.by_key = {self.key(event): event for event in map(find, state)}

    def write_load(self, source: SourceWriter, place: str) -> None:
        source.line(f"{self.window} = {place}.by_key")

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.key(self.nodes, self.unique)

    @property
    def unique(self) -> str:
        """The name of the key in the text."""
        return f"unique{self.mark}"


class LatestPerKey(OnePerKey):
    """unique: a new event replaces the older one of its key in the same step."""

    def insert(self, event: Event, now: int) -> list[Event]:
        key = self.key(event)
        replaced = self.by_key.pop(key, None)
        self.by_key[key] = event
        return [] if replaced is None else [replaced]

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line(f"y = {self.window}.pop({self.unique}, None)")
        source.line(f"{self.window}[{self.unique}] = x")
        with source.block("if y is not None:"):
            leave()


class FirstPerKey(OnePerKey):
    """firstunique: the first event of each key stays; later ones are refused."""

    departure = Removal.NEVER
    leaves_on_arrival = False

    def admits(self, event: Event, now: int) -> bool:
        return self.key(event) not in self.by_key

    def insert(self, event: Event, now: int) -> list[Event]:
        self.by_key[self.key(event)] = event
        return []

    def write_prepare(self, loop: LoopWriter) -> None:
        super().write_prepare(loop)
        with loop.source.block(f"if {self.unique} in {self.window}:"):
            loop.line("continue")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line(f"{self.window}[{self.unique}] = x")


class LatestOf(Policy):
    """A queue of which only the newest item per key counts."""

    departure = Removal.ANY

    def __init__(self, line: Policy, latest: LatestPerKey) -> None:
        self.line = line
        self.latest = latest
        self.latest.window = "visible"
        self.has_timers = line.has_timers

    @property
    def needs_event(self) -> bool:
        return self.line.needs_event

    def insert(self, event: Event, now: int) -> list[Event]:
        left = self._visible(self.line.insert(event, now))
        return left + self.latest.insert(event, now)

    def _visible(self, left: Iterable[Event]) -> list[Event]:
        """Those of the items that leave the queue that counted; they count no more."""
        return [event for event in left if self.latest.discard(event)]

    def write_load(self, source: SourceWriter, place: str) -> None:
        self.line.write_load(source, f"{place}.line")
        self.latest.write_load(source, f"{place}.latest")
        source.line(f"hide = {place}.latest.discard")

    def write_prepare(self, loop: LoopWriter) -> None:
        self.latest.write_prepare(loop)

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        def evicted() -> None:
            with source.block("if hide(y):"):
                leave()

        self.line.write_enter(source, evicted)  # what it lets go is older than what the event hides
        self.latest.write_enter(source, leave)

    def next_deadline(self) -> int | None:
        return self.line.next_deadline()

    def expire(self, now: int) -> list[Event]:
        return self._visible(self.line.expire(now))

    def discard(self, event: Event) -> bool:
        return self.line.discard(event) and self.latest.discard(event)

    def content(self) -> Iterable[Event]:
        return self.latest.content()

    def held(self) -> Iterable[Event]:
        return self.line.content()

    def view_from(self, event: Event) -> ContentView:
        return self.line.view_from(event)

    def is_blank(self) -> bool:
        return self.line.is_blank()

    def snapshot(self) -> tuple[Saved, list[int]]:
        return self.line.snapshot(), self.latest.snapshot()

    def restore(self, state: tuple[Saved, list[int]], find: FindEvent) -> None:
        self.line.restore(state[0], find)
        self.latest.restore(state[1], find)
