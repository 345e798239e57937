"""A sorted list that may hold equal values, with removal in any order: O(√n) moves per change, no tree."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any

from sql.types import Value

BLOCK_MAX = 512
"""Values in a block before it is split: short enough to shift cheaply, long enough for few blocks."""


class OrderedMultiset:
    """Values in order, kept in blocks of up to `BLOCK_MAX`. All values must be comparable with each other."""

    __slots__ = ("_blocks", "_derived", "_highest", "count")

    def __init__(self, values: Iterable[Any] = ()) -> None:
        ordered = sorted(values)
        self.count = len(ordered)
        self._blocks = [ordered[at : at + BLOCK_MAX // 2] for at in range(0, self.count, BLOCK_MAX // 2)]
        self._highest = [block[-1] for block in self._blocks]
        self._derived: list[Any] = [None] * len(self._blocks)
        """The results that a subclass computed per block; None again as soon as the block changes."""

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        for block in self._blocks:
            yield from block

    def add(self, value: Value) -> None:
        """Insert a value in its place."""
        self.count += 1
        blocks, highest = self._blocks, self._highest
        if not blocks:
            blocks.append([value])
            highest.append(value)
            self._derived.append(None)
            return
        index = bisect_left(highest, value, 0, len(blocks) - 1) if len(blocks) > 1 else 0
        block = blocks[index]
        insort(block, value)
        highest[index] = block[-1]
        self._derived[index] = None
        if len(block) > BLOCK_MAX:
            half = BLOCK_MAX // 2
            blocks[index : index + 1] = [block[:half], block[half:]]
            highest.insert(index, block[half - 1])
            self._derived.insert(index, None)

    def remove(self, value: Value) -> Any:
        """Remove one value equal to `value` and return it; KeyError if there is none."""
        blocks = self._blocks
        index = bisect_left(self._highest, value, 0, len(blocks) - 1) if len(blocks) > 1 else 0
        block = blocks[index] if blocks else []
        place = bisect_left(block, value)
        if place == len(block) or (block[place] is not value and block[place] != value):
            raise KeyError(value)
        found = block.pop(place)
        self._lost(index, block)
        return found

    def pop(self) -> Any:
        """Remove the last value and return it; IndexError if there is none."""
        block = self._blocks[-1]
        found = block.pop()
        self._lost(-1, block)
        return found

    def _lost(self, index: int, block: list[Any]) -> None:
        """The block at an index has lost a value."""
        self.count -= 1
        if block:
            self._highest[index] = block[-1]
            self._derived[index] = None
        else:
            del self._blocks[index], self._highest[index], self._derived[index]

    def at(self, index: int) -> Any:
        """The value at a place in the order, from 0."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        for block in self._blocks:
            if index < len(block):
                return block[index]
            index -= len(block)
        raise AssertionError("the count is the sum of the blocks' lengths")

    def lowest(self) -> Any:
        """The first value; IndexError if there is none."""
        return self._blocks[0][0]

    def highest(self) -> Any:
        """The last value; IndexError if there is none."""
        return self._highest[-1]
