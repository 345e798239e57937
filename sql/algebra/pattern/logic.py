"""`and`, `or` and `not`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence, Set
from itertools import product
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.nodes import (
    Binding,
    OneOperand,
    OneOperandNode,
    Parent,
    PatternInstance,
    PatternPart,
    holds,
)
from sql.types import Saved

if TYPE_CHECKING:
    from sql.algebra.pattern.machine import Machine
    from sql.algebra.pattern.snapshot import Packer, Unpacker


class _SeveralNode(PatternPart):
    """A node with parts that all begin at once."""

    def __init__(self, machine: Machine, place: int, parts: Sequence[PatternPart]) -> None:
        super().__init__(machine, place)
        self.parts = parts


class _Several(PatternInstance):
    """Parts that began together; None where one is over."""

    __slots__ = ("binding", "children", "node", "parent")
    node: _SeveralNode

    def __init__(self, node: _SeveralNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.children: list[PatternInstance | None] = []

    def start(self) -> None:
        self.children = [part.make(self, self.binding) for part in self.node.parts]
        for child in list(self.children):
            if self.parent is None:
                return  # an earlier part has decided the whole
            if child is not None:
                child.start()

    @abstractmethod
    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None: ...

    @abstractmethod
    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None: ...

    def _place(self, child: PatternInstance) -> int | None:
        return next((i for i, other in enumerate(self.children) if other is child), None)

    def quit(self) -> None:
        self.parent = None
        children, self.children = self.children, []
        for child in children:
            if child is not None:
                child.quit()

    def below(self) -> Iterable[PatternInstance]:
        return (child for child in self.children if child is not None)

    def _pack_children(self, packer: Packer) -> list[Any]:
        return [None if child is None else child.pack(packer) for child in self.children]

    def _unpack_children(self, states: list[Any], unpacker: Unpacker) -> None:
        self.children = [
            None if state is None else part.unpack(self, state, unpacker)
            for part, state in zip(self.node.parts, states, strict=True)
        ]


class AllOfNode(_SeveralNode):
    """`and`."""

    def __init__(self, machine: Machine, place: int, parts: Sequence[PatternPart]) -> None:
        super().__init__(machine, place, parts)
        self.absent = [isinstance(part, AbsentNode) for part in parts]

    def make(self, parent: Parent, binding: Binding) -> AllOfSearch:
        return AllOfSearch(self, parent, binding)

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> AllOfSearch:
        binding, children, remembered = state
        made = AllOfSearch(self, parent, unpacker.binding(binding))
        made.remembered = [list(map(unpacker.binding, items)) for items in remembered]
        made._unpack_children(children, unpacker)
        return made


class AllOfSearch(_Several):
    """Parts that must all match, in any order. Each match makes a row with all that
    the others have matched."""

    __slots__ = ("remembered",)
    node: AllOfNode

    def __init__(self, node: AllOfNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.remembered: list[list[Binding]] = [[] for _ in node.parts]

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        place = self._place(child)
        parent = self.parent
        if place is None or parent is None:
            return
        if over:
            self.children[place] = None
        keeps = self.node.machine.keeps_matched
        if keeps or any(i != place and self._may_match(i) for i in range(len(self.children))):
            self._remember(place, binding)
        others = [items for i, items in enumerate(self.remembered) if i != place]
        if not all(others):
            return
        rows = [_merged(binding, found) for found in product(*others)]
        absent = self.node.absent
        ended = all(other is None or absent[i] for i, other in enumerate(self.children))
        if ended:
            self.quit()
        for row in rows[: self.node.machine.bounds.rows]:
            parent.on_true(self, row, over=ended)

    def _may_match(self, place: int) -> bool:
        """True if a part can still turn true; a `not` does so once, as it starts."""
        return self.children[place] is not None and not (self.node.absent[place] and self.remembered[place])

    def _remember(self, place: int, binding: Binding) -> None:
        machine = self.node.machine
        if len(self.remembered[place]) < machine.bounds.remembered:
            self.remembered[place].append(binding)
        else:
            machine.counts["remembered_dropped"] += 1

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        if self._place(child) is not None:
            self.fail()

    def holds(self, events: Set[int]) -> bool:
        return super().holds(events) or any(
            holds(binding, events) for items in self.remembered for binding in items
        )

    def pack(self, packer: Packer) -> Saved:
        remembered = [list(map(packer.binding, items)) for items in self.remembered]
        return [packer.binding(self.binding), self._pack_children(packer), remembered]


def _merged(binding: Binding, others: Iterable[Binding]) -> Binding:
    """The tags of several bindings that began from the same one; of two values of a
    tag the last one counts."""
    merged = list(binding)
    for other in others:
        for tag, value in enumerate(other):
            if value is not None:
                merged[tag] = value
    return tuple(merged)


class AnyOfNode(_SeveralNode):
    """`or`."""

    def make(self, parent: Parent, binding: Binding) -> AnyOfSearch:
        return AnyOfSearch(self, parent, binding)

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> AnyOfSearch:
        binding, children = state
        made = AnyOfSearch(self, parent, unpacker.binding(binding))
        made._unpack_children(children, unpacker)
        return made


class AnyOfSearch(_Several):
    """Parts of which one suffices; the first that is over ends the others."""

    __slots__ = ()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        place = self._place(child)
        parent = self.parent
        if place is None or parent is None:
            return
        if over:
            self.children[place] = None
            self.quit()
        parent.on_true(self, binding, over=over)

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        place = self._place(child)
        if place is None:
            return
        self.children[place] = None
        if all(other is None for other in self.children):
            self.fail()

    def pack(self, packer: Packer) -> Saved:
        return [packer.binding(self.binding), self._pack_children(packer)]


class AbsentNode(OneOperandNode):
    """`not`."""

    def make(self, parent: Parent, binding: Binding) -> AbsentSearch:
        return AbsentSearch(self, parent, binding)


class AbsentSearch(OneOperand):
    """True from its start, until its operand has matched for good."""

    __slots__ = ()

    def start(self) -> None:
        self.begin()
        if self.parent is not None:
            self.parent.on_true(self, self.binding, over=False)

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        parent = self.parent
        if over and parent is not None:
            self.child = self.parent = None
            parent.on_false(self)

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        self.child = None  # an operand that cannot match any more is absent for ever
