"""The access of a row to earlier events: prev and its kin by the window's order, prior by
the order of arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sql.algebra.event import Event, FixedValues
from sql.algebra.operator import Operator
from sql.codegen.functions import FunctionSet
from sql.plan.bound import Const, PrevCall
from sql.plan.logical import Plan


class PrevReader:
    """prev, prevtail, prevcount, prevwindow and prior for one event."""

    def __init__(
        self,
        plan: Plan,
        functions: FunctionSet,
        windows: Sequence[Operator],
        priors: Callable[[Event], Sequence[Event]],
    ) -> None:
        """`priors` gives the events before one, the nearest first."""
        self.priors = priors
        self.calls = plan.prevs
        self.windows = windows
        self.joined = bool(plan.joins)
        self.values = [functions.value(call.value) if call.value is not None else None for call in plan.prevs]
        self.indexes = [functions.value(call.index) for call in plan.prevs]

    def read(self, event: Event, is_new: bool) -> list[Any]:
        """The values of all calls, in order. On remove rows only `prior` is filled."""
        return [self._one(i, call, event, is_new) for i, call in enumerate(self.calls)]

    def _one(self, i: int, call: PrevCall, event: Event, is_new: bool) -> Any:
        value = self.values[i]
        assert value is not None
        if call.name == "prior":
            assert isinstance(call.index, Const)
            priors = self.priors(event)
            if call.index.value == 0:
                return value(event)
            return value(priors[call.index.value - 1]) if call.index.value <= len(priors) else None
        if not is_new:
            return None
        sight = self.windows[call.source].sight(event)
        if call.name == "prevcount":
            return len(sight)
        if call.name == "prevwindow":
            return [value(other) for other in sight]
        place = self.indexes[i](event)
        if place is None:
            return None
        found = sight.tail(place) if call.name == "prevtail" else sight.back(place, event)
        return None if found is None else value(found)


class PriorMemory:
    """Remembers the last few inserted events, so that each keeps the ones before it."""

    def __init__(self, plan: Plan) -> None:
        depths = [
            call.index.value for call in plan.prevs if call.name == "prior" and isinstance(call.index, Const)
        ]
        self.depth = max(depths, default=0)
        self.recent: deque[Event] = deque(maxlen=self.depth or 1)

    def note(self, events: Iterable[Event]) -> None:
        """Events enter the window, in order."""
        if not self.depth:
            return
        for event in events:
            before = tuple(Event(e.row, e.time_ms, e.seq) for e in reversed(self.recent))
            event.extra = FixedValues(event.extra or (), before)
            self.recent.append(event)
