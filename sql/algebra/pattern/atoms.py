"""Filters: an event of a stream that fits a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.listening import Listening
from sql.algebra.pattern.nodes import Binding, Parent, PatternInstance, PatternPart
from sql.types import Saved

if TYPE_CHECKING:
    from sql.algebra.pattern.machine import Machine
    from sql.algebra.pattern.snapshot import Packer, Unpacker


class FilterNode(PatternPart):
    """A filter. `stays`: under `every` and repeats it goes on listening after a match."""

    def __init__(
        self,
        machine: Machine,
        place: int,
        *,
        stream: str,
        tag: int | None,
        consume: int,
        stays: bool,
        own: Callable[[Any], bool] | None,
        listening: Listening,
    ) -> None:
        super().__init__(machine, place)
        self.stream = stream
        self.tag = tag
        self.consume = consume
        self.stays = stays
        self.own = own
        """The part of the condition that reads no tag: tested once per event, however many listen."""
        self.listening = listening

    def make(self, parent: Parent, binding: Binding) -> Filter:
        return Filter(self, parent, binding)

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> Filter:
        number, binding, begun = state
        made = Filter(self, parent, unpacker.binding(binding))
        made.number, made.begun = number, begun
        unpacker.listeners.append(made)
        return made

    def find(self, row: object, found: list[Filter]) -> None:
        """Append the listeners that an event fits."""
        if self.listening.count and (self.own is None or self.own(row)):
            self.listening.find(row, found)


class Filter(PatternInstance):
    """A filter that listens."""

    __slots__ = ("begun", "binding", "node", "number", "parent")

    def __init__(self, node: FilterNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.number = 0
        """The number of its start; 0 before."""
        self.begun = 0
        """The time of its start in ms."""

    def start(self) -> None:
        machine = self.node.machine
        machine.number += 1
        self.number = machine.number
        self.begun = machine.now
        self.node.listening.add(self)

    def hear(self, row: object) -> None:
        """An event that fits."""
        parent, node = self.parent, self.node
        if parent is None:
            return  # an earlier listener of the same event has ended this one
        tag, binding = node.tag, self.binding
        if tag is not None:
            binding = (*binding[:tag], row, *binding[tag + 1 :])
        if node.stays:
            parent.on_true(self, binding, over=False)
        else:
            node.listening.remove(self)
            self.parent = None
            parent.on_true(self, binding, over=True)

    def quit(self) -> None:
        if self.parent is not None and self.number:  # not where its parent ends before it has been started
            self.node.listening.remove(self)
        self.parent = None

    def pack(self, packer: Packer) -> Saved:
        return [self.number, packer.binding(self.binding), self.begun]
