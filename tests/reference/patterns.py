"""Patterns by the book, for the engine to be compared with.

Listeners are one list in order of their start, each tested with each event. Timers are asked one by one.
Expressions are evaluated by walking them. What the nodes do is in `pattern_nodes`.
"""

from __future__ import annotations

from typing import Any

from sql.plan.pattern_plan import PatternPlan, StepPlan
from tests.reference.expressions import Row
from tests.reference.pattern_instance import Binding, Instance, events
from tests.reference.pattern_nodes import KINDS, Filter


class Twin:
    """A pattern that has been started. Matches are tuples of the tags' values, in order."""

    def __init__(self, plan: PatternPlan, now: int = 0) -> None:
        self.plan = plan
        self.now = now
        self.number = 0
        self.listeners: list[Filter] = []
        self.timed: list[Instance] = []
        self.matches: list[Binding] = []
        self.root: Instance | None = self.make(plan.root, self, (None,) * len(plan.tags))
        self.root.begin()
        self.matches.clear()  # nobody hears what the start makes true

    def make(self, step: StepPlan, parent: Any, binding: Binding) -> Instance:
        """An instance of a node, not yet begun."""
        if type(step) not in KINDS:
            raise NotImplementedError(f"the twin of patterns has no {type(step).__name__}")
        return KINDS[type(step)](self, step, parent, binding)

    def send(self, stream: str, row: Row, now: int) -> list[Binding]:
        """An event arrives; what is due has been done."""
        self.now = now
        found = [each for each in self.listeners if each.step.stream == stream and each.fits(row)]
        level = max((each.step.consume for each in found), default=0)
        for each in found:
            if each.step.consume == level:
                each.hear(row)
        return self._told()

    def advance(self, now: int) -> list[Binding]:
        """What is due by now happens now, in order of (due, number)."""
        self.now = now
        while due := [each for each in self.timed if each.alive and each.due is not None and each.due <= now]:
            first = min(due, key=lambda each: (each.due, each.number))
            first.due = None
            first.fire()
        return self._told()

    def due(self) -> int | None:
        """The earliest instant at which something is due."""
        return min((each.due for each in self.timed if each.alive and each.due is not None), default=None)

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        """A match of the whole."""
        self.matches.append(binding)

    def on_false(self, child: Instance, restartable: bool = True) -> None:
        """The whole has ended."""

    def _told(self) -> list[Binding]:
        self.listeners = [each for each in self.listeners if each.alive]
        self.timed = [each for each in self.timed if each.alive]
        matches, self.matches = self.matches, []
        if self.plan.discard and self.root is not None and self.root.alive:
            self.root.discard({event for match in matches for event in events(match)})
        if not self.plan.suppress:
            return matches
        kept: list[Binding] = []
        for match in matches:
            if not any(events(match) & events(other) for other in kept):
                kept.append(match)
        return kept
