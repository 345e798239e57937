"""Rows of a state in blocks, so that a snapshot need not pack those that have not changed.

A block holds the rows of neighbouring numbers. Its mark is made of their numbers and stamps: a row whose
content changes gets another stamp. Blocks of one mark are therefore equal, as long as their holder,
one instance in one run of the process, is the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, NamedTuple

ROWS_BITS = 8
"""Usually a block holds the rows whose numbers differ in these lowest bits only: 256."""

_holders = count(1)


def new_holder() -> int:
    """The number of a holder of rows that no other one in this process has."""
    return next(_holders)


class Block(NamedTuple):
    """The mark of some rows, and the function that packs them."""

    mark: str
    pack: Callable[[], list[Any]]


class RowBlocks:
    """The rows of one holder in their order, packed when they are wanted."""

    def __init__(
        self,
        holder: int,
        rows: Sequence[Any],
        numbers: Sequence[int],
        stamps: Sequence[int],
        pack: Callable[[Any], Any],
    ) -> None:
        """`numbers` and `stamps` of each row, in the order of `rows`;
        no stamps for rows that never change."""
        self.holder = holder
        self.rows = rows
        self.numbers = array("q", numbers)
        self.stamps = array("q", stamps)
        self.pack = pack
        self.bits = ROWS_BITS
        """A block holds the rows whose numbers differ in these lowest bits only."""

    def plain(self) -> list[Any]:
        """All rows, packed."""
        return [self.pack(row) for row in self.rows]

    def __iter__(self) -> Iterator[Block]:
        start = 0
        for end in self._ends():
            yield Block(self._mark(start, end), self._packing(start, end))
            start = end

    def _ends(self) -> Iterator[int]:
        """The places at which blocks end."""
        last = None
        for place, number in enumerate(self.numbers):
            block = number >> self.bits
            if block != last and place:
                yield place
            last = block
        if self.numbers:
            yield len(self.numbers)

    def _mark(self, start: int, end: int) -> str:
        found = blake2b(self.numbers[start:end].tobytes(), digest_size=12)
        found.update(self.stamps[start:end].tobytes())
        return f"{self.holder}.{found.hexdigest()}"

    def _packing(self, start: int, end: int) -> Callable[[], list[Any]]:
        return lambda: [self.pack(row) for row in self.rows[start:end]]


def plain(state: dict[str, Any]) -> dict[str, Any]:
    """A state without blocks: its rows as lists."""
    return {name: part.plain() if isinstance(part, RowBlocks) else part for name, part in state.items()}
