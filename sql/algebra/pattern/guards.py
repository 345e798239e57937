"""Guards: `where timer:within`, `where timer:withinmax` and `while`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.base import Binding, Instance, Node, Parent, holds
from sql.algebra.pattern.timers import Length

if TYPE_CHECKING:
    from sql.algebra.pattern.machine import Machine
    from sql.algebra.pattern.snapshot import Packer, Unpacker


class WithinNode(Node):
    """`within`, and with `maximum` `withinmax`. `queued`: all instances have the same length."""

    def __init__(
        self,
        machine: Machine,
        place: int,
        operand: Node,
        length: Length,
        maximum: Callable[[Binding], int | None] | None,
        *,
        queued: bool,
    ) -> None:
        super().__init__(machine, place)
        self.operand = operand
        self.length = length
        self.maximum = maximum
        self.queue = place if queued else None

    def make(self, parent: Parent, binding: Binding) -> Within:
        return Within(self, parent, binding)

    def unpack(self, parent: Parent, state: Any, unpacker: Unpacker) -> Within:
        number, due, left, binding, child = state
        made = Within(self, parent, unpacker.binding(binding))
        made.number, made.due, made.left = number, due, left
        made.child = None if child is None else self.operand.unpack(made, child, unpacker)
        if due is not None:
            unpacker.timers.append((made, self.queue))
        return made


class Within(Instance):
    """Lets matches through until its time is over, or so many have passed; then it is false."""

    __slots__ = ("binding", "child", "due", "left", "node", "number", "parent")

    def __init__(self, node: WithinNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.child: Instance | None = None
        self.number = 0
        self.due: int | None = None
        self.left: int | None = None
        """How many matches may pass; None: any number."""

    def start(self) -> None:
        node = self.node
        machine = node.machine
        machine.number += 1
        self.number = machine.number
        length = machine.length(node.length, self.binding)
        self.left = None if node.maximum is None else machine.evaluate(node.maximum, self.binding)
        self.child = node.operand.make(self, self.binding)
        self.child.start()
        if self.child is not None and length is not None:
            self.due = max(length.add(machine.now, machine.zone), machine.now + 1)
            machine.timers.add(self, node.queue)

    def on_true(self, child: Instance, binding: Binding, *, over: bool) -> None:
        parent = self.parent
        if child is not self.child or parent is None:
            return
        if over:
            self.child = None
            self._cancel()
        if self.left is not None:
            if self.left <= 0:
                self._end()
                return
            self.left -= 1
        if over:
            self.parent = None
        parent.on_true(self, binding, over=over)

    def on_false(self, child: Instance, *, restartable: bool = True) -> None:
        if child is self.child:
            self.child = None
            self._end()

    def fire(self) -> None:
        self.node.machine.counts["partials_expired"] += 1
        self._end()

    def _end(self) -> None:
        parent = self.parent
        self.quit()
        if parent is not None:
            parent.on_false(self)

    def _cancel(self) -> None:
        if self.due is not None:
            self.due = None
            self.node.machine.timers.cancel()

    def quit(self) -> None:
        self.parent = None
        self._cancel()
        child, self.child = self.child, None
        if child is not None:
            child.quit()

    def discard(self, events: Set[int]) -> None:
        if self.parent is None:
            return
        if holds(self.binding, events):
            self._end()
        elif self.child is not None:
            self.child.discard(events)

    def pack(self, packer: Packer) -> Any:
        child = None if self.child is None else self.child.pack(packer)
        return [self.number, self.due, self.left, packer.binding(self.binding), child]

    def below(self) -> Iterable[Instance]:
        return () if self.child is None else (self.child,)


class WhileNode(Node):
    """`while (condition)`."""

    def __init__(
        self, machine: Machine, place: int, operand: Node, condition: Callable[..., bool | None]
    ) -> None:
        super().__init__(machine, place)
        self.operand = operand
        self.condition = condition

    def make(self, parent: Parent, binding: Binding) -> While:
        return While(self, parent, binding)

    def unpack(self, parent: Parent, state: Any, unpacker: Unpacker) -> While:
        binding, child = state
        made = While(self, parent, unpacker.binding(binding))
        made.child = None if child is None else self.operand.unpack(made, child, unpacker)
        return made


class While(Instance):
    """Lets matches through as long as a condition holds of them; FALSE ends it, NULL swallows the match."""

    __slots__ = ("binding", "child", "node", "parent")

    def __init__(self, node: WhileNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.child: Instance | None = None

    def start(self) -> None:
        self.child = self.node.operand.make(self, self.binding)
        self.child.start()

    def on_true(self, child: Instance, binding: Binding, *, over: bool) -> None:
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
            self._end()

    def on_false(self, child: Instance, *, restartable: bool = True) -> None:
        if child is self.child:
            self.child = None
            self._end()

    def _end(self) -> None:
        parent = self.parent
        self.quit()
        if parent is not None:
            parent.on_false(self)

    def quit(self) -> None:
        self.parent = None
        child, self.child = self.child, None
        if child is not None:
            child.quit()

    def discard(self, events: Set[int]) -> None:
        if self.parent is None:
            return
        if holds(self.binding, events):
            self._end()
        elif self.child is not None:
            self.child.discard(events)

    def pack(self, packer: Packer) -> Any:
        return [packer.binding(self.binding), None if self.child is None else self.child.pack(packer)]

    def below(self) -> Iterable[Instance]:
        return () if self.child is None else (self.child,)
