"""The searches of a pattern of two events that wait for their second one."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence


class PairSearch:
    """A first event that waits for its second since an instant; ENDED: it waits no more."""

    __slots__ = ("begun", "key", "row")

    def __init__(self, row: object, key: Hashable, begun: int) -> None:
        self.row = row
        self.key = key
        self.begun = begun


ENDED = -1

Searches = PairSearch | deque[PairSearch]
"""Those of one key."""


class WaitingPairs:
    """Searches by key and in order of their start."""

    SWEEP_MIN = 64

    def __init__(self, *, keeps_order: bool) -> None:
        """`keeps_order`: whether time ends searches, or a bound the oldest."""
        self.keeps_order = keeps_order
        self.by_key: dict[Hashable, Searches] = {}
        """Most keys have one."""
        self.queue: deque[PairSearch] = deque()
        """In order of their start, what has ended among them; unused where no order is kept."""
        self.ended = 0
        """The number of ended ones in the queue."""
        self.live = 0

    def add(self, search: PairSearch) -> None:
        """A search begins."""
        self.live += 1
        if self.keeps_order:
            self.queue.append(search)
        key = search.key
        if key is None:
            return
        known = self.by_key.setdefault(key, search)
        if known is search:
            return
        if isinstance(known, deque):
            known.append(search)
        else:
            self.by_key[key] = deque((known, search))

    def end(self, search: PairSearch) -> None:
        """A search waits no more; where it stands in the queue it is passed over."""
        self._forget(search)
        self.live -= 1
        search.begun, search.row = ENDED, None
        self.ended += 1
        if self.ended > self.SWEEP_MIN and 2 * self.ended > len(self.queue):
            self._sweep()

    def oldest(self) -> PairSearch | None:
        """The search that began first."""
        queue = self.queue
        while queue and queue[0].begun == ENDED:
            queue.popleft()
            self.ended -= 1
        return queue[0] if queue else None

    def take_oldest(self) -> PairSearch:
        """The search that began first, which waits no more."""
        search = self.queue.popleft()
        self._forget(search)
        self.live -= 1
        return search

    def clear(self) -> None:
        """End all."""
        self.by_key.clear()
        self.queue.clear()
        self.live = self.ended = 0

    def __iter__(self) -> Iterator[PairSearch]:
        """In order of their start; of their keys, where no order is kept."""
        if self.keeps_order:
            return (search for search in self.queue if search.begun != ENDED)
        return (search for found in self.by_key.values() for search in each_of(found))

    def _sweep(self) -> None:
        """Take what has ended out of the queue."""
        self.queue = deque(each for each in self.queue if each.begun != ENDED)
        self.ended = 0

    def _forget(self, search: PairSearch) -> None:
        """Take a search out of those of its key."""
        known = self.by_key.get(search.key)
        if known is search:
            del self.by_key[search.key]
        elif isinstance(known, deque):
            if known[0] is search:
                known.popleft()
            else:
                known.remove(search)
            if not known:
                del self.by_key[search.key]


def each_of(found: Searches) -> Sequence[PairSearch]:
    """The searches of one key, which may end meanwhile."""
    return tuple(found) if isinstance(found, deque) else (found,)
