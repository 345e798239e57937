"""`and`, `or` and `not`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import product

from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import ROWS_MAX
from sql.algebra.pattern.nodes import Parent, Several, SeveralNode, holds
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Saved

AllOfState = tuple[int, list[Saved], list[list[int]]]
"""The binding, the states of the parts, and the bindings that each has matched."""


class AllOfSearch(Several):
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


class AnyOfSearch(Several):
    """Parts of which one suffices; the first that is over ends the others."""

    __slots__ = ()

    def matched(self, place: int, parent: Parent, binding: Binding, *, over: bool) -> None:
        if over:
            self.quit()
        parent.on_true(self, binding, over=over)

    def failed(self) -> None:
        if all(other is None for other in self.children):
            self.fail()


class AbsentSearch(Several):
    """True from its start, until its operand has matched for good."""

    __slots__ = ()

    def start(self) -> None:
        super().start()
        if self.parent is not None:
            self.parent.on_true(self, self.binding, over=False)

    def matched(self, place: int, parent: Parent, binding: Binding, *, over: bool) -> None:
        if over:
            self.fail()

    def failed(self) -> None:
        """An operand that cannot match any more is absent for ever."""


class AllOfNode(SeveralNode):
    """`and`. `absent`: which parts are a `not`."""

    instance = AllOfSearch
    absent: Sequence[bool]


class AnyOfNode(SeveralNode):
    """`or`."""

    instance = AnyOfSearch


class AbsentNode(SeveralNode):
    """`not`, with one part."""

    instance = AbsentSearch
