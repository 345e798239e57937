"""The predicates of expression windows, and expr: Retain while the predicate holds for the oldest event.

A predicate reads the built-in properties of epl.md 2.4 and the aggregates of the content, kept
incrementally.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sql.aggregates.base import Accumulator
from sql.algebra.accumulators import SKIP
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy
from sql.algebra.retain.queues import Queue
from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.errors import DataError
from sql.plan.bound import Bound, Const, Op, Slot
from sql.plan.walk import variables_in

NONE: list[Any] = []

BUILTIN_CODES: dict[tuple[str, Any], Code] = {
    ("builtin", "current_count"): Code("len(window)", False, False, NUMBER),
    ("builtin", "expired_count"): Code("len(left)", False, False, NUMBER),
    ("builtin", "oldest_timestamp"): Code("window[0].time_ms", False, False, NUMBER),
    ("builtin", "newest_timestamp"): Code("x.time_ms", False, False, NUMBER),
}
"""The built-in properties that a predicate reads in the loop."""


@dataclass(slots=True)
class Builtins:
    """The properties an expression window offers to its predicate."""

    current_count: int
    expired_count: int
    oldest: Event | None
    newest: Event | None
    view_reference: object
    """The window, which a function can tell from others."""

    @property
    def oldest_event(self) -> Any:
        return None if self.oldest is None else self.oldest.row

    @property
    def newest_event(self) -> Any:
        return None if self.newest is None else self.newest.row

    @property
    def oldest_timestamp(self) -> int | None:
        return None if self.oldest is None else self.oldest.time_ms

    @property
    def newest_timestamp(self) -> int | None:
        return None if self.newest is None else self.newest.time_ms


class Predicate:
    """A compiled predicate with the aggregates inside it.

    node        the bound expression
    test        the same as a function: (event, aggregate values, builtins) -> TRUE, FALSE or NULL
    test_alone  the same where no event arrives: its columns are NULL
    arguments   one function event -> value per aggregate; None where a FILTER keeps the event out
    """

    def __init__(
        self,
        node: Bound,
        test: Callable[[Event, list[Any], Builtins], Any],
        test_alone: Callable[[Event | None, list[Any], Builtins], Any],
        arguments: list[Callable[[Event], Any]],
        fresh: Callable[[], list[Accumulator]],
    ) -> None:
        self.node = node
        self.variables = variables_in(node)
        self.test = test
        self.test_alone = test_alone
        self.arguments = arguments
        self.fresh = fresh
        self.accumulators = fresh()

    def check(self, event: Event) -> None:
        """Raise what `add` would raise of the event."""
        try:
            for accumulator, value in self._given(event):
                accumulator.check(value)
        except DataError as error:
            raise error.at(self.node.span) from error

    def add(self, event: Event) -> None:
        """An event that `check` has let through counts from now on."""
        for accumulator, value in self._given(event):
            accumulator.add(value, event)

    def remove(self, event: Event) -> None:
        for accumulator, value in self._given(event):
            accumulator.remove(value, event)

    def _given(self, event: Event) -> list[tuple[Accumulator, Any]]:
        """The accumulators in which an event counts, each with what it is given."""
        return [
            (accumulator, value)
            for accumulator, argument in zip(self.accumulators, self.arguments, strict=True)
            if (value := argument(event)) is not SKIP
        ]

    def clear(self) -> None:
        self.accumulators = self.fresh()

    def values(self) -> list[Any]:
        return [accumulator.result() for accumulator in self.accumulators]

    @property
    def fits_loop(self) -> bool:
        """True if it reads nothing but counts, instants and variables,
        so that the loop may have it in its text."""
        slots = [node for node in self.node.walk() if isinstance(node, Slot)]
        is_plain = all(isinstance(node, Const | Op | Slot) for node in self.node.walk())
        return is_plain and all(
            slot.kind == "variable" or (slot.kind, slot.key) in BUILTIN_CODES for slot in slots
        )

    def holds(self, event: Event, builtins: Builtins) -> bool:
        return self.test(event, self.values(), builtins) is True

    def holds_alone(self, builtins: Builtins) -> bool:
        """True if it holds while no event arrives."""
        return self.test_alone(None, self.values(), builtins) is True


class WhileTrue(Queue):
    """expr: the oldest events leave as long as the predicate is not true for the oldest; an arrival may expel
    itself."""

    has_timers = True  # a variable that changes expels events
    needs_event = True
    is_queue = False
    write_enter = Policy.write_enter

    def __init__(self, predicate: Predicate) -> None:
        super().__init__()
        self.predicate = predicate
        self._seen = Builtins(0, 0, None, None, self)

    def write_load(self, source: SourceWriter, place: str) -> None:
        if self.predicate.fits_loop:
            source.line(f"window = {place}.events")
        else:
            Policy.write_load(self, source, place)

    def write_prepare(self, loop: LoopWriter) -> None:
        if not self.predicate.fits_loop:
            Policy.write_prepare(self, loop)
            return
        loop.line("window.append(x)")
        loop.line("left = []")
        node = self.predicate.node
        with loop.source.block(f"while window and {loop.untrue(node)}:", node.span):
            loop.line("left.append(window.popleft())")

    @property
    def refuses(self) -> bool:
        return not self.predicate.fits_loop

    def admits(self, event: Event, now: int) -> bool:
        """True, unless the predicate raises for the event as the oldest one: such an event must not enter,
        for the window would ask about it with each one that comes."""
        seen, predicate, values = self._seen, self.predicate, NONE
        if predicate.arguments:
            predicate.check(event)
            values = predicate.values()
        seen.current_count, seen.expired_count = len(self.events) + 1, 0
        seen.oldest = seen.newest = event
        predicate.test(event, values, seen)
        return True

    def insert(self, event: Event, now: int) -> list[Event]:
        if self.predicate.arguments:
            self.predicate.add(event)
        self.events.append(event)
        return self.expel()

    def depends_on(self, variable: str) -> bool:
        return variable in self.predicate.variables

    def expel(self) -> list[Event]:
        """The events that the predicate no longer keeps, also after one of its variables has changed. One
        that it cannot judge as the oldest leaves, as with NULL."""
        events, seen, predicate = self.events, self._seen, self.predicate
        test, values = predicate.test, predicate.values if predicate.arguments else None
        out: list[Event] = []
        seen.newest = events[-1] if events else None
        seen.expired_count = 0
        while events:
            seen.current_count = len(events)
            seen.oldest = oldest = events[0]
            try:
                is_kept = test(oldest, values() if values else NONE, seen) is True
            except DATA_ERRORS:
                is_kept = False
            if is_kept:
                break
            events.popleft()
            out.append(oldest)
            seen.expired_count += 1
            if values:
                self._forget(oldest)
        return out

    def _forget(self, event: Event) -> None:
        if self.events:
            self.predicate.remove(event)
        else:
            self.predicate.clear()

    def discard(self, event: Event) -> bool:
        held = super().discard(event)
        if held:
            self._forget(event)
        return held

    def restore(self, state: list[int], find: FindEvent) -> None:
        super().restore(state, find)
        for event in self.events:
            self.predicate.add(event)
