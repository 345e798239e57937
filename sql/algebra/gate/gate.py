"""Windows over a batch: one of its own (Gate), and the base that it shares with intersections."""

from __future__ import annotations

from collections.abc import Iterable

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.gate.batch import BatchGate
from sql.algebra.gate.gated import Gated
from sql.algebra.operator import FindEvent, Operator
from sql.algebra.sight import ByList, Sight
from sql.codegen.source import SourceWriter
from sql.types import Saved


class BatchWindow(Operator):
    """Base of windows whose content is that of a batch."""

    def __init__(self, batch: BatchGate) -> None:
        self.batch = batch

    def content(self) -> Iterable[Event]:
        return self.batch.content()

    def end_step(self) -> None:
        self.batch.end_step()

    def held(self) -> Iterable[Event]:
        return self.batch.all_events()

    def sight(self, event: Event) -> Sight:
        return ByList(self.batch.posted())


class Gate(BatchWindow, Gated):
    """Events are held back and enter together; what the release before brought in leaves."""

    departure = Removal.FIFO

    def push(self, delta: Delta, now: int) -> list[Delta]:
        for event in delta.removed:
            self.batch.discard(event)
        posts = []
        for event in delta.inserted:
            self.batch.admits(event, now)
            post = self.batch.insert(event, now)
            if post is not None:
                posts.append(post)
        return posts

    def discard(self, event: Event) -> bool:
        """The event leaves the forming batch; one already posted leaves with its generation."""
        self.batch.discard(event)
        return False

    def next_deadline(self) -> int | None:
        return self.batch.next_deadline()

    def advance(self, now: int) -> list[Delta]:
        post = self.batch.advance(now)
        return [] if post is None else [post]

    def variable_changed(self, now: int) -> list[Delta]:
        post = self.batch.changed(now)
        return [] if post is None else [post]

    def snapshot(self) -> Saved:
        return [self.batch.snapshot()]

    def restore(self, state: Saved, find: FindEvent) -> None:
        self.batch.restore(state[0], find)

    # --- in the loop ----------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter) -> None:
        if self.batch.trigger.surely_holds:
            source.line("trigger = operator.batch.trigger")
            source.line("held = operator.batch.held")

    def write_hold(self, source: SourceWriter) -> None:
        if self.batch.trigger.surely_holds:
            with source.block(f"if {self.batch.trigger.surely_holds}:"):
                source.line("held[x] = None")
                source.line("continue")
