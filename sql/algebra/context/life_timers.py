"""When time starts and ends partitions: one heap for all levels of a context."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from sql.algebra.context.partition import Level, Partition

END: Final = 0
START: Final = 1

SWEEP_PART: Final = 16
"""Of this part of the heap each entry is taken from the top;
where more is due at once the heap is gone through."""

Entry = tuple[int, int, int, int, int, Partition | Level]
"""(due, END or START, depth, id of the partition, number, owner)."""


class LifeTimers:
    """The deadlines in order; what no longer holds is dropped on top."""

    def __init__(self) -> None:
        self.heap: list[Entry] = []
        self.scheduled = 0

    def clear(self) -> None:
        """Forget all deadlines."""
        self.heap.clear()

    def start(self, level: Level) -> None:
        """A level's `due_ms` is set."""
        assert level.due_ms is not None
        self.scheduled += 1
        outer = 0 if level.parent is None else level.parent.id
        heappush(self.heap, (level.due_ms, START, level.definition.depth, outer, self.scheduled, level))

    def end(self, partition: Partition, due_ms: int) -> None:
        """Time will end a partition at `due_ms`, unless something does before."""
        assert partition.level is not None
        partition.due_ms = due_ms
        self.scheduled += 1
        depth = partition.level.definition.depth
        heappush(self.heap, (due_ms, END, depth, partition.id, self.scheduled, partition))

    def next_ms(self) -> int | None:
        """When time next ends or starts a partition."""
        while self.heap:
            if _holds(self.heap[0]):
                return self.heap[0][0]
            heappop(self.heap)
        return None

    def pop(self) -> Partition | Level:
        """The owner of the deadline that comes next."""
        return heappop(self.heap)[-1]

    def pop_with(self, first: Partition) -> list[Partition]:
        """A partition just popped, and those that time ends on its level at the same instant, in order."""
        found, level, due_ms = [first], first.level, first.due_ms
        for _ in range(len(self.heap) // SWEEP_PART):
            if self.next_ms() != due_ms:
                return found
            owner = self.heap[0][-1]
            if not isinstance(owner, Partition) or owner.level is not level:
                return found
            heappop(self.heap)
            found.append(owner)
        return found + self._swept(level, due_ms)

    def _swept(self, level: Level | None, due_ms: int | None) -> list[Partition]:
        """The next partitions of a level at one instant, taken out of the heap at once,
        up to one of another level."""
        mine = [entry for entry in self.heap if entry[0] == due_ms and entry[1] == END]
        if len(mine) < len(self.heap):
            others = [entry for entry in self.heap if entry[0] != due_ms or entry[1] != END]
            heapify(others)
        else:
            others = []
        self.heap = others
        mine.sort()
        found: list[Partition] = []
        for place, entry in enumerate(mine):
            owner = entry[5]
            if not _holds(entry):
                continue
            if not isinstance(owner, Partition) or owner.level is not level:
                for rest in mine[place:]:
                    heappush(others, rest)
                break
            found.append(owner)
        return found


def _holds(entry: Entry) -> bool:
    owner = entry[-1]
    return owner.due_ms == entry[0] and (
        entry[1] == START or (isinstance(owner, Partition) and owner.is_alive)
    )
