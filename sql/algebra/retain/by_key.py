"""Retention by key: the newest per key (unique), the first per key (firstunique)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.sight import Sight
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.plan.bound import Bound


class OnePerKey(Policy):
    """Base: at most one event per key, held in order of arrival.

    nodes, key  the key of an event, as bound expressions and as function
    """

    departure = Removal.ANY
    needs_event = False
    window, unique = "window", "unique"
    """The names of the container and of the key in the text."""

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

    def sight(self, event: Event) -> Sight:
        return Sight(self.by_key.values())

    def is_blank(self) -> bool:
        return not self.by_key

    def restore(self, state: list[int], find: FindEvent) -> None:
        self.by_key = {self.key(event): event for event in map(find, state)}

    def write_load(self, source: SourceWriter, place: str) -> None:
        source.line(f"{self.window} = {place}.by_key")

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.key(self.nodes, self.unique)


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
