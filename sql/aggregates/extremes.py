"""min and max. Their state depends on the order in which values leave: the best one, a monotonic queue, or
all values in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from sql.aggregates import bulk, inline
from sql.aggregates.base import NO_EVENT, Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.plain_values import decode, encode
from sql.aggregates.structures.ordered_multiset import OrderedMultiset
from sql.aggregates.wrap import Filtered
from sql.costs import Cost, Growth
from sql.errors import DataError
from sql.functions.definition import Parameter
from sql.types import Plain, Type, describe, ordered


class Extreme(Accumulator):
    """The common part of all: the check of values, and the order of NaN, which is above every number.

    Numbers and text can be ordered, but not with each other: a value of the other kind is an error as long as
    one of the first kind counts.
    """

    __slots__ = ("count", "kind", "nan")

    def __init__(self) -> None:
        self.count = 0
        """The number of present values other than NULL and NaN."""
        self.nan = 0
        self.kind: type | None = None
        """The class of the values; float also for integers."""

    def _admit(self, value: object) -> bool:
        """Count a value; True if the structure must keep it, False for NULL and NaN."""
        kind = value.__class__
        if kind is int:
            kind = float
        if kind is not self.kind:
            if value is None:
                return False
            self.check(value)
            self.kind = kind
        if value != value:
            self.nan += 1
            return False
        self.count += 1
        return True

    def check(self, value: object) -> None:
        kind = float if value.__class__ is int else value.__class__
        if kind is self.kind or value is None:
            return
        if self.count or self.nan:
            others = "text" if self.kind is str else "numbers"
            raise DataError(f"{describe(value)} cannot be ordered among {others}")
        if kind is not float and kind is not str:
            raise DataError(f"min and max take numbers or text, not {describe(value)}")

    def _dismiss(self, value: object) -> bool:
        """Count a value that leaves; True if it is in the structure."""
        if value is None:
            return False
        if value != value:
            self.nan -= 1
            return False
        self.count -= 1
        return True

    def _merge_counts(self, other: Extreme) -> None:
        if (other.count or other.nan) and (self.count or self.nan) and self.kind is not other.kind:
            raise DataError("min and max cannot order text among numbers")
        if other.count or other.nan:
            self.kind = other.kind
        self.count += other.count
        self.nan += other.nan

    def _restore_counts(self, count: int, nan: int, example: object) -> None:
        self.count, self.nan = count, nan
        self.kind = (str if example.__class__ is str else float) if count or nan else None


class BestSoFar(Extreme):
    """The best value so far; for values that never leave."""

    __slots__ = ("best", "largest")

    def __init__(self, largest: bool) -> None:
        super().__init__()
        self.largest = largest
        self.best: Any = None

    def add(self, value: object, event: EventView) -> None:
        if self._admit(value):
            best = self.best
            if self.count == 1 or (value > best if self.largest else value < best):
                self.best = value

    def add_many(self, values: list[Any]) -> None:
        found = bulk.greatest(values) if self.largest else bulk.least(values)
        if found is None or self.kind is str:
            super().add_many(values)
            return
        self.add(found, NO_EVENT)
        self.count += len(values) - 1

    def result(self) -> Any:
        if self.nan and (self.largest or not self.count):
            return float("nan")
        return self.best

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, BestSoFar)
        alone = not self.count
        self._merge_counts(other)
        if other.count and (alone or (other.best > self.best if self.largest else other.best < self.best)):
            self.best = other.best

    def snapshot(self) -> tuple[int, int, Plain]:
        return self.count, self.nan, encode(self.best)

    def restore(self, state: tuple[int, int, Plain], events: Callable[[int], EventView]) -> None:
        self.best = decode(state[2])
        self._restore_counts(state[0], state[1], self.best)


QueuedState = tuple[int, int, list[Plain]]
"""The number of values, that of NaNs, and the values that are kept, best first."""


class Queued(Extreme):
    """The extreme, for a FIFO: only values that no later one beats are kept, best first."""

    __slots__ = ("largest", "queue")

    def __init__(self, largest: bool) -> None:
        super().__init__()
        self.largest = largest
        self.queue: deque[Any] = deque()

    def add(self, value: object, event: EventView) -> None:
        if self._admit(value):
            self._push(value)

    def _push(self, value: object) -> None:
        queue = self.queue
        if self.largest:
            while queue and queue[-1] < value:
                queue.pop()
        else:
            while queue and queue[-1] > value:
                queue.pop()
        queue.append(value)

    def remove(self, value: object, event: EventView) -> None:
        # The value that leaves is older than all others, so either it heads the queue or a later one has
        # beaten it.
        if self._dismiss(value) and self.queue[0] == value:
            self.queue.popleft()

    def result(self) -> Any:
        if self.nan and (self.largest or not self.count):
            return float("nan")
        return self.queue[0] if self.queue else None

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Queued)
        self._merge_counts(other)
        for value in other.queue:
            self._push(value)

    def snapshot(self) -> QueuedState:
        return self.count, self.nan, [encode(value) for value in self.queue]

    def restore(self, state: QueuedState, events: Callable[[int], EventView]) -> None:
        self.queue = deque(decode(value) for value in state[2])
        self._restore_counts(state[0], state[1], self.queue[0] if self.queue else None)


class SortedExtreme(Extreme):
    """The extreme, for values that leave in any order: all are kept, sorted."""

    __slots__ = ("largest", "values")

    def __init__(self, largest: bool) -> None:
        super().__init__()
        self.largest = largest
        self.values = OrderedMultiset()

    def add(self, value: object, event: EventView) -> None:
        if self._admit(value):
            self.values.add(value)

    def remove(self, value: object, event: EventView) -> None:
        if self._dismiss(value):
            self.values.remove(value)

    def result(self) -> Any:
        if self.nan and (self.largest or not self.count):
            return float("nan")
        if not self.count:
            return None
        return self.values.highest() if self.largest else self.values.lowest()

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, SortedExtreme)
        self._merge_counts(other)
        for value in other.values:
            self.values.add(value)

    def snapshot(self) -> QueuedState:
        return self.count, self.nan, [encode(value) for value in self.values]

    def restore(self, state: QueuedState, events: Callable[[int], EventView]) -> None:
        self.values = OrderedMultiset(decode(value) for value in state[2])
        self._restore_counts(state[0], state[1], self.values.lowest() if state[0] else None)


_STRUCTURES: dict[Removal, Callable[[bool], Accumulator]] = {
    Removal.NEVER: BestSoFar,
    Removal.FIFO: Queued,
    Removal.ANY: SortedExtreme,
}


def make_min(removal: Removal) -> Accumulator:
    """The accumulator of min for a way of leaving."""
    return _STRUCTURES[removal](False)


def make_max(removal: Removal) -> Accumulator:
    """The accumulator of max for a way of leaving."""
    return _STRUCTURES[removal](True)


def _ever(make: Callable[[Removal], Accumulator]) -> Callable[[Removal], Accumulator]:
    return lambda removal: make(Removal.NEVER)


def _filtered(make: Callable[[Removal], Accumulator]) -> Callable[[Removal], Accumulator]:
    return lambda removal: Filtered(make(removal))


X = Parameter("x", Type.ORDERED, check=ordered)
FILTER = Parameter("filter", Type.BOOLEAN)

for _name, _make, _what, _of_numbers, _inline in (
    ("min", make_min, "smallest", bulk.least, inline.MIN),
    ("max", make_max, "largest", bulk.greatest, inline.MAX),
):
    register(
        Aggregate(
            _name,
            _make,
            f"The {_what} number or text; NaN counts as the largest number. NULL over nothing.",
            (X,),
            lambda kinds: kinds[0],
            mergeable=True,
            of_numbers=_of_numbers,
            inline=_inline,
            cost=Cost(event=Growth.AMORTISED, any_order=Growth.ROOT),
            examples=((f"{_name}(x) over [2, null, 2]", 2),),
        )
    )
    register(
        Aggregate(
            f"f{_name}",
            _filtered(_make),
            f"The {_what} value of the rows for which the filter is true.",
            (X, FILTER),
            lambda kinds: kinds[0],
            mergeable=True,
            examples=((f"f{_name}(x, filter) over [[9, true], [5, false], [9, true], [10, null]]", 9),),
        )
    )
    register(
        Aggregate(
            f"{_name}ever",
            _ever(_make),
            f"The {_what} value that ever came, whatever has left since.",
            (X,),
            lambda kinds: kinds[0],
            ever=True,
        )
    )
    register(
        Aggregate(
            f"f{_name}ever",
            _filtered(_ever(_make)),
            f"The {_what} value that ever came with a true filter.",
            (X, FILTER),
            lambda kinds: kinds[0],
            ever=True,
        )
    )
