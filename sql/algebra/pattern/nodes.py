"""The nodes of a pattern, their instances, and the messages between instances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, Any, Protocol

from sql.types import Saved

if TYPE_CHECKING:
    from sql.algebra.pattern.machine import Machine
    from sql.algebra.pattern.snapshot import Packer, Unpacker

Binding = tuple[Any, ...]
"""The values of all tags in the order of the plan: an event's row, a list of rows under a repeat, or None."""


class Parent(Protocol):
    """The receiver of an instance's results."""

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        """A child has matched; `over`: it has ended with that."""

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        """A child has ended and can never match; not `restartable`: starting it again would be in vain."""


class PatternInstance(ABC):
    """A node that has been started. It belongs to a parent until it is over; `parent`
    is None from then on."""

    __slots__ = ()
    parent: Parent | None
    binding: Binding

    @abstractmethod
    def start(self) -> None:
        """Begin; called once, when the parent holds the instance. It may turn true or
        false before this returns."""

    @abstractmethod
    def quit(self) -> None:
        """End in silence, with everything below."""

    def fail(self) -> None:
        """End with false, with everything below."""
        parent = self.parent
        self.quit()
        if parent is not None:
            parent.on_false(self)

    def holds(self, events: Set[int]) -> bool:
        """True if it holds one of these events, given by identity, itself."""
        return holds(self.binding, events)

    def discard(self, events: Set[int]) -> None:
        """End, with false, all instances from here down that hold one of these events."""
        if self.parent is None:
            return
        if self.holds(events):
            self.fail()
        else:
            for child in list(self.below()):
                child.discard(events)

    @abstractmethod
    def pack(self, packer: Packer) -> Saved:
        """The state as plain data, with that of the instances below."""

    def below(self) -> Iterable[PatternInstance]:
        """The instances directly below."""
        return ()


class PatternPart(ABC):
    """One node of the tree: what all its instances have in common."""

    stays = False
    """True if a child of this kind goes on after a match of its own accord, so that `every`
    need not start it again."""

    def __init__(self, machine: Machine, place: int) -> None:
        self.machine = machine
        self.place = place
        """Its number in the tree, depth first."""

    @abstractmethod
    def make(self, parent: Parent, binding: Binding) -> PatternInstance:
        """An instance, not yet started."""

    @abstractmethod
    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> PatternInstance:
        """The instance whose `pack` gave this state, with its listeners and timers."""


class OneOperandNode(PatternPart):
    """A node whose instances run one operand."""

    def __init__(self, machine: Machine, place: int, operand: PatternPart) -> None:
        super().__init__(machine, place)
        self.operand = operand

    @abstractmethod
    def make(self, parent: Parent, binding: Binding) -> OneOperand: ...

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> OneOperand:
        binding, child = state
        made = self.make(parent, unpacker.binding(binding))
        made.unpack_child(child, unpacker)
        return made


class OneOperand(PatternInstance):
    """An instance of a node with one operand;
    `child` is None before the operand is started and after it is over."""

    __slots__ = ("binding", "child", "node", "parent")
    node: OneOperandNode

    def __init__(self, node: OneOperandNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.child: PatternInstance | None = None

    def begin(self) -> None:
        """Start the operand."""
        self.child = self.node.operand.make(self, self.binding)
        self.child.start()

    @abstractmethod
    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None: ...

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        if child is self.child:
            self.child = None
            self.fail()

    def quit(self) -> None:
        self.parent = None
        child, self.child = self.child, None
        if child is not None:
            child.quit()

    def below(self) -> Iterable[PatternInstance]:
        return () if self.child is None else (self.child,)

    def pack(self, packer: Packer) -> Saved:
        return [packer.binding(self.binding), self.pack_child(packer)]

    def pack_child(self, packer: Packer) -> Saved:
        """The state of the operand."""
        return None if self.child is None else self.child.pack(packer)

    def unpack_child(self, state: Saved, unpacker: Unpacker) -> None:
        """Restore what `pack_child` gave."""
        self.child = None if state is None else self.node.operand.unpack(self, state, unpacker)


def holds(binding: Binding, events: Set[int]) -> bool:
    """True if a binding holds one of these events, given by identity."""
    for value in binding:
        if value.__class__ is list:
            if any(id(row) in events for row in value):
                return True
        elif value is not None and id(value) in events:
            return True
    return False


def events_of(binding: Binding) -> Iterable[int]:
    """The identities of all events of a binding."""
    for value in binding:
        if value.__class__ is list:
            yield from map(id, value)
        elif value is not None:
            yield id(value)


def bound(binding: Binding, tag: int | None, row: object) -> Binding:
    """The binding with one tag more."""
    return binding if tag is None else (*binding[:tag], row, *binding[tag + 1 :])
