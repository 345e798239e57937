"""Windows that a loop can write: what leaves is known as soon as an event has entered.

In the text `window` is the container, `x` the event that enters, `y` one that leaves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from sql.algebra.event import Delta, Event
from sql.algebra.operator import Operator
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter

WriteLeaving = Callable[[], None]
"""Writes the statements for the event `y`, which leaves."""


class Inline(Operator):
    """An operator that lets events in one at a time. Unless it has statements of its own, the loop calls `enter`."""

    has_timers = False
    leaves_on_arrival = True
    """Whether an event may leave in the step in which another enters."""

    needs_event = True
    """Whether the event must exist before it is known whether it enters."""

    is_queue = False
    """Whether `window` in the text is a queue in order of arrival."""

    @abstractmethod
    def enter(self, event: Event, now: int) -> Sequence[Event] | None:
        """The event enters; what leaves because of it, perhaps itself. None: it is refused."""

    def discard(self, event: Event) -> bool:
        """The event leaves for another reason; whether it was held."""
        return False

    def push(self, delta: Delta, now: int) -> list[Delta]:
        removed = [event for event in delta.removed if self.discard(event)]
        inserted = []
        for event in delta.inserted:
            left = self.enter(event, now)
            if left is not None:
                inserted.append(event)
                removed += left
        return [Delta(inserted, removed)] if inserted or removed else []

    # --- in the loop --------------------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter, place: str) -> None:
        """Before the loop: what the statements use; `place` is the text of the window."""
        source.line(f"enter = {place}.enter")

    def write_prepare(self, loop: LoopWriter) -> None:
        """What may fail, before anything else changes; `continue` where the event is refused."""
        loop.line("left = enter(x, now)")
        with loop.source.block("if left is None:"):
            loop.line("continue")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        """The event enters; whatever leaves because of it."""
        with source.block("for y in left:"):
            leave()
