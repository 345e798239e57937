"""What all nodes of a pattern by the book have in common: a parent that hears of them,
children, numbers and timers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sql.calendar.period import Period
from sql.plan.bound import Bound, Slot
from sql.plan.pattern_plan import LengthPlan, StepPlan
from tests.reference.expressions import Place, Row, evaluate

if TYPE_CHECKING:
    from tests.reference.patterns import Twin

Binding = tuple[Any, ...]
"""The values of the tags: an event, the list of those of a repeat, or None."""


def events(binding: Binding) -> set[int]:
    """The identities of the events of a binding."""
    flat = [row for value in binding for row in (value if isinstance(value, list) else [value])]
    return {id(row) for row in flat if row is not None}


class Instance:
    """A node that has been started."""

    def __init__(self, twin: Twin, step: Any, parent: Any, binding: Binding) -> None:
        self.twin, self.step, self.parent, self.binding = twin, step, parent, binding
        self.children: list[Instance] = []
        self.alive = True
        self.number = 0
        self.due: int | None = None

    def begin(self) -> None:
        """Started; the parent knows it."""
        raise NotImplementedError

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        """A child has matched."""
        raise NotImplementedError

    def on_false(self, child: Instance, restartable: bool = True) -> None:
        """A child can never match again: mostly, nor can this."""
        if self.alive and child in self.children:
            self.fail()

    def fire(self) -> None:
        """Its timer is due."""
        self.fail()

    def child(self, step: StepPlan, binding: Binding) -> Instance:
        """A new child, to be begun."""
        made = self.twin.make(step, self, binding)
        self.children.append(made)
        return made

    def quit(self) -> None:
        """End in silence."""
        self.alive = False
        for each in self.children:
            each.quit()
        self.children = []

    def tell(self, binding: Binding, over: bool) -> None:
        """Matched."""
        if over:
            self.quit()
        self.parent.on_true(self, binding, over)

    def fail(self, restartable: bool = True) -> None:
        """Ended without a match."""
        self.quit()
        self.parent.on_false(self, restartable)

    def held(self) -> set[int]:
        """The events it holds itself."""
        return events(self.binding)

    def discard(self, used: set[int]) -> None:
        """End what holds an event of a match."""
        if self.held() & used:
            self.fail()
            return
        for each in list(self.children):
            if each.alive:
                each.discard(used)

    def numbered(self) -> None:
        """Take the next number."""
        self.twin.number += 1
        self.number = self.twin.number

    def value(self, bound: Bound | None, binding: Binding | None = None) -> Any:
        """The value of a parameter."""
        return None if bound is None else evaluate(bound, self.place(binding))

    def place(self, binding: Binding | None = None, own: Row | None = None) -> Place:
        """Where expressions are evaluated: the tags, then the event that a filter tests."""

        def slot(node: Slot) -> Any:
            if node.kind != "event_time":
                raise NotImplementedError(f"the twin of patterns has no {node.kind}")
            return self.twin.now

        return Place((*(self.binding if binding is None else binding), own), slot)

    def length(self, plan: LengthPlan) -> Period | None:
        """A length of time; below nothing it is nothing."""
        parts = {unit: self.value(amount) for amount, unit in plan.parts}
        if None in parts.values():
            return None
        return Period.of({unit: max(0, amount) for unit, amount in parts.items()}, zero_allowed=True)
