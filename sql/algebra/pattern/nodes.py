"""The nodes of a pattern, their instances, and the messages between instances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence, Set
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

    def is_vain(self, binding: Binding) -> bool:
        """True if an instance that starts from here can only wait, for ever: no event fits it."""
        return False

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


class SeveralNode(PatternPart):
    """A node with parts, one or more, that all begin at once."""

    parts: Sequence[PatternPart]


class Several(PatternInstance, Parent):
    """An instance of a node with parts; `children` has None where one is over."""

    __slots__ = ("children",)

    def __init__(self, node: SeveralNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.children: list[PatternInstance | None] = []

    def start(self) -> None:
        """Start the parts, from left to right, until one has decided the whole."""
        begun = [part.make(self, self.binding) for part in self.node.parts]
        self.children = [*begun]
        for child in begun:
            if self.parent is None:
                return
            child.start()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        parent, children = self.parent, self.children
        if parent is None or child not in children:
            return
        place = children.index(child)
        if over:
            children[place] = None
        self.matched(place, parent, binding, over=over)

    @abstractmethod
    def matched(self, place: int, parent: Parent, binding: Binding, *, over: bool) -> None:
        """The part at a place has matched; `over`: for the last time."""

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        if child in self.children:
            self.children[self.children.index(child)] = None
            self.failed()

    def failed(self) -> None:
        """A part can never match; so the whole cannot."""
        self.fail()

    def below(self) -> Iterable[PatternInstance]:
        return (child for child in self.children if child is not None)

    def pack(self, packer: Packer) -> Saved:
        """The binding, and the states of the parts; of one its state itself."""
        found = [packed(child, packer) for child in self.children]
        return packer.binding(self.binding), found if len(found) > 1 else found[0]

    def unpack(self, state: Saved, unpacker: Unpacker) -> None:
        binding, found, *_ = state
        parts = self.node.parts
        self.binding = unpacker.binding(binding)
        states = found if len(parts) > 1 else [found]
        self.children = [
            unpacked(part, self, each, unpacker) for part, each in zip(parts, states, strict=True)
        ]


def packed(instance: PatternInstance | None, packer: Packer) -> Saved:
    """The state of an instance that may be over: None."""
    return None if instance is None else instance.pack(packer)


def unpacked(node: PatternPart, parent: Parent, state: Saved, unpacker: Unpacker) -> PatternInstance | None:
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
