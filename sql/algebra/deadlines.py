"""Deadlines: of rules, of partitions and levels of contexts, of statements in partitions, of windows by key,
of the timers of a pattern.

A heap: what no longer holds is dropped when it comes to the top, or when it is more than half of all.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

SWEEP_MIN = 64
"""So many deadlines that no longer hold may stay in any heap."""


class HasDeadline(Protocol):
    """The owner of a deadline. `due_ms` is None where it has none."""

    due_ms: int | None


Owner = TypeVar("Owner", bound=HasDeadline)


class Deadlines(Generic[Owner]):
    """At most one deadline for each owner."""

    def __init__(self) -> None:
        self.heap: list[tuple[Any, ...]] = []
        """(due, *rank, number, owner)."""
        self.number = 0
        self.ended = 0
        """The number of entries that do not hold any more, as far as it is known."""

    def clear(self) -> None:
        self.heap.clear()
        self.ended = 0

    def move(self, owner: Owner, due_ms: int | None, *rank: int) -> None:
        """An owner has another deadline; None: none. `rank`: its place among those of the same instant."""
        if due_ms == owner.due_ms:
            return
        self.ended += owner.due_ms is not None
        owner.due_ms = due_ms
        if self.ended > SWEEP_MIN and 2 * self.ended > len(self.heap):
            self.heap = [entry for entry in self.heap if entry[-1].due_ms == entry[0]]
            heapify(self.heap)
            self.ended = 0
        if due_ms is not None:
            self.number += 1
            heappush(self.heap, (due_ms, *rank, self.number, owner))

    def next_ms(self) -> int | None:
        while self.heap:
            entry = self.heap[0]
            due_ms: int = entry[0]
            if entry[-1].due_ms == due_ms:
                return due_ms
            heappop(self.heap)
            self.ended -= self.ended > 0
        return None

    def first(self) -> Owner | None:
        """The owner of the earliest deadline."""
        return None if self.next_ms() is None else self.heap[0][-1]

    def pop(self) -> Owner:
        """The owner of the earliest deadline, which it has no longer."""
        owner: Owner = heappop(self.heap)[-1]
        owner.due_ms = None
        return owner
