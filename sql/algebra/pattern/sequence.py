"""`->`: one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from sql.algebra.pattern.nodes import Binding, Parent, PatternInstance, PatternPart
from sql.types import Saved

if TYPE_CHECKING:
    from sql.algebra.pattern.machine import Machine
    from sql.algebra.pattern.snapshot import Packer, Unpacker


class FollowedByNode(PatternPart):
    """`a -> b -[2]> c`; `maxima` has an entry per arrow, evaluated when the node starts."""

    def __init__(
        self,
        machine: Machine,
        place: int,
        steps: Sequence[PatternPart],
        maxima: Sequence[Callable[[Binding], int | None] | None],
    ) -> None:
        super().__init__(machine, place)
        self.steps = steps
        self.maxima = maxima
        self.last = len(steps) - 1

    def make(self, parent: Parent, binding: Binding) -> FollowedBySearch:
        return FollowedBySearch(self, parent, binding)

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> FollowedBySearch:
        binding, maxima, children = state
        made = FollowedBySearch(self, parent, unpacker.binding(binding))
        made.maxima = maxima
        for step, child in children:
            instance = self.steps[step].unpack(made, child, unpacker)
            made.live[instance] = step
            if step:
                self.machine.partials.enter(instance)
        return made


class FollowedBySearch(PatternInstance):
    """A sequence that has begun: instances of its steps, in order of their start."""

    __slots__ = ("binding", "live", "maxima", "node", "parent")

    def __init__(self, node: FollowedByNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.live: dict[PatternInstance, int] = {}
        """The instances that live, with the place of their step."""
        self.maxima: list[int | None] | None = None
        """The most instances of the step behind each arrow that may wait; None: any number."""

    def start(self) -> None:
        node = self.node
        if any(node.maxima):
            evaluate = node.machine.evaluate
            self.maxima = [None if item is None else evaluate(item, self.binding) for item in node.maxima]
        first = node.steps[0].make(self, self.binding)
        self.live[first] = 0
        first.start()

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        node, live = self.node, self.live
        step = live.get(child)
        if step is None:
            return
        if over:
            del live[child]
            if step:
                node.machine.partials.leave(child)
        if step == node.last:
            parent = self.parent
            assert parent is not None
            if not live:
                self.parent = None
            parent.on_true(self, binding, over=not live)
        elif self._has_room(step) and node.machine.partials.has_room():
            following = node.steps[step + 1].make(self, binding)
            live[following] = step + 1
            node.machine.partials.enter(following)
            following.start()
        else:
            node.machine.counts["partials_dropped"] += 1
            if not live:
                self.fail()

    def _has_room(self, step: int) -> bool:
        """True if one more instance of the next step may wait."""
        most = None if self.maxima is None else self.maxima[step]
        return most is None or sum(place == step + 1 for place in self.live.values()) < most

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        step = self.live.pop(child, None)
        if step is None:
            return
        if step:
            self.node.machine.partials.leave(child)
        if not self.live:
            self.fail()

    def quit(self) -> None:
        self.parent = None
        live, self.live = self.live, {}
        for child, step in live.items():
            if step:
                self.node.machine.partials.leave(child)
            child.quit()

    def pack(self, packer: Packer) -> Saved:
        children = [[step, child.pack(packer)] for child, step in self.live.items()]
        return [packer.binding(self.binding), self.maxima, children]

    def below(self) -> Iterable[PatternInstance]:
        return self.live
