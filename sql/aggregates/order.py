"""first, last, nth, collect and their relatives: values by their place in the order of arrival.

Unlike other aggregates these keep NULLs: a NULL that came last is the last value. Only nth leaves them out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.plain_values import decode, encode, is_row
from sql.aggregates.structures.sequences import arrivals
from sql.aggregates.wrap import NotNull
from sql.costs import Cost, Growth
from sql.errors import DataError
from sql.functions.definition import Parameter
from sql.record import replace
from sql.rows import as_dict
from sql.types import Plain, Saved, Type, describe


class Head(Accumulator):
    """The value at an index from the first, if values never leave: only the first few are kept."""

    __slots__ = ("default", "index", "values")

    def __init__(self, index: int, default: object) -> None:
        self.index = index
        self.default = default
        self.values: list[Any] = []

    def add(self, value: object, event: EventView) -> None:
        if len(self.values) <= self.index:
            self.values.append(value)

    def result(self) -> Any:
        return self.values[self.index] if len(self.values) > self.index else self.default

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Head)
        self.values = (self.values + other.values)[: self.index + 1]

    def snapshot(self) -> Plain:
        return encode(self.values)

    def restore(self, state: Plain, events: Callable[[int], EventView]) -> None:
        self.values = decode(state)


class Tail(Accumulator):
    """The value at an index from the last, if values leave in order or never: only the last few are kept."""

    __slots__ = ("count", "default", "index", "values")

    def __init__(self, index: int, default: object) -> None:
        self.index = index
        self.default = default
        self.count = 0
        self.values: deque[Any] = deque(maxlen=index + 1)

    def add(self, value: object, event: EventView) -> None:
        self.count += 1
        self.values.append(value)

    def remove(self, value: object, event: EventView) -> None:
        self.count -= 1
        if self.count < len(self.values):
            self.values.popleft()

    def result(self) -> Any:
        return self.values[0] if self.count > self.index else self.default

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Tail)
        self.count += other.count
        self.values.extend(other.values)

    def snapshot(self) -> tuple[int, Plain]:
        return self.count, encode(list(self.values))

    def restore(self, state: tuple[int, Plain], events: Callable[[int], EventView]) -> None:
        self.count = state[0]
        self.values = deque(decode(state[1]), maxlen=self.index + 1)


class InArrival(Accumulator):
    """The base of aggregates that keep all values in order of arrival; subclasses compute the result."""

    __slots__ = ("values",)

    def __init__(self, removal: Removal) -> None:
        self.values = arrivals(removal)

    def add(self, value: object, event: EventView) -> None:
        self.values.add(value, event)

    def remove(self, value: object, event: EventView) -> None:
        self.values.remove(value, event)

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, InArrival)
        self.values.extend(other.values)

    def snapshot(self) -> Saved:
        return self.values.snapshot()

    def restore(self, state: Saved, events: Callable[[int], EventView]) -> None:
        self.values.restore(state)


class AtIndex(InArrival):
    """The value at an index, negative from the last."""

    __slots__ = ("default", "index")

    def __init__(self, removal: Removal, index: int, default: object) -> None:
        super().__init__(removal)
        self.index = index
        self.default = default

    def result(self) -> Any:
        index, count = self.index, len(self.values)
        return self.values.at(index) if -count <= index < count else self.default


class Collect(InArrival):
    """All values, oldest first; NULL over nothing."""

    __slots__ = ()

    def result(self) -> list[Any] | None:
        return list(self.values) or None


def _columns(value: object) -> dict[str, Any]:
    """An object, or a whole row of any shape, as columns; DataError for other values."""
    if is_row(value):
        return as_dict(value)
    raise DataError(f"merge_agg takes objects, not {describe(value)}")


class MergeObjects(InArrival):
    """All objects in one, a later key over an earlier; NULL over nothing."""

    __slots__ = ()

    def add(self, value: object, event: EventView) -> None:
        if value is not None:
            super().add(_columns(value), event)

    def check(self, value: object) -> None:
        if value is not None:
            _columns(value)

    def remove(self, value: object, event: EventView) -> None:
        if value is not None:
            super().remove(value, event)

    def result(self) -> dict[str, Any] | None:
        merged: dict[str, Any] = {}
        for value in self.values:
            merged.update(value)
        return merged or None


class MergedObject(Accumulator):
    """All objects merged into one, if values never leave: one object is enough."""

    __slots__ = ("merged",)

    def __init__(self) -> None:
        self.merged: dict[str, Any] = {}

    def add(self, value: object, event: EventView) -> None:
        if value is not None:
            self.merged.update(_columns(value))

    def check(self, value: object) -> None:
        if value is not None:
            _columns(value)

    def result(self) -> dict[str, Any] | None:
        return dict(self.merged) or None

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, MergedObject)
        self.merged.update(other.merged)

    def snapshot(self) -> Plain:
        return encode(self.merged)

    def restore(self, state: Plain, events: Callable[[int], EventView]) -> None:
        self.merged = decode(state)


def _place(index: object, name: str) -> int:
    if index.__class__ is not int or index < 0:
        raise ValueError(f"the index of {name}() is a whole number from 0, not {index!r}")
    return int(index)


def make_first(removal: Removal, index: object = 0, default: object = None) -> Accumulator:
    """The accumulator of first(x, index)."""
    index = _place(index, "first")
    return Head(index, default) if removal is Removal.NEVER else AtIndex(removal, index, default)


def make_last(removal: Removal, index: object = 0, default: object = None) -> Accumulator:
    """The accumulator of last(x, index) and, in stream queries, prior(x, index)."""
    index = _place(index, "last")
    return AtIndex(removal, -1 - index, default) if removal is Removal.ANY else Tail(index, default)


def make_nth(removal: Removal, index: object) -> Accumulator:
    """The accumulator of nth(x, index)."""
    return NotNull(make_last(removal, index))


def make_lot_nth(removal: Removal, index: object, default: object = None) -> Accumulator:
    """The accumulator of nth(x, index) in stream queries; `default` is the result if there is no such
    item."""
    if index.__class__ is not int:
        raise ValueError(f"the index of nth() is a whole number, not {index!r}")
    return make_first(removal, index, default) if index >= 0 else make_last(removal, -1 - index, default)


def make_last_value(removal: Removal, ignore_null: bool = False) -> Accumulator:
    """The accumulator of last_value(x, ignore_null)."""
    if ignore_null.__class__ is not bool:
        raise ValueError(f"the second argument of last_value() is true or false, not {ignore_null!r}")
    return NotNull(make_last(removal)) if ignore_null else make_last(removal)


def make_merge_agg(removal: Removal) -> Accumulator:
    """The accumulator of merge_agg for a way of leaving."""
    return MergedObject() if removal is Removal.NEVER else MergeObjects(removal)


def _check_place(index: int) -> None:
    if not 0 <= index <= PLACE_MAX:
        raise DataError(f"an index is a whole number from 0 to {PLACE_MAX:,}, not {index}")


def _check_lot_place(index: int) -> None:
    if abs(index) > PLACE_MAX:
        raise DataError(f"an index is a whole number from -{PLACE_MAX:,} to {PLACE_MAX:,}, not {index}")


PLACE_MAX = 2**31 - 1

X = Parameter("x")
PLACE = Parameter("index", Type.INTEGER, constant=True, check=_check_place)
INDEX = replace(PLACE, optional=True)
DEFAULT = Parameter("default", optional=True, constant=True)

register(Aggregate(
    "first", make_first, "The first value still there, or the one `index` places after it, counted from 0.",
    (X, INDEX), lambda kinds: kinds[0], aliases=("first_value",), of_events=True, whole_row=True, constants=1,
    mergeable=True,
    examples=(("first(x) over [4, 5, 6]", 4), ("first(x, 1) over [4, 5, 6]", 5),
              ("first(x, 3) over [4, 5, 6]", None)),
))  # fmt: skip
register(
    Aggregate(
        "last",
        make_last,
        "The last value, or the one `index` places before it, counted from 0.",
        (X, INDEX),
        lambda kinds: kinds[0],
        of_events=True,
        whole_row=True,
        constants=1,
        mergeable=True,
        examples=(("last(x) over [4, 5, null]", None), ("last(x, 1) over [4, 5, 6]", 5)),
    )
)
register(
    Aggregate(
        "nth",
        make_nth,
        "The value `index` places before the newest, which is 0; NULL is left out.",
        (X, PLACE),
        lambda kinds: kinds[0],
        constants=1,
        mergeable=True,
        examples=(("nth(x, 2) over [4, 5, 6]", 4), ("nth(x, 1) over [4, 5, null]", 4)),
    )
)
register(
    Aggregate(
        "last_value",
        make_last_value,
        "The last value, with ignore_null the last that is not NULL.",
        (X, Parameter("ignore_null", Type.BOOLEAN, optional=True, constant=True)),
        lambda kinds: kinds[0],
        whole_row=True,
        constants=1,
        mergeable=True,
        examples=(("last_value(x, true) over [4, null]", 4), ("last_value(x, false) over [4, null]", None)),
    )
)
register(
    Aggregate(
        "lot_nth",
        make_lot_nth,
        "nth in stream queries: counted from the earliest (0), negative numbers from the newest.",
        (X, replace(PLACE, check=_check_lot_place), DEFAULT),
        lambda kinds: kinds[0],
        constants=2,
        mergeable=True,
        examples=(("lot_nth(x, 0) over [4, 5, 6]", 4), ("lot_nth(x, -1) over [4, 5, 6]", 6)),
    )
)
register(
    Aggregate(
        "lot_prior",
        make_last,
        "prior in stream queries: counted from the newest (0).",
        (X, PLACE, DEFAULT),
        lambda kinds: kinds[0],
        constants=2,
        mergeable=True,
        examples=(("lot_prior(x, 1) over [4, 5, 6]", 5),),
    )
)
register(
    Aggregate(
        "collect",
        Collect,
        "All values or rows as an array, oldest first, NULLs kept. NULL over nothing.",
        (X,),
        Type.ARRAY,
        aliases=("window",),
        of_events=True,
        whole_row=True,
        mergeable=True,
        cost=Cost(result=Growth.LINEAR),
        examples=(("collect(x) over [4, null, 4]", [4, None, 4]),),
    )
)
register(
    Aggregate(
        "merge_agg",
        make_merge_agg,
        "All objects merged into one, a later key over an earlier one. NULL over nothing.",
        (Parameter("x", Type.OBJECT),),
        Type.OBJECT,
        whole_row=True,
        mergeable=True,
        cost=Cost(leaving=Growth.LINEAR),
        examples=(('merge_agg(x) over [{"a": 1, "b": 1}, {"b": 2}]', {"a": 1, "b": 2}),),
    )
)
