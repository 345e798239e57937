"""expr_batch: Gate when the predicate becomes true."""

from __future__ import annotations

from collections import OrderedDict

from sql.algebra.event import Event
from sql.algebra.gate.batch import Decision, Trigger
from sql.algebra.retain.predicate import Builtins, Predicate


class WhenTrue(Trigger):
    """expr_batch: releases when the predicate is true for the arriving event, with it or (include false)
    without it."""

    def __init__(self, predicate: Predicate, include: bool) -> None:
        self.predicate = predicate
        self.include = include

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        self.predicate.add(event)
        oldest = next(iter(held), event)
        if not self.predicate.holds(event, Builtins(len(held) + 1, 0, oldest, event)):
            return "hold"
        if self.include:
            return "after"
        return "before" if held else "hold"

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        self.predicate.clear()
        for event in held:
            self.predicate.add(event)

    def resumed(self, held: OrderedDict[Event, None]) -> None:
        for event in held:
            self.predicate.add(event)

    def discarded(self, event: Event) -> None:
        self.predicate.remove(event)

    def changed(self, held: OrderedDict[Event, None], now: int) -> bool:
        ends = list(held)[:1] + list(held)[-1:]
        builtins = Builtins(len(held), 0, ends[0] if ends else None, ends[-1] if ends else None)
        return bool(held) and self.predicate.holds(None, builtins)
