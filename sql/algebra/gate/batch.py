"""Batches: events are held, and released together at a trigger.

A release brings in what was held, and what the release before brought in leaves: Esper's batch windows.
Deltas that are held back *behind* a Retain (Apama's `every`) are in `gated_queue`.

         time_batch(1 s)    E1   E2 |        E3 |           |
                            1.5     2.5 +E1 E2  3.5 +E3     4.5 −E3      boundaries at the first event + k·d
                                                    −E1 E2
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypedDict

from sql.algebra.event import Delta, Event
from sql.algebra.gate.triggers import Trigger
from sql.algebra.operator import FindEvent
from sql.types import Saved


class BatchState(TypedDict):
    """The events that are held, those released last, and the state of the trigger."""

    held: list[int]
    generation: list[int]
    trigger: Saved


class EventBatch:
    """Gate(trigger) followed by Retain(generation): what is held, and what the last release brought in."""

    has_timers = True

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger
        self.held: OrderedDict[Event, None] = OrderedDict()
        self.generation: list[Event] = []
        """The batch released last."""
        self._seen: list[Event] = []
        """What was held when it was last read by place."""
        self.fresh = False
        """True if the step of the last release is still going on: until its end the batch
        is seen as the content."""

    def admits(self, event: Event, now: int) -> bool:
        """True if the event may enter: it always may, unless this raises."""
        return self.trigger.admits(event, now)

    def insert(self, event: Event, now: int) -> Delta | None:
        """An event arrives; the release it causes, if any."""
        decision = self.trigger.on_event(event, self.held, now)
        if decision == "before" and (self.held or self.generation):
            return self._release(now, starts_with=event)
        self.held[event] = None
        return self._release(now) if decision == "after" else None

    def _release(self, now: int, starts_with: Event | None = None) -> Delta:
        out = Delta(list(self.held), self.generation)
        self.generation = list(self.held)
        self.held = OrderedDict() if starts_with is None else OrderedDict({starts_with: None})
        self.trigger.released(self.held, now)
        is_empty = not out.inserted and not out.removed
        if is_empty:
            self.trigger.rest()
        self.fresh = not self.held and not (is_empty and not self.trigger.force)
        return out

    def discard(self, event: Event) -> bool:
        """The event leaves the forming batch silently; one already posted still leaves with its
        generation."""
        held = self.held.pop(event, self) is None
        if held:
            self.trigger.discarded(event)
        return held

    def next_deadline(self) -> int | None:
        return self.trigger.deadline()

    def expire(self, now: int) -> Delta | None:
        """The release due at or before `now`, if any."""
        due = self.trigger.deadline()
        if due is None or due > now:
            return None
        out = self._release(now)
        return out if out.inserted or out.removed or self.trigger.force else None

    def changed(self, now: int) -> Delta | None:
        """A variable has changed, or an event was deleted; the release that causes, if any."""
        if not (self.held or self.generation) or not self.trigger.changed(self.held, now):
            return None
        return self._release(now)

    def content(self) -> Iterable[Event]:
        return self.generation if self.fresh else self.held

    def of(self, event: Event) -> list[Event]:
        """The batch of an event, which `prev` counts in: the one that gathers, or the one released last."""
        if event not in self.held:
            return self.generation
        if len(self._seen) != len(self.held) or self._seen[-1] is not next(reversed(self.held)):
            self._seen = list(self.held)
        return self._seen

    def end_step(self) -> None:
        self.fresh = False

    def snapshot(self) -> BatchState:
        return {
            "held": [event.seq for event in self.held],
            "generation": [event.seq for event in self.generation],
            "trigger": self.trigger.snapshot(),
        }

    def restore(self, state: BatchState, find: FindEvent) -> None:
        self.held = OrderedDict((find(seq), None) for seq in state["held"])
        self.generation = [find(seq) for seq in state["generation"]]
        self.trigger.restore(state["trigger"])
        self.trigger.resumed(self.held)
