"""The nodes of a pattern, their instances, and the messages between instances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Set
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import Machine
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Saved


class Parent(Protocol):
    """The receiver of an instance's results."""

    __slots__ = ()
    machine: Machine

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        """A child has matched; `over`: it has ended with that."""

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        """A child has ended and can never match; not `restartable`: starting it again would be in vain."""


class PatternPart(Struct, eq=False):
    """One node of the tree: what all its instances have in common, in every pattern that runs by one plan."""

    instance: ClassVar[type[PatternInstance]]
    stays = False
    """True if a child of this kind goes on after a match of its own accord, so that `every`
    need not start it again."""

    def make(self, parent: Parent, binding: Binding) -> PatternInstance:
        """An instance, not yet started."""
        return self.instance(self, parent, binding)

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> PatternInstance:
        """The instance whose `pack` gave this state, with its listeners and timers."""
        made = self.make(parent, ())
        made.unpack(state, unpacker)
        return made


class PatternInstance(ABC):
    """A node that has been started. It belongs to a parent until it is over; `parent`
    is None from then on."""

    __slots__ = ("binding", "machine", "node", "parent", "seq")
    node: Any

    def __init__(self, node: PatternPart, parent: Parent, binding: Binding) -> None:
        self.machine = parent.machine
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.seq = 0
        """The number of its start, of what listens or waits for an instant; 0 before."""

    @abstractmethod
    def start(self) -> None:
        """Begin; called once, when the parent holds the instance. It may turn true or
        false before this returns."""

    def quit(self) -> None:
        """End in silence, with everything below."""
        self.parent = None
        for child in self.below():
            child.quit()

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

    def below(self) -> Iterable[PatternInstance]:
        """The instances directly below."""
        return ()

    @abstractmethod
    def pack(self, packer: Packer) -> Saved:
        """The state as plain data, with that of the instances below."""

    @abstractmethod
    def unpack(self, state: Saved, unpacker: Unpacker) -> None:
        """Put the state that `pack` gave into an instance just made."""


class OneOperandNode(PatternPart):
    """A node whose instances run one operand."""

    operand: PatternPart


class OneOperand(PatternInstance, Parent):
    """An instance of a node with one operand;
    `child` is None before the operand is started and after it is over."""

    __slots__ = ("child",)

    def __init__(self, node: OneOperandNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.child: PatternInstance | None = None

    def start(self) -> None:
        """Start the operand."""
        child = self.child = self.node.operand.make(self, self.binding)
        child.start()

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        if child is self.child:
            self.child = None
            self.fail()

    def below(self) -> Iterable[PatternInstance]:
        return () if self.child is None else (self.child,)

    def pack(self, packer: Packer) -> Saved:
        return packer.binding(self.binding), packed(self.child, packer)

    def unpack(self, state: Saved, unpacker: Unpacker) -> None:
        binding, child = state
        self.binding = unpacker.binding(binding)
        self.child = unpacked(self.node.operand, self, child, unpacker)


def packed(instance: PatternInstance | None, packer: Packer) -> Saved:
    """The state of an instance that may be over: None."""
    return None if instance is None else instance.pack(packer)


def unpacked(node: PatternPart, parent: Parent, state: Saved, unpacker: Unpacker) -> PatternInstance | None:
    """The instance that was packed."""
    return None if state is None else node.unpack(parent, state, unpacker)


def holds(binding: Binding, events: Set[int]) -> bool:
    """True if a binding holds one of these events, given by identity."""
    return not events.isdisjoint(events_of(binding))


def events_of(binding: Binding) -> Iterable[int]:
    """The identities of all events of a binding."""
    for value in binding:
        if value.__class__ is list:
            yield from map(id, value)
        elif value is not None:
            yield id(value)
