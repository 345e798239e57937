"""`every` and `every-distinct`: begin again whenever the operand has matched or failed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.nodes import Binding, Parent, PatternInstance, PatternPart
from sql.algebra.pattern.pattern_timers import Length
from sql.types import Saved

if TYPE_CHECKING:
    from sql.algebra.pattern.machine import Machine
    from sql.algebra.pattern.snapshot import Packer, Unpacker

Keys = dict[Hashable, int]
"""Keys met, oldest first, with the instant at which each was stored."""


class EveryNode(PatternPart):
    """`every`; its operand may go on by itself after a match (`PatternPart.stays`)."""

    def __init__(self, machine: Machine, place: int, operand: PatternPart) -> None:
        super().__init__(machine, place)
        self.operand = operand

    def make(self, parent: Parent, binding: Binding) -> EverySearch:
        return EverySearch(self, parent, binding)

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> EverySearch:
        binding, children = state
        made = self.make(parent, unpacker.binding(binding))
        for child, memory in children:
            made.children[self.operand.unpack(made, child, unpacker)] = made.unpack_memory(memory)
        return made


class EverySearch(PatternInstance):
    """An `every` that has begun. It never ends by itself.

    What turns true while it is being started is quit and not replaced, or `every (not a)`
    would never come to rest.
    """

    __slots__ = ("binding", "children", "node", "parent", "starting", "turned")

    def __init__(self, node: EveryNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.children: dict[PatternInstance, Any] = {}
        """The instances that live, each with what the next one begun after it inherits."""
        self.starting: PatternInstance | None = None
        self.turned = False
        """True if the instance that is being started has turned true."""

    def start(self) -> None:
        self._spawn(self.fresh_memory())

    def fresh_memory(self) -> Any:
        """The memory of an instance that inherits none."""
        return None

    def unpack_memory(self, state: Saved) -> Any:
        """The memory whose `pack_memory` gave this state."""
        return None

    def pack_memory(self, memory: Any, packer: Packer) -> Saved:
        return None

    def _spawn(self, memory: Any) -> None:
        child = self.node.operand.make(self, self.binding)
        self.starting, self.turned = child, False
        self.children[child] = memory
        child.start()
        self.starting = None
        if self.turned and self.children.pop(child, self) is not self:
            child.quit()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        if child is self.starting:
            self.turned = True
            return
        parent = self.parent
        if parent is None:
            return
        memory = self.children.pop(child, None) if over else self.children.get(child)
        if memory is None:
            memory = self.fresh_memory()
        told = self.tells(memory, binding)
        if not self.node.operand.stays:
            self._spawn(memory if over else self.copied(memory))
        if told:
            parent.on_true(self, binding, over=False)

    def copied(self, memory: Any) -> Any:
        """The memory that the next instance inherits from one that goes on."""
        return memory

    def tells(self, memory: Any, binding: Binding) -> bool:
        """True if a match is passed on; it is remembered then."""
        return True

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        self.children.pop(child, None)
        parent = self.parent
        if parent is None:
            return
        if not restartable:
            self.quit()
            parent.on_false(self, restartable=False)
        elif child is not self.starting:
            self._spawn(self.fresh_memory())

    def quit(self) -> None:
        self.parent = None
        children, self.children = self.children, {}
        for child in children:
            child.quit()

    def pack(self, packer: Packer) -> Saved:
        children = [
            [child.pack(packer), self.pack_memory(memory, packer)] for child, memory in self.children.items()
        ]
        return [packer.binding(self.binding), children]

    def below(self) -> Iterable[PatternInstance]:
        return self.children


class DistinctNode(EveryNode):
    """`every-distinct`: `key` of a match, and how long it is remembered (None: for ever)."""

    def __init__(
        self,
        machine: Machine,
        place: int,
        operand: PatternPart,
        key: Callable[..., Hashable],
        length: Length | None,
    ) -> None:
        super().__init__(machine, place, operand)
        self.key = key
        self.length = length

    def make(self, parent: Parent, binding: Binding) -> DistinctSearch:
        return DistinctSearch(self, parent, binding)


class DistinctSearch(EverySearch):
    """An `every` that reports each key once. The instance begun after a match inherits the keys; after a
    failure none."""

    __slots__ = ()
    node: DistinctNode

    def fresh_memory(self) -> Keys:
        return {}

    def copied(self, memory: Keys) -> Keys:
        return dict(memory)

    def tells(self, memory: Keys, binding: Binding) -> bool:
        machine = self.node.machine
        key = machine.evaluate(lambda found: self.node.key(None, found), binding)
        self._forget(memory, machine.now)
        if key in memory:
            return False
        if len(memory) >= machine.bounds.keys:
            del memory[next(iter(memory))]
            machine.counts["keys_dropped"] += 1
        memory[key] = machine.now
        return True

    def _forget(self, memory: Keys, now: int) -> None:
        """Drop the keys whose time is over, the oldest first."""
        node = self.node
        length = None if node.length is None else node.machine.length(node.length, self.binding)
        if length is None:
            return
        zone = node.machine.zone
        while memory:
            oldest = next(iter(memory))
            if length.add(memory[oldest], zone) > now:
                return
            del memory[oldest]

    def pack_memory(self, memory: Keys, packer: Packer) -> Saved:
        return [[packer.key(key), stored] for key, stored in memory.items()]

    def unpack_memory(self, state: Saved) -> Keys:
        from sql.algebra.pattern.snapshot import unpack_key

        return {unpack_key(key): stored for key, stored in state}
