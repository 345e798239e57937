"""When statements have something to do in the partitions of a context: one heap for all of them."""

from __future__ import annotations

from heapq import heappop, heappush

from sql.engine.context.bodies import Body, Member


class BodyTimers:
    """The deadlines of all bodies: by time, then in order of the statements, then of the partitions."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int, int, Body]] = []
        """(due, order of the statement, id of the partition, number, body); what no
        longer holds goes on top."""
        self.scheduled = 0

    def clear(self) -> None:
        """Forget all deadlines."""
        self.heap.clear()

    def drop(self, member: Member) -> None:
        """Forget the deadlines of a statement."""
        self.heap = sorted(entry for entry in self.heap if entry[4].member is not member)

    def move(self, body: Body, due_ms: int | None) -> None:
        """A body has another deadline; None: none."""
        body.due_ms = due_ms
        if due_ms is not None:
            self.scheduled += 1
            heappush(self.heap, (due_ms, body.member.order, body.partition.id, self.scheduled, body))

    def next_ms(self) -> int | None:
        """The earliest deadline."""
        while self.heap:
            due, _, _, _, body = self.heap[0]
            if body.due_ms == due:
                return due
            heappop(self.heap)
        return None

    def pop(self) -> Body:
        """The body with the earliest deadline, which it has no longer."""
        body = heappop(self.heap)[4]
        body.due_ms = None
        return body
