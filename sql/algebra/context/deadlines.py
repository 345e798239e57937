"""Deadlines of partitions, of levels, of statements in partitions: a heap, from which what no longer holds is
dropped when it comes to the top."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar


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

    def clear(self) -> None:
        """Forget all deadlines."""
        self.heap.clear()

    def move(self, owner: Owner, due_ms: int | None, *rank: int) -> None:
        """An owner has another deadline; None: none. `rank`: its place among those of the same instant."""
        if due_ms == owner.due_ms:
            return
        owner.due_ms = due_ms
        if due_ms is not None:
            self.number += 1
            heappush(self.heap, (due_ms, *rank, self.number, owner))

    def next_ms(self) -> int | None:
        """The earliest deadline."""
        while self.heap:
            entry = self.heap[0]
            due_ms: int = entry[0]
            if entry[-1].due_ms == due_ms:
                return due_ms
            heappop(self.heap)
        return None

    def pop(self) -> Owner:
        """The owner of the earliest deadline, which it has no longer."""
        owner: Owner = heappop(self.heap)[-1]
        owner.due_ms = None
        return owner
