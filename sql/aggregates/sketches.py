"""Sketches, from which distinct counts, percentiles and top values of many gateways merge.

The results are bytes in the formats of Apache DataSketches, which Spark's functions of the same names read.
The state holds the values themselves, each with its number, so that values can leave, and equal values give
equal bytes in any order: a sketch is made when the result is computed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.plain_values import decode, encode
from sql.aggregates.quantiles import Ordered
from sql.aggregates.structures.exact import check_number
from sql.costs import Cost, Growth
from sql.errors import DataError
from sql.functions.definition import Parameter
from sql.types import Plain, Type, Value, describe

INT64 = range(-(2**63), 2**63)

THETA_LG_K = 12
"""A theta sketch keeps 2^12 hashes: it is exact up to that number of values, beyond it within 1.6 % (one
standard error)."""
KLL_K = 200
"""A KLL sketch of one window is exact up to 200 values;
ranks of more are within 1 %, merged within 1.65 %."""
TOP_LG_SIZE = 10
TOP_ITEMS_MAX = (1 << TOP_LG_SIZE) * 3 // 4
"""The most values in a sketch of top values; beyond, the rarest are dropped."""


class Counted(Accumulator):
    """Values with their numbers; the result is a sketch of them, NULL over nothing."""

    __slots__ = ("counts", "name", "sketch", "spelling")

    def __init__(
        self, name: str, spelling: Callable[[Any, str], Any], sketch: Callable[[dict[Any, int]], bytes]
    ) -> None:
        self.name = name
        self.spelling = spelling
        self.sketch = sketch
        self.counts: dict[Any, int] = {}

    def add(self, value: object, event: EventView) -> None:
        if _is_there(value):
            key = self.spelling(value, self.name)
            self.counts[key] = self.counts.get(key, 0) + 1

    def check(self, value: object) -> None:
        if _is_there(value):
            self.spelling(value, self.name)

    def remove(self, value: object, event: EventView) -> None:
        if _is_there(value):
            key = self.spelling(value, self.name)
            self.counts[key] -= 1
            if not self.counts[key]:
                del self.counts[key]

    def result(self) -> bytes | None:
        return self.sketch(self.counts) if self.counts else None

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Counted)
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count

    def snapshot(self) -> list[tuple[Plain, int]]:
        return [(encode(key), count) for key, count in self.counts.items()]

    def restore(self, state: list[tuple[Plain, int]], events: Callable[[int], EventView]) -> None:
        self.counts = {decode(key): count for key, count in state}


class KllNumbers(Ordered):
    """Numbers in order; the result is a KLL sketch of them, NULL over nothing. NULLs and NaN are left out."""

    __slots__ = ()

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        super().__init__()

    def add(self, value: object, event: EventView) -> None:
        if (number := _real(value)) is not None:
            self.values.add(number)

    def check(self, value: object) -> None:
        _real(value)

    def remove(self, value: object, event: EventView) -> None:
        if (number := _real(value)) is not None:
            self.values.remove(number)

    def result(self) -> bytes | None:
        return kll(list(self.values)) if self.values.count else None


def _is_there(value: object) -> bool:
    """True if a value is neither NULL nor NaN."""
    return value is not None and bool(value == value)


def _real(value: Value) -> float | None:
    """A finite number as a float; None for NULL and NaN."""
    check_number(value, "kll_sketch")
    if not _is_there(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), float("-inf")):
        raise DataError(f"kll_sketch() takes finite numbers, not {describe(value)}")
    return number + 0.0


def _identity(value: Value, name: str) -> int | float | str:
    """A value in the form that is hashed: equal numbers are one, whatever their type."""
    kind = value.__class__
    if kind is float and value.is_integer() and int(value) in INT64:
        return int(value)
    if kind is str or kind is float or (kind is int and value in INT64):
        known: int | float | str = value
        return known
    raise DataError(f"{name}() takes text and numbers of up to 64 bits, not {describe(value)}")


def _item(value: object, name: str) -> str:
    """A value as an item of a list of top values: its text."""
    return str(_identity(value, name))


# --- encoding -----------------------------------------------------------------------------------------------


def theta(counts: dict[Any, int]) -> bytes:
    """A compact theta sketch of the values."""
    from datasketches import update_theta_sketch

    sketch = update_theta_sketch(THETA_LG_K)
    for value in counts:
        sketch.update(value)
    sketch.trim()
    return bytes(sketch.compact().serialize())


def kll(values: Sequence[float]) -> bytes:
    """A KLL sketch (of doubles) of numbers in order, at least one.

    If there are more than `KLL_K`, each value of a level stands for 2^level neighbours: the one in their
    middle.
    """
    count = len(values)
    if count == 1:
        return struct.pack("<BBBBHBBd", 2, 2, _KLL_FAMILY, _KLL_SINGLE, KLL_K, _KLL_M, 0, values[0])
    height = 0
    while count >> height > KLL_K:
        height += 1
    levels: list[list[float]] = [[] for _ in range(height + 1)]
    whole = count >> height << height
    levels[height] = [values[at + (1 << height >> 1)] for at in range(0, whole, 1 << height)]
    for level in range(height - 1, -1, -1):
        if count >> level & 1:
            levels[level] = [values[whole + (1 << level >> 1)]]
            whole += 1 << level
    items = [value for level in levels for value in level]
    starts = [_kll_capacity(len(levels)) - len(items)]
    for lower in levels[:-1]:
        starts.append(starts[-1] + len(lower))
    head = struct.pack("<BBBBHBB", 5, 1, _KLL_FAMILY, _KLL_SORTED, KLL_K, _KLL_M, 0)
    size = struct.pack(f"<QHBB{len(levels)}I", count, KLL_K, len(levels), 0, *starts)
    return head + size + struct.pack(f"<{2 + len(items)}d", values[0], values[-1], *items)


_KLL_FAMILY, _KLL_M = 15, 8
_KLL_SORTED, _KLL_SINGLE = 2, 4


def _kll_capacity(levels: int) -> int:
    """The most items of a sketch of so many levels: k in the highest, two thirds in the next, at least m."""
    depths = range(levels)
    return sum(max(_KLL_M, ((2 * KLL_K << depth) // 3**depth + 1) // 2) for depth in depths)


def top(counts: dict[Any, int]) -> bytes:
    """A sketch of frequent items (text) of the values: the most frequent `TOP_ITEMS_MAX`; items with lower
    counts than the first one left out are dropped, and the error is recorded."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    offset = ranked[TOP_ITEMS_MAX][1] if len(ranked) > TOP_ITEMS_MAX else 0
    kept = [(item.encode(), count - offset) for item, count in ranked[:TOP_ITEMS_MAX] if count > offset]
    size = max(3, (len(kept) * 4 // 3).bit_length())
    head = struct.pack("<BBBBBBH", 4, 1, _TOP_FAMILY, TOP_LG_SIZE, min(size, TOP_LG_SIZE), 0, 0)
    numbers = struct.pack("<IIQQ", len(kept), 0, sum(counts.values()), offset)
    weights = struct.pack(f"<{len(kept)}Q", *(count for _, count in kept))
    return head + numbers + weights + b"".join(struct.pack("<I", len(item)) + item for item, _ in kept)


_TOP_FAMILY = 10

# --- the functions ------------------------------------------------------------------------------------------

X = Parameter("x")


def _theta(removal: Removal) -> Accumulator:
    return Counted("theta_sketch", _identity, theta)


def _top(removal: Removal) -> Accumulator:
    return Counted("top_k_sketch", _item, top)


if find_spec("datasketches") is not None:
    register(
        Aggregate(
            "theta_sketch",
            _theta,
            "A theta sketch of the distinct values (text and numbers), as bytes: "
            "the cloud merges it into the number of distinct values of all gateways. NULL over nothing.",
            (X,),
            Type.BYTES,
            aliases=("theta_sketch_agg",),
            mergeable=True,
        )
    )
register(
    Aggregate(
        "kll_sketch",
        KllNumbers,
        "A KLL sketch of numbers, as bytes: the cloud merges it into percentiles of the values "
        "of all gateways. NULL over nothing.",
        (Parameter("x", Type.NUMBER),),
        Type.BYTES,
        aliases=("kll_sketch_agg_double",),
        mergeable=True,
        cost=Cost(event=Growth.ROOT),
    )
)
register(
    Aggregate(
        "top_k_sketch",
        _top,
        "A sketch of the most frequent values (text, and numbers as their text), as bytes: "
        "the cloud merges it into the top values of all gateways. NULL over nothing.",
        (X,),
        Type.BYTES,
        aliases=("approx_top_k_accumulate",),
        mergeable=True,
    )
)
