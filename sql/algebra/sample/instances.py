"""The instances of a window: one for the rule, or one for each key of OVER(PARTITION BY);
their timers are one heap.

An instance stands in the heap at its deadline or before: one that is found there too early is put where it
belongs. So a session that each event prolongs costs nothing per event.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from math import inf

from sql.algebra.sample.instance import Instance
from sql.algebra.sample.windows.window import Window


class Instances:
    """The instances of one core. `p.order` is None for one that is not among them (yet)."""

    def __init__(self, window: Window, make: Callable[[Hashable], Instance], *, keyed: bool) -> None:
        self.window = window
        self.make = make
        self.keyed = keyed
        self.count = 0
        self.parts: dict[Hashable, Instance] = {}
        self.heap: list[tuple[int, int, Instance]] = []
        self.whole: Instance | None = None
        """The only instance of a window without keys."""
        self.clear()

    def clear(self) -> None:
        """Hold nothing."""
        self.count = 0
        self.parts.clear()
        self.heap.clear()
        self.whole = None
        if not self.keyed:
            self.whole = self.make(())
            self.register(self.whole)

    def register(self, p: Instance) -> None:
        """An instance that has taken its first event in."""
        p.order = self.count
        self.count += 1
        self.parts[p.key] = p

    def leave_blank(self, p: Instance) -> None:
        """Forget the instance of a key if it holds nothing."""
        if self.keyed and p.order is not None and self.window.is_blank(p):
            del self.parts[p.key]
            p.order = None

    # --- timers ---------------------------------------------------------------------------------------------

    @property
    def due_ms(self) -> float:
        """An instant before which nothing is due."""
        return self.heap[0][0] if self.heap else inf

    def queue(self, p: Instance) -> None:
        """Note the deadline of an instance."""
        deadline = self.window.deadline(p)
        if deadline is not None and p.order is not None and (p.queued is None or deadline < p.queued):
            p.queued = deadline
            heappush(self.heap, (deadline, p.order, p))

    def _first(self) -> Instance | None:
        """The instance that is due next, with its deadline on top of the heap; None if there is none."""
        while self.heap:
            at_ms, order, p = self.heap[0]
            if p.order == order and self.window.deadline(p) == at_ms:
                return p
            heappop(self.heap)
            if p.queued == at_ms:
                p.queued = None
            if p.order == order:
                self.queue(p)
        return None

    def next_deadline(self) -> int | None:
        """When something is due next."""
        heap = self.heap
        if not heap:
            return None
        at_ms, order, p = heap[0]
        if p.order == order and self.window.deadline(p) == at_ms:
            return at_ms
        return None if self._first() is None else heap[0][0]

    def take_due(self, until_ms: int) -> Instance | None:
        """The instance that is due next, at `until_ms` at the latest, taken from the heap;
        None if there is none."""
        p = self._first()
        if p is None or self.heap[0][0] > until_ms:
            return None
        heappop(self.heap)
        p.queued = None
        return p
