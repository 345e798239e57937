"""groupwin in the loop: a queue per key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heappop, heappush, heapreplace

from sql.aggregates.base import Removal
from sql.algebra.content_view import NOTHING, ContentView
from sql.algebra.event import Delta, Event
from sql.algebra.event_store import pack_key, unpack_key
from sql.algebra.key import too_many_keys
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.queues import Queue
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.plan.bound import Bound
from sql.types import Plain, Saved


class QueuePerKey(Policy):
    """groupwin(k, …): one window per key. Each posts updates of its own; empty ones are dropped.

    make  makes the window of one more key; all are of one kind
    """

    departure = Removal.ANY
    needs_event = False

    def __init__(
        self,
        nodes: Sequence[Bound],
        key: Callable[[Event], Hashable],
        make: Callable[[], Queue],
        keys_max: int,
    ) -> None:
        self.nodes = nodes
        self.key = key
        self.make = make
        self.keys_max = keys_max
        self.template = make()
        self.has_timers = self.template.has_timers
        self.leaves_on_arrival = self.template.leaves_on_arrival
        self.instances: dict[Hashable, Queue] = {}
        self.due: list[tuple[int, Hashable]] = []
        """A heap of the oldest event's number and the key of each window with events, where time lets them
        leave: the oldest of all leaves first."""

    def open(self, key: Hashable) -> Queue:
        """The window of a new key; DataError where there are too many."""
        if len(self.instances) >= self.keys_max:
            self._drop_empty()
        if len(self.instances) >= self.keys_max:
            raise too_many_keys(self.keys_max)
        window = self.instances[key] = self.make()
        return window

    def _drop_empty(self) -> None:
        for key in [key for key, window in self.instances.items() if not window.events]:
            del self.instances[key]

    def insert(self, event: Event, now: int) -> list[Event]:
        key = self.key(event)
        window = self.instances.get(key) or self.open(key)
        if self.has_timers and not window.events:
            heappush(self.due, (event.seq, key))
        return window.insert(event, now)

    def discard(self, event: Event) -> bool:
        window = self.instances.get(self.key(event))
        was_held = window is not None and window.discard(event)
        if was_held:
            self._note_due()
        return was_held

    # --- in the loop ----------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter, place: str) -> None:
        self.template.write_load(source, f"{place}.template")
        source.line(f"parts = {place}")
        source.line("find = parts.instances.get")
        if self.has_timers:
            source.line("due = parts.due")

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.key(self.nodes, "part")
        loop.line("window = find(part)")
        with loop.source.block("if window is None:"):
            loop.line("window = parts.open(part)")
        loop.line("window = window.events")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        if self.has_timers:
            with source.block("if not window:"):  # its number is the highest, so the heap stays one
                source.line("due.append((seq, part))")
        self.template.write_enter(source, leave)

    # --- time -----------------------------------------------------------------------------------------------

    def _note_due(self) -> None:
        if self.has_timers:
            self.due = [
                (window.events[0].seq, key) for key, window in self.instances.items() if window.events
            ]
            self.due.sort()

    def next_deadline(self) -> int | None:
        return self.instances[self.due[0][1]].next_deadline() if self.due else None

    def advance(self, now: int) -> list[Delta]:
        """The events that leave the windows that are due, in order of their deadlines."""
        out: list[Delta] = []
        while self.due:
            key = self.due[0][1]
            window = self.instances[key]
            left = window.expire(now)
            if not left:
                break
            out.append(Delta((), left))
            if window.events:
                heapreplace(self.due, (window.events[0].seq, key))
            else:
                heappop(self.due)
                del self.instances[key]
        return out

    # --- content and state ----------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        return (event for window in self.instances.values() for event in window.content())

    def view_from(self, event: Event) -> ContentView:
        window = self.instances.get(self.key(event))
        return NOTHING if window is None else window.view_from(event)

    def is_blank(self) -> bool:
        return not any(window.events for window in self.instances.values())

    def snapshot(self) -> list[tuple[Plain, Saved]]:
        return [(pack_key(key), window.snapshot()) for key, window in self.instances.items()]

    def restore(self, state: list[tuple[Plain, Saved]], find: FindEvent) -> None:
        for packed, part in state:
            key = unpack_key(packed)
            window = self.instances[key] = self.make()
            window.restore(part, find)
        self._note_due()
