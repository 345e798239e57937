"""Gate: events are held and released together at a trigger.

A `BatchGate` is Gate before Retain(generation), Esper's batch windows: what is released enters, and what the
release before brought in leaves. Deltas that are held back *behind* a Retain (Apama's `every`) are in
`lot_gates.py`. The triggers are in `triggers.py`.

         time_batch(1 s)    E1   E2 |        E3 |           |
                            1.5     2.5 +E1 E2  3.5 +E3     4.5 −E3      boundaries at the first event + k·d
                                                    −E1 E2
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Literal

from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent
from sql.types import Saved

Decision = Literal["hold", "before", "after"]
"""On an arriving event: hold it, release without it (it starts the next batch), or release with it."""


class Trigger(ABC):
    """Decides when a gate releases."""

    @abstractmethod
    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        """The action for an arriving event; `held` does not contain it yet."""

    def admits(self, event: Event, now: int) -> bool:
        """Raise what `on_event` would raise of the event, so that no other window has it then."""
        return True

    surely_holds = ""
    """When an arriving event is held and nothing else changes: a condition in the text of a loop, over
    `trigger` and `held`. Empty: `on_event` must say."""

    force = False
    """True if an empty release is posted all the same."""

    def deadline(self) -> int | None:
        """When time alone releases next."""
        return None

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        """Called after each release; `held` is what the next batch begins with."""

    def rest(self) -> None:
        """Called when nothing is held and nothing waits to leave."""

    def changed(self, held: OrderedDict[Event, None], now: int) -> bool:
        """Called when a variable the trigger depends on has changed: whether to release now."""
        return False

    def discarded(self, event: Event) -> None:
        """Called when an event left the forming batch silently."""

    def resumed(self, held: OrderedDict[Event, None]) -> None:
        """Called after a restore with the forming batch, for triggers that derive state from it."""

    def snapshot(self) -> Saved:
        return None

    def restore(self, state: Saved) -> None:
        return None


class BatchGate:
    """Gate(trigger) followed by Retain(generation)."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger
        self.held: OrderedDict[Event, None] = OrderedDict()
        self.generation: list[Event] = []
        self.fresh = False
        """True if the step of the last release is still going on: until its end the batch
        is seen as the content."""

    def admits(self, event: Event, now: int) -> bool:
        """True if the event may enter: it always may, unless this raises."""
        return self.trigger.admits(event, now)

    def insert(self, event: Event, now: int) -> Delta | None:
        """An event arrives; the release it causes, if any."""
        decision = self.trigger.on_event(event, self.held, now)
        if decision == "before" and self.held:
            return self._release(now, starts_with=event)
        self.held[event] = None
        return self._release(now) if decision == "after" else None

    def _release(self, now: int, starts_with: Event | None = None) -> Delta:
        out = Delta(list(self.held), self.generation)
        self.generation = list(self.held)
        self.held = OrderedDict() if starts_with is None else OrderedDict({starts_with: None})
        self.fresh = not self.held
        self.trigger.released(self.held, now)
        if not self.held and not self.generation:
            self.trigger.rest()
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

    def advance(self, now: int) -> Delta | None:
        """The release due at or before `now`, if any."""
        due = self.trigger.deadline()
        if due is None or due > now:
            return None
        out = self._release(now)
        return out if out.inserted or out.removed or self.trigger.force else None

    def changed(self, now: int) -> Delta | None:
        """A variable has changed; the release that causes, if any."""
        if not self.trigger.changed(self.held, now):
            return None
        out = self._release(now)
        return out if out.inserted or out.removed else None

    def content(self) -> Iterable[Event]:
        return self.generation if self.fresh else self.held

    def end_step(self) -> None:
        """The step has ended."""
        self.fresh = False

    def posted(self) -> Sequence[Event]:
        """The batch released last: what `prev` counts in."""
        return self.generation

    def all_events(self) -> Iterable[Event]:
        yield from self.held
        yield from self.generation

    def snapshot(self) -> Saved:
        return {
            "held": [event.seq for event in self.held],
            "generation": [event.seq for event in self.generation],
            "trigger": self.trigger.snapshot(),
        }

    def restore(self, state: Saved, find: FindEvent) -> None:
        self.held = OrderedDict((find(seq), None) for seq in state["held"])
        self.generation = [find(seq) for seq in state["generation"]]
        self.trigger.restore(state["trigger"])
        self.trigger.resumed(self.held)
