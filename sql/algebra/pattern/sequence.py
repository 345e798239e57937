"""`->`: one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.nodes import Parent, PatternInstance, PatternPart
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import Saved

SequenceState = tuple[int, list[int | None] | None, list[tuple[int, Saved]]]
"""The binding, the bound of each arrow, and the instances of steps, each with its step."""


class FollowedBySearch(PatternInstance, Parent):
    """A sequence that has begun: instances of its steps, in order of their start."""

    __slots__ = ("live", "maxima")

    def __init__(self, node: FollowedByNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.live: dict[PatternInstance, int] = {}
        """The instances that live, with the place of their step."""
        self.maxima: list[int | None] | None = None
        """The most instances of the step behind each arrow that may wait; None: any number."""

    def start(self) -> None:
        node, evaluate = self.node, self.machine.evaluate
        if any(node.maxima):
            self.maxima = [None if item is None else evaluate(item, self.binding) for item in node.maxima]
        first = node.steps[0].make(self, self.binding)
        self.live[first] = 0
        first.start()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        live, steps, partials = self.live, self.node.steps, self.machine.partials
        step = live.get(child)
        if step is None:
            return
        if over:
            del live[child]
            if step:
                partials.leave(child)
        if step == len(steps) - 1:
            parent = self.parent
            assert parent is not None
            if not live:
                self.parent = None
            parent.on_true(self, binding, over=not live)
        elif self._is_vain(steps[step + 1], binding):
            return
        elif self._has_room(step) and partials.has_room():
            following = steps[step + 1].make(self, binding)
            live[following] = step + 1
            partials.enter(following)
            following.start()
        else:
            self.machine.counts["partials_dropped"] += 1
            if not live:
                self.fail()

    def _is_vain(self, following: PatternPart, binding: Binding) -> bool:
        """True if nothing is lost where the next step does not begin: no event fits it, no arrow counts it,
        and no match discards it."""
        return self.maxima is None and not self.machine.keeps_matched and following.is_vain(binding)

    def _has_room(self, step: int) -> bool:
        """True if one more instance of the next step may wait."""
        most = None if self.maxima is None else self.maxima[step]
        return most is None or sum(place == step + 1 for place in self.live.values()) < most

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        step = self.live.pop(child, None)
        if step is None:
            return
        if step:
            self.machine.partials.leave(child)
        if not self.live:
            self.fail()

    def quit(self) -> None:
        self.parent = None
        live, self.live = self.live, {}
        for child, step in live.items():
            if step:
                self.machine.partials.leave(child)
            child.quit()

    def below(self) -> Iterable[PatternInstance]:
        return self.live

    def pack(self, packer: Packer) -> SequenceState:
        children = [(step, child.pack(packer)) for child, step in self.live.items()]
        return packer.binding(self.binding), self.maxima, children

    def unpack(self, state: SequenceState, unpacker: Unpacker) -> None:
        binding, self.maxima, children = state
        self.binding = unpacker.binding(binding)
        for step, child in children:
            instance = self.node.steps[step].unpack(self, child, unpacker)
            self.live[instance] = step
            if step:
                self.machine.partials.enter(instance)


class FollowedByNode(PatternPart):
    """`a -> b -[2]> c`; `maxima` has an entry per arrow, evaluated when the node starts."""

    instance = FollowedBySearch
    steps: Sequence[PatternPart]
    maxima: Sequence[Callable[[Binding], int | None] | None]

    def is_vain(self, binding: Binding) -> bool:
        return self.steps[0].is_vain(binding)
