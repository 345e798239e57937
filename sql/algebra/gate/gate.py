"""Windows that hold events back: in a loop an event that is surely held takes no call. Gate is a batch as a
window, alone or behind the policies that it is intersected with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from sql.aggregates.base import Removal
from sql.algebra.content_view import BatchView, ContentView
from sql.algebra.event import Delta, Event
from sql.algebra.gate.batch import EventBatch
from sql.algebra.intersect import Intersect
from sql.algebra.operator import FindEvent, Operator, earliest
from sql.algebra.retain.policies import Policy
from sql.codegen.source import SourceWriter
from sql.types import Saved


class Gated(Operator):
    """In the text `operator` is the window and `x` the event that arrives."""

    releases_on_arrival = True
    """True if an arrival may release something; else `write_hold` is all that an event does."""

    keeps_values = False
    """True if `x` is what the event contributes, and no event."""

    @abstractmethod
    def write_load(self, source: SourceWriter) -> None:
        """Load the held events into locals: before the loop, and again after each release."""

    @abstractmethod
    def write_hold(self, source: SourceWriter) -> None:
        """The event is held; `continue` where that is sure only on a condition."""

    has_end = False
    """True if `write_end` writes something."""

    def write_end(self, source: SourceWriter) -> None:  # most have nothing left to do
        """After the loop."""


class Gate(Gated):
    """Events are held back and enter together; what the release before brought in leaves.

    Policies of the same window run first and take their evictions out of the forming batch silently; what is
    posted leaves them.
    """

    def __init__(self, batch: EventBatch, policies: Sequence[Policy] = ()) -> None:
        self.batch = batch
        self.policies = Intersect(policies)
        kinds = {policy.departure for policy in policies}
        self.departure = Removal.FIFO if kinds <= {Removal.FIFO, Removal.NEVER} else Removal.ANY
        self.surely_holds = "" if policies else batch.trigger.surely_holds

    def push(self, delta: Delta, now: int) -> list[Delta]:
        for event in delta.removed:
            self.discard(event)
        posts = self._posted(self.batch.changed(now)) if delta.removed else []
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
        for policy in self.policies.members:
            for event in post.inserted:
                policy.discard(event)
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
        out = self._posted(self.batch.expire(now))
        self._take_back(self.policies.expire(now))
        return out

    def depends_on(self, variable: str) -> bool:
        return self.policies.depends_on(variable) or self.batch.trigger.depends_on(variable)

    def variable_changed(self, now: int) -> list[Delta]:
        self._take_back(self.policies.expel())
        return self._posted(self.batch.changed(now))

    def content(self) -> Iterable[Event]:
        return self.batch.content()

    def posted(self) -> Iterable[Event]:
        return self.batch.generation

    def end_step(self) -> None:
        self.batch.end_step()

    def held(self) -> Iterable[Event]:
        yield from self.batch.held
        yield from self.batch.generation

    def view_from(self, event: Event) -> ContentView:
        return BatchView(self.batch.of(event))

    def snapshot(self) -> list[Saved]:
        return [*self.policies.snapshot(), self.batch.snapshot()]

    def restore(self, state: list[Saved], find: FindEvent) -> None:
        *policies, batch = state
        self.policies.restore(policies, find)
        self.batch.restore(batch, find)

    # --- in the loop ----------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter) -> None:
        if self.surely_holds:
            source.line("trigger = operator.batch.trigger")
            source.line("held = operator.batch.held")

    def write_hold(self, source: SourceWriter) -> None:
        if self.surely_holds:
            with source.block(f"if {self.surely_holds}:"):
                source.line("held[x] = None")
                source.line("continue")
