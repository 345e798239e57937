"""When queries have something to do: a heap of their deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from sql.engine.query import Running


class Timers:
    """The deadlines of queries, by name; each has a place in the order in which those of one instant fire."""

    def __init__(self, queries: Mapping[str, Running], order: Mapping[str, int]) -> None:
        self.queries = queries
        self.order = order
        self.suspended: set[str] = set()
        """Rules whose timers rest after a defect, until events come again."""
        self.heap: list[tuple[int, int, str]] = []
        """(deadline, order of deployment, rule); what no longer holds is dropped when it surfaces."""
        self._changed: dict[str, None] = {}
        """Queries whose deadline may have changed: it is read once, before the heap is, however many events
        they have taken since."""

    def schedule(self, name: str) -> None:
        """Note that a query may have something else to do next."""
        self._changed[name] = None

    def _update(self) -> None:
        """Put the deadlines of the queries that have changed into the heap."""
        queries, heap = self.queries, self.heap
        for name in self._changed:
            query = None if name in self.suspended else queries.get(name)
            deadline = None if query is None else query.next_deadline()
            if deadline is not None:
                entry = (deadline, self.order[name], name)
                if not heap or heap[0] != entry:
                    heappush(heap, entry)
        self._changed.clear()

    def schedule_all(self) -> None:
        """Note it of every query."""
        for name in self.queries:
            self.schedule(name)

    def next_ms(self) -> int | None:
        """The earliest instant of the processing clock at which a query has something to do."""
        if self._changed:
            self._update()
        while self.heap:
            deadline, place, name = self.heap[0]
            query = self.queries.get(name)
            if query is not None and self.order[name] == place and query.next_deadline() == deadline:
                return deadline
            heappop(self.heap)
        return None

    def due(self, instant: int) -> list[str]:
        """The queries due at or before `instant`, taken from the heap; several instants' in their order."""
        found: dict[str, tuple[int, int]] = {}
        while (deadline := self.next_ms()) is not None and deadline <= instant:
            first, order, name = heappop(self.heap)
            found.setdefault(name, (first, order))
        return sorted(found, key=found.__getitem__)
