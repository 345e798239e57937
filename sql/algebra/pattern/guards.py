"""Guards: `where timer:within`, `where timer:withinmax` and `while`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import Length
from sql.algebra.pattern.nodes import Parent, Several, SeveralNode
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Saved

WithinState = tuple[int, int | None, int | None, int, Saved]
"""The number of the start, the end, the matches that are left, the binding, and the state of the operand."""


class GuardSearch(Several):
    """Lets the matches of its operand through until one ends it; then it is false."""

    __slots__ = ()

    @abstractmethod
    def allows(self, binding: Binding) -> bool | None:
        """True if a match passes, false if it ends the guard, None if it is swallowed."""

    def matched(self, place: int, parent: Parent, binding: Binding, *, over: bool) -> None:
        allowed = self.allows(binding)
        if allowed:
            if over:
                self.quit()
            parent.on_true(self, binding, over=over)
        elif allowed is not None:
            self.fail()


class WithinSearch(GuardSearch):
    """Lets matches through until its time is over, or so many have passed."""

    __slots__ = ("due_ms", "left")

    def __init__(self, node: WithinNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.due_ms: int | None = None
        self.left: int | None = None
        """The number of matches that may pass; None: any number."""

    def start(self) -> None:
        node, machine = self.node, self.machine
        self.seq = machine.seq = machine.seq + 1
        length = machine.length(node.length, self.binding)
        self.left = None if node.maximum is None else machine.evaluate(node.maximum, self.binding)
        super().start()
        if self.parent is not None and length is not None:
            machine.timers.move(self, max(length.add(machine.now, machine.zone), machine.now + 1), self.seq)

    def allows(self, binding: Binding) -> bool:
        if self.left is None:
            return True
        self.left -= 1
        return self.left >= 0

    def fire(self) -> None:
        self.machine.counts["partials_expired"] += 1
        self.fail()

    def quit(self) -> None:
        self.machine.timers.move(self, None)
        super().quit()

    def pack(self, packer: Packer) -> WithinState:
        return self.seq, self.due_ms, self.left, *super().pack(packer)

    def unpack(self, state: WithinState, unpacker: Unpacker) -> None:
        self.seq, due, self.left, *operand = state
        super().unpack(operand, unpacker)
        if due is not None:
            unpacker.timers.append((self, due))


class WithinNode(SeveralNode):
    """`within`, and with `maximum` `withinmax`."""

    instance = WithinSearch
    length: Length
    maximum: Callable[[Binding], int | None] | None


class WhileSearch(GuardSearch):
    """Lets matches through as long as a condition holds of them; NULL swallows the match."""

    __slots__ = ()

    def allows(self, binding: Binding) -> bool | None:
        return self.machine.evaluate(self.node.condition, binding)


class WhileNode(SeveralNode):
    """`while (condition)`."""

    instance = WhileSearch
    condition: Callable[[Binding], bool | None]
