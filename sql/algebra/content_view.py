"""The view of a window that `prev` and its kin read: single events by place,
without a copy of the content."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Reversible, Sequence
from itertools import dropwhile, islice
from typing import Protocol

from sql.aggregates.structures.ordered_multiset import OrderedMultiset
from sql.algebra.event import Event


class Walked(Collection[Event], Reversible[Event], Protocol):
    """A collection that can be walked from both ends."""


class ContentView:
    """A content in order of arrival as seen from one of its events. Places count from 0; outside the
    content there is None. Cost: the places walked."""

    def __init__(self, content: Walked) -> None:
        self.content = content

    def back(self, place: int, event: Event) -> Event | None:
        """So many places back from the event; in a ranked window so many places down from the best."""
        if not 0 <= place < len(self):
            return None
        from_event = dropwhile(lambda other: other is not event, iter(self))
        return next(islice(from_event, place, None), None)

    def tail(self, place: int) -> Event | None:
        """So many places up from the oldest, or from the worst."""
        return next(islice(self.content, place, None), None) if 0 <= place < len(self) else None

    def __len__(self) -> int:
        return len(self.content)

    def __iter__(self) -> Iterator[Event]:
        """All events, the newest or the best first."""
        return reversed(self.content)


NOTHING = ContentView(())
"""That of no window."""


class BatchView(ContentView):
    """A batch: a list in order of arrival, in which an event is found by its number."""

    content: Sequence[Event]

    def back(self, place: int, event: Event) -> Event | None:
        own = bisect_left(self.content, event.seq, key=lambda other: other.seq)
        return self.content[own - place] if place >= 0 and 0 <= own - place < len(self.content) else None

    def tail(self, place: int) -> Event | None:
        return self.content[place] if 0 <= place < len(self.content) else None


class RankedView(ContentView):
    """A content in rank order, best first; `prev` counts from the best, whatever the event."""

    def __init__(self, entries: OrderedMultiset) -> None:
        """`entries`: tuples whose last element is the event."""
        super().__init__(())
        self.entries = entries

    def back(self, place: int, event: Event) -> Event | None:
        return self._at(place) if place >= 0 else None

    def tail(self, place: int) -> Event | None:
        return self._at(len(self) - 1 - place) if place >= 0 else None

    def _at(self, place: int) -> Event | None:
        found: Event | None = self.entries.at(place)[2] if 0 <= place < len(self) else None
        return found

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Event]:
        return (entry[2] for entry in self.entries)
