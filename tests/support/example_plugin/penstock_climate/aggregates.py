"""spread(x): the largest value minus the smallest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.functions.registry import Parameter
from sql.types import Type


class Spread(Accumulator):
    """The values, sorted when they are asked for."""

    __slots__ = ("values",)

    def __init__(self, removal: Removal) -> None:
        self.values: list[float] = []

    def add(self, value: Any, event: EventView) -> None:
        if value is not None:
            self.values.append(value)

    def remove(self, value: Any, event: EventView) -> None:
        if value is not None:
            self.values.remove(value)

    def result(self) -> float | None:
        return max(self.values) - min(self.values) if self.values else None

    def snapshot(self) -> Any:
        return self.values

    def restore(self, state: Any, events: Callable[[int], EventView]) -> None:
        self.values = list(state)


register(
    Aggregate(
        "spread",
        Spread,
        "The largest value minus the smallest.",
        (Parameter("x", Type.NUMBER),),
        Type.NUMBER,
    )
)
