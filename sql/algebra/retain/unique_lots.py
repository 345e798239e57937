"""`with unique k` of stream queries: of the items a window holds only the newest per key counts."""

from __future__ import annotations

from collections.abc import Iterable

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.by_key import LatestPerKey
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.sight import Sight
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Saved


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

    def sight(self, event: Event) -> Sight:
        return self.line.sight(event)

    def is_blank(self) -> bool:
        return self.line.is_blank()

    def snapshot(self) -> tuple[Saved, list[int]]:
        return self.line.snapshot(), self.latest.snapshot()

    def restore(self, state: tuple[Saved, list[int]], find: FindEvent) -> None:
        self.line.restore(state[0], find)
        self.latest.restore(state[1], find)
