"""Guards: `where timer:within`, `where timer:withinmax` and `while`."""

from __future__ import annotations

from collections.abc import Callable

from sql.algebra.pattern.machine import Binding, Length, Machine
from sql.algebra.pattern.nodes import (
    OneOperand,
    OneOperandNode,
    Parent,
    PatternInstance,
    PatternPart,
)
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Saved

WithinState = tuple[int, int | None, int | None, int, Saved]
"""The number of the start, the end, the matches that are left, the binding, and the state of the operand."""


class WithinSearch(OneOperand):
    """Lets matches through until its time is over, or so many have passed; then it is false."""

    __slots__ = ("due", "left")

    def __init__(self, node: WithinNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.due: int | None = None
        self.left: int | None = None
        """The number of matches that may pass; None: any number."""

    def start(self) -> None:
        node = self.node
        machine = node.machine
        self.number = machine.number = machine.number + 1
        length = machine.length(node.length, self.binding)
        self.left = None if node.maximum is None else machine.evaluate(node.maximum, self.binding)
        super().start()
        if self.child is not None and length is not None:
            self.due = max(length.add(machine.now, machine.zone), machine.now + 1)
            machine.timers.add(self, node.queue)

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        parent = self.parent
        if child is not self.child or parent is None:
            return
        if over:
            self.child = None
            self._cancel()
        if self.left is not None:
            if self.left <= 0:
                self.fail()
                return
            self.left -= 1
        if over:
            self.parent = None
        parent.on_true(self, binding, over=over)

    def fire(self) -> None:
        self.node.machine.counts["partials_expired"] += 1
        self.fail()

    def _cancel(self) -> None:
        if self.due is not None:
            self.due = None
            self.node.machine.timers.cancel()

    def quit(self) -> None:
        self._cancel()
        super().quit()

    def pack(self, packer: Packer) -> WithinState:
        return self.number, self.due, self.left, *super().pack(packer)

    def unpack(self, state: WithinState, unpacker: Unpacker) -> None:
        self.number, self.due, self.left, *operand = state
        super().unpack(operand, unpacker)
        if self.due is not None:
            unpacker.timers.append((self, self.node.queue))


class WithinNode(OneOperandNode):
    """`within`, and with `maximum` `withinmax`. `queued`: all instances have the same length."""

    instance = WithinSearch

    def __init__(
        self,
        machine: Machine,
        operand: PatternPart,
        length: Length,
        maximum: Callable[[Binding], int | None] | None,
        *,
        queued: bool,
    ) -> None:
        super().__init__(machine, operand)
        self.length = length
        self.maximum = maximum
        self.queue = self if queued else None


class WhileSearch(OneOperand):
    """Lets matches through as long as a condition holds of them; FALSE ends it, NULL swallows the match."""

    __slots__ = ()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        parent = self.parent
        if child is not self.child or parent is None:
            return
        if over:
            self.child = None
        holds_now = self.node.machine.evaluate(lambda found: self.node.condition(None, found), binding)
        if holds_now:
            if over:
                self.parent = None
            parent.on_true(self, binding, over=over)
        elif holds_now is not None:
            self.fail()


class WhileNode(OneOperandNode):
    """`while (condition)`."""

    instance = WhileSearch

    def __init__(self, machine: Machine, operand: PatternPart, condition: Callable[..., bool | None]) -> None:
        super().__init__(machine, operand)
        self.condition = condition
