"""Filters: an event of a stream that fits a condition."""

from __future__ import annotations

from sql.algebra.pattern.listening import Binding, FilterTests
from sql.algebra.pattern.nodes import PatternInstance, PatternPart
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.plan.pattern_plan import FilterPlan


class Filter(PatternInstance):
    """A filter that listens."""

    __slots__ = ("begun",)
    begun: int
    """The time of its start in ms."""

    def start(self) -> None:
        machine = self.machine
        self.seq = machine.seq = machine.seq + 1
        self.begun = machine.now
        machine.listening[self.node].add(self)

    @property
    def consume(self) -> int:
        level: int = self.node.step.consume
        return level

    def take(self, row: object) -> None:
        parent, node = self.parent, self.node
        if parent is None:
            return  # an earlier listener of the same event has ended this one
        tag, binding = node.step.tag, self.binding
        if tag is not None:
            binding = (*binding[:tag], row, *binding[tag + 1 :])
        if node.stays:
            parent.on_true(self, binding, over=False)
        else:
            self.machine.listening[node].remove(self)
            self.parent = None
            parent.on_true(self, binding, over=True)

    def quit(self) -> None:
        if self.parent is not None and self.seq:  # not where its parent ends before it has been started
            self.machine.listening[self.node].remove(self)
        self.parent = None

    def pack(self, packer: Packer) -> tuple[int, int, int]:
        return self.seq, packer.binding(self.binding), self.begun

    def unpack(self, state: tuple[int, int, int], unpacker: Unpacker) -> None:
        self.seq, binding, self.begun = state
        self.binding = unpacker.binding(binding)
        unpacker.listeners.append((self.seq, lambda: self.machine.listening[self.node].add(self)))


class FilterNode(PatternPart):
    """A filter. `stays`: under `every` and repeats it goes on listening after a match.
    `tests`: the parts of its condition."""

    instance = Filter
    step: FilterPlan
    stays: bool
    tests: FilterTests

    def is_vain(self, binding: Binding) -> bool:
        """True where it compares its event with a tag that is NULL."""
        of_binding = self.tests.of_binding
        return of_binding is not None and of_binding(None, binding) is None
