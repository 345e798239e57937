"""Values in the order they came: the data structure of first, last, collect and their relatives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol, Self

from sql.aggregates.base import EventView, Removal
from sql.aggregates.plain_values import decode, encode
from sql.types import Plain, Saved


class Arrivals(Protocol):
    """Values in order of arrival; `at` counts from 0, negative numbers from the newest."""

    def add(self, value: object, event: EventView) -> None: ...
    def remove(self, value: object, event: EventView) -> None: ...
    def at(self, index: int) -> Any: ...
    def extend(self, other: Self) -> None: ...
    def snapshot(self) -> Saved: ...
    def restore(self, state: Saved) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...


class ArrivalOrder:
    """A queue for values that leave in the order they came, or never."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: deque[Any] = deque()

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def add(self, value: object, event: EventView) -> None:
        """Append a value."""
        self.values.append(value)

    def remove(self, value: object, event: EventView) -> None:
        """Remove the oldest value."""
        self.values.popleft()

    def at(self, index: int) -> Any:
        """The value at an index; IndexError outside."""
        return self.values[index]

    def extend(self, other: ArrivalOrder) -> None:
        """Append the values of another."""
        self.values.extend(other.values)

    def snapshot(self) -> list[Plain]:
        return [encode(value) for value in self.values]

    def restore(self, state: list[Plain]) -> None:
        self.values = deque(decode(value) for value in state)


class Scattered:
    """A list for removal in any order: gone values are marked, dropped at the ends or once they prevail."""

    __slots__ = ("entries", "places")

    def __init__(self) -> None:
        self.entries: deque[list[Any]] = deque()
        """[value, present], in order of arrival; the first and the last are always present."""
        self.places: dict[int, list[Any]] = {}
        """An event's seq -> its entry."""

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Any]:
        return (value for value, there in self.entries if there)

    def add(self, value: object, event: EventView) -> None:
        """Append a value."""
        entry = [value, True]
        self.entries.append(entry)
        self.places[event.seq] = entry

    def remove(self, value: object, event: EventView) -> None:
        """Remove the value that came with this event."""
        entry = self.places.pop(event.seq)
        entry[0], entry[1] = None, False
        entries = self.entries
        if len(entries) > 2 * len(self.places) + 8:
            self.entries = entries = deque(item for item in entries if item[1])
        while entries and not entries[0][1]:
            entries.popleft()
        while entries and not entries[-1][1]:
            entries.pop()

    def at(self, index: int) -> Any:
        """The value at an index; IndexError outside."""
        if not -len(self.places) <= index < len(self.places):
            raise IndexError(index)
        steps, entries = (index, iter(self.entries)) if index >= 0 else (-index - 1, reversed(self.entries))
        for value, there in entries:
            if there:
                if not steps:
                    return value
                steps -= 1
        raise AssertionError("as many entries are there as there are places")

    def extend(self, other: Scattered) -> None:
        """Append the values of another."""
        self.entries.extend(other.entries)
        self.places.update(other.places)

    def snapshot(self) -> list[tuple[int, Plain]]:
        return [(seq, encode(entry[0])) for seq, entry in self.places.items()]

    def restore(self, state: list[tuple[int, Plain]]) -> None:
        self.places = {seq: [decode(value), True] for seq, value in state}
        self.entries = deque(self.places.values())


def arrivals(removal: Removal) -> Arrivals:
    """The data structure for a way of leaving."""
    return Scattered() if removal is Removal.ANY else ArrivalOrder()
