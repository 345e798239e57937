"""`and`, `or` and `not`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import product

from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import ROWS_MAX
from sql.algebra.pattern.nodes import (
    OneOperand,
    OneOperandNode,
    Parent,
    PatternInstance,
    PatternPart,
    holds,
    packed,
    unpacked,
)
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Saved


class _Several(PatternInstance, Parent):
    """Parts that began together; None where one is over."""

    __slots__ = ("children",)

    def __init__(self, node: _SeveralNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.children: list[PatternInstance | None] = []

    def start(self) -> None:
        self.children = [part.make(self, self.binding) for part in self.node.parts]
        for child in list(self.children):
            if self.parent is None:
                return  # an earlier part has decided the whole
            if child is not None:
                child.start()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        place, parent = self._place(child), self.parent
        if place is None or parent is None:
            return
        if over:
            self.children[place] = None
        self.matched(place, parent, binding, over=over)

    def matched(self, place: int, parent: Parent, binding: Binding, *, over: bool) -> None:
        """The part at a place has matched; `over`: for the last time."""

    def _place(self, child: PatternInstance) -> int | None:
        return self.children.index(child) if child in self.children else None

    def below(self) -> Iterable[PatternInstance]:
        return (child for child in self.children if child is not None)

    def pack(self, packer: Packer) -> Saved:
        return packer.binding(self.binding), [packed(child, packer) for child in self.children]

    def unpack(self, state: Saved, unpacker: Unpacker) -> None:
        binding, children, *_ = state
        self.binding = unpacker.binding(binding)
        parts = zip(self.node.parts, children, strict=True)
        self.children = [unpacked(part, self, child, unpacker) for part, child in parts]


AllOfState = tuple[int, list[Saved], list[list[int]]]
"""The binding, the states of the parts, and the bindings that each has matched."""


class AllOfSearch(_Several):
    """Parts that must all match, in any order. Each match makes a row with all that
    the others have matched."""

    __slots__ = ("remembered",)

    def __init__(self, node: AllOfNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.remembered: list[list[Binding]] = [[] for _ in node.parts]

    def matched(self, place: int, parent: Parent, binding: Binding, *, over: bool) -> None:
        others = [*self.remembered[:place], *self.remembered[place + 1 :]]
        if self.machine.keeps_matched or self._may_match(place):
            self._remember(place, binding)
        if not all(others):
            return
        rows = [_merged(binding, found) for found in product(*others)]
        absent = self.node.absent
        ended = all(other is None or absent[i] for i, other in enumerate(self.children))
        if ended:
            self.quit()
        for row in rows[:ROWS_MAX]:
            parent.on_true(self, row, over=ended)

    def _may_match(self, place: int) -> bool:
        """True if a part beside one can still turn true; a `not` does so once, as it starts."""
        for i, child in enumerate(self.children):
            if child is not None and i != place and not (self.node.absent[i] and self.remembered[i]):
                return True
        return False

    def _remember(self, place: int, binding: Binding) -> None:
        machine = self.machine
        if len(self.remembered[place]) < machine.options.max_pattern_rows:
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

    def pack(self, packer: Packer) -> AllOfState:
        remembered = [list(map(packer.binding, items)) for items in self.remembered]
        return *super().pack(packer), remembered

    def unpack(self, state: AllOfState, unpacker: Unpacker) -> None:
        super().unpack(state, unpacker)
        self.remembered = [list(map(unpacker.binding, items)) for items in state[2]]


def _merged(binding: Binding, others: Iterable[Binding]) -> Binding:
    """The tags of several bindings that began from the same one; of two values of a
    tag the last one counts."""
    merged = list(binding)
    for other in others:
        for tag, value in enumerate(other):
            if value is not None:
                merged[tag] = value
    return tuple(merged)


class AnyOfSearch(_Several):
    """Parts of which one suffices; the first that is over ends the others."""

    __slots__ = ()

    def matched(self, place: int, parent: Parent, binding: Binding, *, over: bool) -> None:
        if over:
            self.quit()
        parent.on_true(self, binding, over=over)

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        place = self._place(child)
        if place is None:
            return
        self.children[place] = None
        if all(other is None for other in self.children):
            self.fail()


class AbsentSearch(OneOperand):
    """True from its start, until its operand has matched for good."""

    __slots__ = ()

    def start(self) -> None:
        super().start()
        if self.parent is not None:
            self.parent.on_true(self, self.binding, over=False)

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        parent = self.parent
        if over and parent is not None:
            self.child = self.parent = None
            parent.on_false(self)

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        self.child = None  # an operand that cannot match any more is absent for ever


class AbsentNode(OneOperandNode):
    """`not`."""

    instance = AbsentSearch


class _SeveralNode(PatternPart):
    """A node with parts that all begin at once."""

    parts: Sequence[PatternPart]


class AllOfNode(_SeveralNode):
    """`and`. `absent`: which parts are a `not`."""

    instance = AllOfSearch
    absent: Sequence[bool]


class AnyOfNode(_SeveralNode):
    """`or`."""

    instance = AnyOfSearch
