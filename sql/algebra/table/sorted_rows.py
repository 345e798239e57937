"""Rows in order of a value, for ranges.

Values of one kind (numbers, texts, …) are together, so that they compare as they are: a range never crosses
kinds. They stand in blocks of some hundred, the values beside the rows:

    values   [1.0 1.5 2.0] [2.0 7.5] …     bisection finds the block by its highest value,
                                           then the place in it
    events   [ a   b   c ] [ d   e ] …     a slice of them is the answer
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

from sql.types import order_key

BLOCK_MAX = 128
"""Rows of a block; a fuller one is cut in two."""

Span = tuple[Any, Any, bool, bool]
"""A range of values: its ends, None for no bound, and whether each end itself is inside."""

NUMBER, TEXT = order_key(0)[0], order_key("")[0]
UNORDERED = -1
"""The kind of NaN, which is in no range."""

_number = attrgetter("seq")


class Numbered(Protocol):
    """A row, or whatever else is kept in order of a value: those of one value stand in order of `seq`."""

    seq: int


Row = TypeVar("Row", bound=Numbered)


def placed(value: object) -> tuple[int, Any]:
    """The kind of a value, and what orders it among those of its kind."""
    kind = value.__class__
    if kind is float or kind is int:
        return (NUMBER, value) if value == value else (UNORDERED, 0)
    if kind is str:
        return TEXT, value
    rank, order, *_ = order_key(value)
    return rank, order


class SortedRows(Generic[Row]):
    """Rows in order of values of any kind. Rows of one value stand in order of their numbers."""

    def __init__(self) -> None:
        self.kinds: dict[int, OneKind[Row]] = {}

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def add(self, value: object, event: Row) -> None:
        kind, order = placed(value)
        rows = self.kinds.get(kind)
        if rows is None:
            rows = self.kinds[kind] = OneKind()
        rows.add(order, event)

    def remove(self, value: object, event: Row) -> None:
        kind, order = placed(value)
        rows = self.kinds[kind]
        rows.remove(order, event)
        if not rows.blocks:
            del self.kinds[kind]

    def equal(self, value: object) -> list[Row]:
        """The rows of a value; NaN is one."""
        kind, order = placed(value)
        rows = self.kinds.get(kind)
        return [] if rows is None else rows.between(order, order, True, True)

    def between(self, low: object, high: object, low_inside: bool, high_inside: bool) -> list[Row]:
        """The rows in a range, in order of the value.
        Values of another kind than its low end are in no range."""
        kind, low_order = placed(high if low is None else low)
        rows = self.kinds.get(kind)
        if rows is None or kind == UNORDERED:
            return []
        high_kind, high_order = placed(low if high is None else high)
        if high_kind < kind:
            return []
        return rows.between(
            None if low is None else low_order,
            None if high is None or high_kind > kind else high_order,
            low_inside,
            high_inside,
        )


class OneKind(Generic[Row]):
    """Rows in order of values that compare with each other."""

    def __init__(self) -> None:
        self.blocks: list[tuple[list[Any], list[Row]]] = []
        """The values, and beside them their rows."""
        self.highest: list[Any] = []
        self.last: list[int] = []
        """The last value of each block, and the number of its row."""

    def _block(self, value: object, number: int) -> int:
        """The block in which a row is, or belongs: the first that ends with it or behind it."""
        first = bisect_left(self.highest, value)
        equal = bisect_right(self.highest, value, first)
        return bisect_left(self.last, number, first, equal)

    @staticmethod
    def _place(values: list[Any], events: list[Row], value: object, number: int) -> int:
        """The place in its block where a row is, or belongs."""
        first = bisect_left(values, value)
        return bisect_left(events, number, first, bisect_right(values, value, first), key=_number)

    def add(self, value: object, event: Row) -> None:
        if not self.blocks:
            self.blocks.append(([value], [event]))
            self.highest.append(value)
            self.last.append(event.seq)
            return
        block = min(self._block(value, event.seq), len(self.blocks) - 1)
        values, events = self.blocks[block]
        place = self._place(values, events, value, event.seq)
        values.insert(place, value)
        events.insert(place, event)
        if len(values) > BLOCK_MAX:
            half = BLOCK_MAX // 2
            self.blocks.insert(block, (values[:half], events[:half]))
            del values[:half], events[:half]
            self.highest.insert(block, None)
            self.last.insert(block, 0)
            self._note_end(block)
            block += 1
        self._note_end(block)

    def remove(self, value: object, event: Row) -> None:
        block = self._block(value, event.seq)
        values, events = self.blocks[block]
        place = self._place(values, events, value, event.seq)
        del values[place], events[place]
        if values:
            self._note_end(block)
        else:
            del self.blocks[block], self.highest[block], self.last[block]

    def _note_end(self, block: int) -> None:
        values, events = self.blocks[block]
        self.highest[block] = values[-1]
        self.last[block] = events[-1].seq

    def between(self, low: object, high: object, low_inside: bool, high_inside: bool) -> list[Row]:
        """The rows in a range, of which None is no bound."""
        after = bisect_left if low_inside else bisect_right
        before = bisect_right if high_inside else bisect_left
        first = 0 if low is None else after(self.highest, low)
        if first == len(self.blocks):
            return []
        last = len(self.blocks) - 1 if high is None else min(before(self.highest, high), len(self.blocks) - 1)
        values, events = self.blocks[first]
        start = 0 if low is None else after(values, low)
        if first == last:
            return events[start : len(values) if high is None else before(values, high)]
        if last < first:
            return []
        found = events[start:]
        for block in range(first + 1, last):
            found += self.blocks[block][1]
        values, events = self.blocks[last]
        return found + events[: len(values) if high is None else before(values, high)]
