"""Groups with values that statements do not take: accumulators take their events until the
last such value leaves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from sql.aggregates.base import NO_EVENT, Removal
from sql.aggregates.inline import QUEUES, SHIFTS
from sql.algebra.accumulators import is_checked, maker_of
from sql.algebra.sample.instance import RunningGroup
from sql.algebra.sample.running.fold_arguments import Arguments


class Fallback:
    """The functions a loop calls for values that its statements do not handle.
    `g`: a group, with the slots of its class in the text."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.makers = [maker_of(call, Removal.FIFO) for call in arguments.inlined]
        self.checked = [is_checked(call) for call in arguments.inlined]
        self.add: Any = None
        """The generated function that takes values into a group by statements; True if it could."""

    def admit(self, g: RunningGroup, values: tuple[Any, ...]) -> None:
        """Values that the statements cannot take as the group is now. DataError leaves
        everything as it was."""
        if (
            g.acc is None
            and g.shift == SHIFTS[0]
            and not any(map(self.arguments.is_unsupported, [values, *self._values_held(g)]))
        ):
            self._refine(g)
            self.add(g, *values)
            return
        parts = self._as_accumulators(g) if g.acc is None else g.acc
        given = self.arguments.by_call(values)
        for part, value, checked in zip(parts, given, self.checked, strict=True):
            if checked:
                part.check(value)
        for part, value in zip(parts, given, strict=True):
            part.add(value, NO_EVENT)
        if g.acc is None:
            g.acc = parts
            g.unsupported = sum(map(self.arguments.is_unsupported, self._values_held(g)))
        g.unsupported += self.arguments.is_unsupported(values)

    def _refine(self, g: RunningGroup) -> None:
        """Count sums in the finest unit from now on."""
        finer = SHIFTS[1] - g.shift
        g.shift, g.unit, g.scale = SHIFTS[1], 2.0 ** SHIFTS[1], 2.0 ** -SHIFTS[1]
        for item in self.arguments.items:
            if item.is_scaled:
                name = f"total_{item.place}"
                setattr(g, name, getattr(g, name) << finer)

    def _values_held(self, g: RunningGroup) -> Iterable[Sequence[Any]]:
        queues = [getattr(g, f"held_a_{item.place}") for item in self.arguments.valued]
        return zip(*queues, strict=True) if queues else repeat((), len(g.entries))

    def _as_accumulators(self, g: RunningGroup) -> list[Any]:
        """Accumulators that hold what the group holds."""
        parts = [make() for make in self.makers]
        for values in self._values_held(g):
            for part, value in zip(parts, self.arguments.by_call(values), strict=True):
                part.add(value, NO_EVENT)
        return parts

    def withdraw(self, g: RunningGroup, values: tuple[Any, ...]) -> None:
        """An event leaves a group with accumulators, which may be the last that needed them."""
        for part, value in zip(g.acc, self.arguments.by_call(values), strict=True):
            part.remove(value, NO_EVENT)
        g.unsupported -= self.arguments.is_unsupported(values)
        if not g.unsupported:
            g.acc = None
            self._begin_anew(g)
            for held in self._values_held(g):
                self.add(g, *held)

    def _begin_anew(self, g: RunningGroup) -> None:
        """Empty what the statements keep; sums are counted in the finest unit."""
        for item in self.arguments.items:
            for state in item.states:
                setattr(g, f"{state}_{item.place}", deque() if state in QUEUES else 0)
        g.shift, g.unit, g.scale = SHIFTS[1], 2.0 ** SHIFTS[1], 2.0 ** -SHIFTS[1]

    def results(self, g: RunningGroup) -> list[Any]:
        inlined = iter(g.acc)
        return [
            getattr(g, f"acc_{place}").result()
            if place in self.arguments.accumulated
            else next(inlined).result()
            for place in range(len(self.arguments.calls))
        ]
