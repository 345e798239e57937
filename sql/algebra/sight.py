"""The view of a window that `prev` and its kin read: single events by place,
without a copy of the content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterator, Reversible, Sequence
from itertools import dropwhile, islice
from typing import Protocol

from sql.algebra.event import Event


class Sight(ABC):
    """The content of a window as seen from one of its events. Places count from 0; outside the
    content there is None."""

    @abstractmethod
    def back(self, place: int, event: Event) -> Event | None:
        """So many places back from the event; in a ranked window so many places down from the best."""

    @abstractmethod
    def tail(self, place: int) -> Event | None:
        """So many places up from the oldest, or from the worst."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Event]:
        """All events, the newest or the best first."""


class Nothing(Sight):
    """No window."""

    def back(self, place: int, event: Event) -> Event | None:
        return None

    def tail(self, place: int) -> Event | None:
        return None

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Event]:
        return iter(())


class Walked(Collection[Event], Reversible[Event], Protocol):
    """A collection that can be walked from both ends."""


class ByArrival(Sight):
    """A content in order of arrival that can be walked from both ends. Cost: the places walked."""

    def __init__(self, content: Walked) -> None:
        self.content = content

    def back(self, place: int, event: Event) -> Event | None:
        if place < 0:
            return None
        from_event = dropwhile(lambda other: other is not event, iter(self))
        return next(islice(from_event, place, None), None)

    def tail(self, place: int) -> Event | None:
        return next(islice(self.content, place, None), None) if place >= 0 else None

    def __len__(self) -> int:
        return len(self.content)

    def __iter__(self) -> Iterator[Event]:
        return reversed(self.content)


class ByList(Sight):
    """A batch: a list in order of arrival."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events

    def back(self, place: int, event: Event) -> Event | None:
        own = bisect_left(self.events, event.seq, key=lambda other: other.seq)
        return self.events[own - place] if 0 <= own - place < len(self.events) and place >= 0 else None

    def tail(self, place: int) -> Event | None:
        return self.events[place] if 0 <= place < len(self.events) else None

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return reversed(self.events)


class ByRank(Sight):
    """A content in rank order, best first; `prev` counts from the best, whatever the event."""

    def __init__(self, entries: Sequence[tuple[object, int, Event]]) -> None:
        self.entries = entries

    def back(self, place: int, event: Event) -> Event | None:
        return self.entries[place][2] if 0 <= place < len(self.entries) else None

    def tail(self, place: int) -> Event | None:
        return (
            self.back(len(self.entries) - 1 - place, self.entries[0][2])
            if self.entries and place >= 0
            else None
        )

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Event]:
        return (entry[2] for entry in self.entries)
