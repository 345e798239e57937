"""count, sum, avg and their relatives: invertible, so one accumulator serves every way of leaving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.aggregates import bulk, inline
from sql.aggregates.base import NO_EVENT, Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.plain_values import decode, encode
from sql.aggregates.structures.exact import NAN, Nonfinite, NonfiniteState, check_number, to_float
from sql.aggregates.wrap import Distinct
from sql.functions.definition import Parameter
from sql.types import Plain, Type, Value


class Count(Accumulator):
    """The number of values that are not NULL."""

    __slots__ = ("count",)

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        self.count = 0

    def add(self, value: object, event: EventView) -> None:
        if value is not None:
            self.count += 1

    def remove(self, value: object, event: EventView) -> None:
        if value is not None:
            self.count -= 1

    def add_many(self, values: list[Any]) -> None:
        self.count += len(values)

    def result(self) -> int:
        return self.count

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Count)
        self.count += other.count

    def unmerge(self, other: Accumulator) -> None:
        assert isinstance(other, Count)
        self.count -= other.count

    def snapshot(self) -> int:
        return self.count

    def restore(self, state: int, events: Callable[[int], EventView]) -> None:
        self.count = state


class LotCount(Count):
    """count of stream queries: TRUE counts and FALSE does not; a NaN is no value."""

    __slots__ = ()

    def add(self, value: object, event: EventView) -> None:
        if value is not None and value is not False and value == value:
            self.count += 1

    def remove(self, value: object, event: EventView) -> None:
        if value is not None and value is not False and value == value:
            self.count -= 1


COARSE, FINE = 53, 101
"""The lengths of denominators that a sum takes of its own accord: floats from 1 on are multiples of 2**-52,
and nearly all others of 2**-100."""


SumState = tuple[int, int, Plain, int, NonfiniteState | None]
"""The count, the count of floats, the numerator, its bits, and what is not finite."""


class Sum(Accumulator):
    """The exact sum: an integer while it contains only integers, else the float nearest to the true sum.

    `numerator / 2**(bits - 1)` is the finite part, so that `bits` is the length of the denominator; `scale`
    is the denominator as a float, NaN beyond `FINE`. A float that is a multiple of its reciprocal is added
    as an integer.
    """

    __slots__ = ("bits", "count", "floats", "nonfinite", "numerator", "scale")

    name = "sum"

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        self.count = 0
        self.floats = 0
        self.nonfinite: Nonfinite | None = None
        self.hold(0, 1)

    def hold(self, numerator: int, bits: int) -> None:
        """Make this the finite part."""
        self.numerator = numerator
        self.bits = bits
        self.scale = 2.0 ** (bits - 1) if bits <= FINE else NAN

    def add(self, value: object, event: EventView) -> None:
        if value.__class__ is float:
            scaled = value * self.scale
            if scaled.is_integer():
                self.numerator += scaled.__trunc__()
            else:
                self._add_rare(value, 1)
            self.floats += 1
            self.count += 1
        elif value.__class__ is int:
            self.numerator += value << (self.bits - 1)
            self.count += 1
        else:
            check_number(value, self.name)

    def check(self, value: object) -> None:
        check_number(value, self.name)

    def remove(self, value: Value, event: EventView) -> None:
        if value is None:
            return
        self.count -= 1
        if value.__class__ is float:
            self.floats -= 1
            scaled = value * self.scale
            if scaled.is_integer():
                self.numerator -= scaled.__trunc__()
            else:
                self._add_rare(value, -1)
        else:
            self.numerator -= value << (self.bits - 1)
        if not self.count and self.bits > FINE:
            self.hold(0, 1)  # reset the precision of the finest number, which costs digits

    def _add_rare(self, value: float, by: int) -> None:
        """Add or remove a number that is not finite, is very large, or is finer than all before."""
        if value - value != 0:
            if self.nonfinite is None:
                self.nonfinite = Nonfinite()
            self.nonfinite.count(value, by)
            return
        numerator, denominator = value.as_integer_ratio()
        bits = denominator.bit_length()
        if bits > self.bits:
            self._refine(COARSE if bits <= COARSE else max(FINE, bits))
        self.numerator += numerator * by << (self.bits - bits)

    def _refine(self, bits: int) -> None:
        self.hold(self.numerator << (bits - self.bits), bits)

    def add_many(self, values: list[Any]) -> None:
        floats = list(map(type, values)).count(float)
        parts = bulk.expansion(values, floats)
        if parts is None:
            super().add_many(values)
            return
        for part in parts:
            self.add(part, NO_EVENT)
        self.count += len(values) - len(parts)
        self.floats += floats - len(parts)

    def result(self) -> Any:
        if self.floats and self.nonfinite is None:
            return self.rounded()
        return self.total() if self.count else None

    def total(self) -> int | float:
        """The sum, 0 over nothing."""
        if self.nonfinite:
            return self.nonfinite.total()
        return self.rounded() if self.floats else self.numerator >> (self.bits - 1)

    def rounded(self) -> float:
        """The finite part as the nearest float."""
        if self.bits <= FINE:
            try:
                return self.numerator / self.scale
            except OverflowError:  # the numerator alone is too large for a float
                pass
        return to_float(self.numerator, 1 << (self.bits - 1))

    def merge(self, other: Accumulator) -> None:
        self._merge(other, 1)

    def unmerge(self, other: Accumulator) -> None:
        self._merge(other, -1)
        if not self.count and self.bits > FINE:
            self.hold(0, 1)

    def _merge(self, other: Accumulator, by: int) -> None:
        assert isinstance(other, Sum)
        self.count += by * other.count
        self.floats += by * other.floats
        if other.bits > self.bits:
            self._refine(other.bits)
        self.numerator += by * other.numerator << (self.bits - other.bits)
        if other.nonfinite is not None:
            self.nonfinite = self.nonfinite or Nonfinite()
            self.nonfinite.merge(other.nonfinite, by)

    def snapshot(self) -> SumState:
        nonfinite = self.nonfinite.state() if self.nonfinite else None
        return self.count, self.floats, encode(self.numerator), self.bits if self.count else 1, nonfinite

    def restore(self, state: SumState, events: Callable[[int], EventView]) -> None:
        self.count, self.floats, numerator, bits, nonfinite = state
        self.hold(decode(numerator), bits)
        self.nonfinite = Nonfinite(*nonfinite) if nonfinite else None


class Average(Sum):
    """The mean: the exact sum, rounded to a float, divided by the count."""

    __slots__ = ()

    name = "avg"

    def result(self) -> float | None:
        if not self.count:
            return None
        if self.nonfinite:
            return self.nonfinite.total()
        rounded = self.rounded()
        if rounded - rounded != 0:  # the sum is too large for a float; the mean may not be
            return to_float(self.numerator, self.count << (self.bits - 1))
        return rounded / self.count


def together(whole: Sum, rest: Sum, count: int, total: int, floats: int = 0) -> Sum:
    """Put so many plain values, whose sum is `total` units, into an empty sum,
    and the rare ones that are in `rest`."""
    whole.hold(total, inline.UNIT_SHIFT + 1)
    whole.count, whole.floats = count, floats
    whole.merge(rest)
    return whole


def count_with(rest: Sum, count: int) -> int:
    """count of plain and rare values."""
    return count + rest.count


def average_with(rest: Sum, count: int, total: int) -> float | None:
    """avg of plain and rare values."""
    found: float | None = together(Average(), rest, count, total).result()
    return found


def sum_with(rest: Sum, count: int, total: int, floats: int) -> int | float | None:
    """sum of plain and rare values."""
    found: int | float | None = together(Sum(), rest, count, total, floats).result()
    return found


class LotSum(Sum):
    """sum of stream queries: NaN is left out, the sum of nothing is 0."""

    __slots__ = ()

    def add(self, value: object, event: EventView) -> None:
        if value == value:
            super().add(value, event)

    def remove(self, value: object, event: EventView) -> None:
        if value == value:
            super().remove(value, event)

    def result(self) -> int | float:
        return self.total()


def _sum_type(arguments: Sequence[Type]) -> Type:
    kind = arguments[0] if arguments else Type.NUMBER
    return kind if kind in (Type.INTEGER, Type.FLOAT) else Type.NUMBER


NUMBER = Parameter("x", Type.NUMBER)

register(
    Aggregate(
        "count",
        Count,
        "How many rows, `count(*)`, or how many values that are not NULL, `count(x)`.",
        (Parameter("x", optional=True),),
        Type.INTEGER,
        mergeable=True,
        of_numbers=len,
        inline=inline.COUNT._replace(with_rest=count_with),
        invertible=True,
        examples=(("count(x) over [4, null, 5]", 2),),
    )
)
register(
    Aggregate(
        "countunique",
        lambda removal: Distinct(Count()),
        "How many distinct values that are not NULL.",
        (Parameter("x"),),
        Type.INTEGER,
        mergeable=True,
        examples=(("countunique(x) over [4, null, 5, 4]", 2),),
    )
)
register(Aggregate(
    "sum", Sum, "The exact sum; an integer as long as all values are integers. NULL over nothing.",
    (NUMBER,), _sum_type, mergeable=True, of_numbers=bulk.total, invertible=True,
    aliases=("total",),
    inline=inline.SUM._replace(with_rest=sum_with),
    examples=(("sum(x) over [1, null, 2]", 3), ("sum(x) over [1e16, 1, -1e16]", 1.0),
              ("sum(x) over [null]", None)),
))  # fmt: skip
register(
    Aggregate(
        "avg",
        Average,
        "The mean, always a float. NULL over nothing.",
        (NUMBER,),
        Type.FLOAT,
        aliases=("mean",),
        mergeable=True,
        of_numbers=bulk.mean,
        inline=inline.AVG._replace(with_rest=average_with),
        invertible=True,
        examples=(("avg(x) over [1, 2]", 1.5),),
    )
)
register(
    Aggregate(
        "lot_sum",
        LotSum,
        "sum in stream queries: NaN is left out, the sum of nothing is 0.",
        (NUMBER,),
        _sum_type,
        mergeable=True,
        examples=(("lot_sum(x) over []", 0),),
    )
)
register(
    Aggregate(
        "lot_count",
        LotCount,
        "count in stream queries: items, items for which a condition is true, or values but NaN.",
        (Parameter("x", optional=True),),
        Type.INTEGER,
        mergeable=True,
        examples=(("lot_count(x) over [true, false, true]", 2),),
    )
)
