"""Values that the inline statements of an aggregate cannot handle: an accumulator beside keeps them.

Inline sums count in units of 2**-64 and inline extremes compare numbers. A float finer than the unit, NaN, an
infinity, or text for min and max is rare: generated code carries it as a tuple of one and passes it to the
functions below. The value alone decides whether it is rare, so it is removed by the same functions that added
it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from sql.aggregates.base import NO_EVENT, Accumulator, EventView
from sql.aggregates.extremes import Queued, QueuedState
from sql.aggregates.moments import Moments
from sql.aggregates.sums import Sum
from sql.errors import DataError
from sql.types import Saved, Value, describe

Rare = tuple[Any]
"""A rare value."""


def sum_entered(rest: Sum | None, value: Rare) -> Sum:
    """The sum of the rare values after one has come."""
    rest = rest or Sum()
    rest.add(value[0], NO_EVENT)
    return rest


def sum_left(rest: Sum, value: Rare) -> Sum | None:
    """The sum of the rare values after one has gone; None without any."""
    rest.remove(value[0], NO_EVENT)
    return rest if rest.count else None


class RareMoments(Sum):
    """The sum of the rare values with their moments, for the aggregates that read squares."""

    __slots__ = ("moments",)

    def __init__(self) -> None:
        super().__init__()
        self.moments = Moments()

    def add(self, value: Value, event: EventView) -> None:
        super().add(value, event)
        self.moments.take(value, 1, self.name)

    def remove(self, value: Value, event: EventView) -> None:
        super().remove(value, event)
        self.moments.take(value, -1, self.name)

    def snapshot(self) -> Saved:
        return super().snapshot(), self.moments.state()

    def restore(self, state: Saved, events: Callable[[int], EventView]) -> None:
        super().restore(state[0], events)
        self.moments.restore(state[1])


def moments_entered(rest: RareMoments | None, value: Rare) -> RareMoments:
    """The moments of the rare values after one has come."""
    rest = rest or RareMoments()
    rest.add(value[0], NO_EVENT)
    return rest


# --- min and max --------------------------------------------------------------------------------------------


def check_extreme(queues: tuple[deque[Any], ...], rest: Accumulator | None, value: object) -> None:
    """Raise the DataError of a value that cannot be ordered among the present ones."""
    if rest is not None:
        rest.check(value[0] if value.__class__ is tuple else value)
    elif value.__class__ is tuple:
        kind = value[0].__class__
        if kind is str and any(queues):
            raise DataError(f"{describe(value[0])} cannot be ordered among numbers")
        if kind is not str and kind is not float:
            raise DataError(f"min and max take numbers or text, not {describe(value[0])}")


def extreme_entered(rest: RareExtremes | None, value: Rare) -> RareExtremes:
    """The rare values after one has come."""
    rest = rest or RareExtremes()
    rest.add(value[0])
    return rest


def extreme_left(rest: RareExtremes, value: Rare) -> RareExtremes | None:
    """The rare values after one has gone; None without any."""
    rest.remove(value[0])
    return rest if rest.low.count or rest.low.nan else None


def lowest_with(rest: RareExtremes, plain: deque[Any]) -> Any:
    """min of plain and rare values: NaN is above every number."""
    return plain[0] if plain else rest.low.result()


def highest_with(rest: RareExtremes, plain: deque[Any]) -> Any:
    """max of plain and rare values: text is never among numbers, and NaN is above all of them."""
    return rest.high.result()


RareExtremesState = tuple[QueuedState, QueuedState]


class RareExtremes:
    """min and max of the rare values."""

    __slots__ = ("high", "low")

    def __init__(self) -> None:
        self.low = Queued(largest=False)
        self.high = Queued(largest=True)

    def check(self, value: object) -> None:
        self.low.check(value)

    def add(self, value: object) -> None:
        self.low.add(value, NO_EVENT)
        self.high.add(value, NO_EVENT)

    def remove(self, value: object) -> None:
        self.low.remove(value, NO_EVENT)
        self.high.remove(value, NO_EVENT)

    def snapshot(self) -> RareExtremesState:
        return self.low.snapshot(), self.high.snapshot()

    def restore(self, state: RareExtremesState, events: Callable[[int], EventView]) -> None:
        """Put a snapshot back."""
        self.low.restore(state[0], events)
        self.high.restore(state[1], events)


Rest = TypeVar("Rest", Sum, RareMoments, RareExtremes)


def restored(make: type[Rest], state: Saved) -> Rest | None:
    """The rare values from a snapshot."""
    if state is None:
        return None
    rest = make()
    rest.restore(state, _no_events)
    return rest


def _no_events(seq: int) -> NoReturn:
    raise AssertionError("numbers refer to no events")
