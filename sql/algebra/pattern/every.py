"""`every` and `every-distinct`: begin again whenever the operand has matched or failed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from sql.algebra.event_store import pack_key, unpack_key
from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import Length
from sql.algebra.pattern.nodes import Parent, PatternInstance, PatternPart
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Plain, Saved

Keys = dict[Hashable, int]
"""Keys met, oldest first, with the instant at which each was stored."""

PackedKeys = list[tuple[Plain, int]]
EveryState = tuple[int, list[tuple[Saved, PackedKeys | None]]]
"""The binding; of each instance of the operand its state and the keys it has met."""

NO_KEYS: Keys = {}
"""The keys of an `every` that reports each match."""


class EverySearch(PatternInstance, Parent):
    """An `every` that has begun. It never ends by itself.

    What turns true while it is being started is quit and not replaced, or `every (not a)`
    would never come to rest. With a key each key is reported once: the instance begun after a match inherits
    the keys; after a failure none.
    """

    __slots__ = ("children", "starting", "turned")

    def __init__(self, node: EveryNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.children: dict[PatternInstance, Keys] = {}
        """The instances that live, each with the keys that have been reported."""
        self.starting: PatternInstance | None = None
        self.turned = False
        """True if the instance that is being started has turned true."""

    def start(self) -> None:
        self._spawn(self._no_keys())

    def _no_keys(self) -> Keys:
        return NO_KEYS if self.node.key is None else {}

    def _spawn(self, keys: Keys) -> None:
        child = self.node.operand.make(self, self.binding)
        self.starting, self.turned = child, False
        self.children[child] = keys
        child.start()
        self.starting = None
        if self.turned and self.children.pop(child, self) is not self:
            child.quit()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        if child is self.starting:
            self.turned = True
            return
        parent, node = self.parent, self.node
        if parent is None:
            return
        keys = self.children.pop(child, None) if over else self.children.get(child)
        if keys is None:
            keys = self._no_keys()
        is_new = node.key is None or self._is_new(keys, binding)
        if not node.operand.stays:
            self._begin_again(keys if over or node.key is None else dict(keys))
        if is_new:
            parent.on_true(self, binding, over=False)

    def _begin_again(self, keys: Keys) -> None:
        """Begin again beside those that live, as far as there is room: with an `every` in the operand each
        match adds one."""
        if len(self.children) < self.machine.options.max_pattern_partials:
            self._spawn(keys)
        else:
            self.machine.counts["partials_dropped"] += 1

    def _is_new(self, keys: Keys, binding: Binding) -> bool:
        """True if the key of a match has not been met; it is remembered then."""
        machine = self.machine
        key = machine.evaluate(self.node.key, binding)
        self._forget(keys, machine.now)
        if key in keys:
            return False
        if len(keys) >= machine.options.max_pattern_keys:
            del keys[next(iter(keys))]
            machine.counts["keys_dropped"] += 1
        keys[key] = machine.now
        return True

    def _forget(self, keys: Keys, now: int) -> None:
        """Drop the keys whose time is over, the oldest first."""
        node, machine = self.node, self.machine
        length = None if node.length is None else machine.length(node.length, self.binding)
        if length is None:
            return
        while keys:
            oldest = next(iter(keys))
            if length.add(keys[oldest], machine.zone) > now:
                return
            del keys[oldest]

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        self.children.pop(child, None)
        parent = self.parent
        if parent is None:
            return
        if not restartable:
            self.quit()
            parent.on_false(self, restartable=False)
        elif child is not self.starting:
            self._spawn(self._no_keys())

    def below(self) -> Iterable[PatternInstance]:
        return self.children

    def pack(self, packer: Packer) -> EveryState:
        children = [(child.pack(packer), self._packed(keys)) for child, keys in self.children.items()]
        return packer.binding(self.binding), children

    def _packed(self, keys: Keys) -> PackedKeys | None:
        return None if self.node.key is None else [(pack_key(key), stored) for key, stored in keys.items()]

    def unpack(self, state: EveryState, unpacker: Unpacker) -> None:
        binding, children = state
        self.binding = unpacker.binding(binding)
        for child, keys in children:
            known = NO_KEYS if keys is None else {unpack_key(key): stored for key, stored in keys}
            self.children[self.node.operand.unpack(self, child, unpacker)] = known


class EveryNode(PatternPart):
    """`every`; its operand may go on by itself after a match (`PatternPart.stays`).

    key     of `every-distinct`: the key of a match
    length  how long it is remembered; None: for ever
    """

    instance = EverySearch
    operand: PatternPart
    key: Callable[[Binding], Hashable] | None
    length: Length | None

    def is_vain(self, binding: Binding) -> bool:
        return self.operand.is_vain(binding)
