"""The live partitions of a context, in order of allocation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from sql.algebra.context.partition import Partition

SPARE: Final = 64
"""The number of ended ones that may stay: a list of few partitions is not made anew with each end."""

_id_of = attrgetter("id")


class Living:
    """A list by id, eight bytes a partition; those that have ended leave it together, when they are half as
    many as the others."""

    def __init__(self, partitions: Iterable[Partition] = ()) -> None:
        self._items = sorted(partitions, key=_id_of)
        self._first = 0
        """Those before this place have ended."""
        self._count = len(self._items)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Partition]:
        return (item for item in self._items if item.level is not None)

    def add(self, partition: Partition) -> None:
        """A partition with an id above all others."""
        self._items.append(partition)
        self._count += 1

    def forget(self, count: int = 1) -> None:
        """Note that so many of them have ended."""
        self._count -= count
        ended = len(self._items) - self._count
        if ended > SPARE + self._count // 2:
            self._items = list(self)
            self._first = 0

    def oldest(self) -> Partition:
        """The one that was allocated first."""
        while self._items[self._first].level is None:
            self._first += 1
        return self._items[self._first]

    def get(self, number: int) -> Partition | None:
        """The one with this id, if it lives."""
        place = bisect_left(self._items, number, key=_id_of)
        found = self._items[place] if place < len(self._items) else None
        return found if found is not None and found.id == number and found.level is not None else None
