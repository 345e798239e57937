"""Values in the order they came: the structure under first, last, collect and their relatives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from sql.aggregates.base import Event, Removal
from sql.aggregates.state import decode, encode


class Arrivals(Protocol):
    """Values in order of arrival; `at` counts from 0, negative numbers from the newest."""

    def add(self, value: Any, event: Event) -> None: ...
    def remove(self, value: Any, event: Event) -> None: ...
    def at(self, index: int) -> Any: ...
    def extend(self, other: Any) -> None: ...
    def snapshot(self) -> Any: ...
    def restore(self, state: Any) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...


class Queue:
    """Values leave in the order they came, or not at all."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: deque[Any] = deque()

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def add(self, value: Any, event: Event) -> None:
        """Put a value at the end."""
        self.values.append(value)

    def remove(self, value: Any, event: Event) -> None:
        """Take the oldest value out."""
        self.values.popleft()

    def at(self, index: int) -> Any:
        """The value at an index; IndexError outside."""
        return self.values[index]

    def extend(self, other: Queue) -> None:
        """Put the values of another at the end."""
        self.values.extend(other.values)

    def snapshot(self) -> Any:
        return [encode(value) for value in self.values]

    def restore(self, state: Any) -> None:
        self.values = deque(decode(value) for value in state)


class Scattered:
    """Values leave in any order: they are marked as gone, and swept out at the ends, or once they prevail."""

    __slots__ = ("entries", "places")

    def __init__(self) -> None:
        self.entries: deque[list[Any]] = deque()
        """[value, still there], in order of arrival; the first and the last are always there."""
        self.places: dict[int, list[Any]] = {}
        """An event's seq -> its entry."""

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Any]:
        return (value for value, there in self.entries if there)

    def add(self, value: Any, event: Event) -> None:
        """Put a value at the end."""
        entry = [value, True]
        self.entries.append(entry)
        self.places[event.seq] = entry

    def remove(self, value: Any, event: Event) -> None:
        """Take out the value that came with this event."""
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
        """Put the values of another at the end."""
        self.entries.extend(other.entries)
        self.places.update(other.places)

    def snapshot(self) -> Any:
        return [[seq, encode(entry[0])] for seq, entry in self.places.items()]

    def restore(self, state: Any) -> None:
        self.places = {seq: [decode(value), True] for seq, value in state}
        self.entries = deque(self.places.values())


def arrivals(removal: Removal) -> Arrivals:
    """The structure for a way of leaving."""
    return Scattered() if removal is Removal.ANY else Queue()
