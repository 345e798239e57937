"""The search for the listeners that an event fits: the filters of a pattern that have been started.

| conditions of the filter | structure | an event costs |
|---|---|---|
| none reads a tag | the listeners in order of their start | O(listeners found) |
| `column = tag expression`, one or several | a dictionary by the values | one look-up |
| `column < tag expression` and its like | a list sorted by the tag's value | O(log n + listeners found) |
| others | the listeners, tested one by one | O(n) |

Listeners that are found are in no order here: the caller sorts them by the number of their start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable
from math import inf
from typing import Any, NamedTuple, Protocol

from sql.algebra.buckets import Buckets
from sql.types import OrderKey, order_key

Binding = tuple[Any, ...]
"""The values of all tags in the order of the plan: an event's row, a list of rows under a repeat, or None."""


class Listener(Hashable, Protocol):
    """A filter that listens, with the tags bound before it and the number of its start."""

    binding: Binding
    number: int

    @property
    def consume(self) -> int:
        """The level at which it takes an event from the other filters of its pattern."""

    def hear(self, row: object) -> None:
        """An event that fits."""


def _nothing(*read: object) -> None:
    """No value."""


class FilterTests(NamedTuple):
    """The parts of a filter's condition as functions.

    own         the part that reads no tag: tested once per event, however many listen
    rest        what is left to test on each listener found
    of_row      the value of an event by which listeners are found
    of_binding  that of the tags of a listener; None, NULL, is never found
    """

    own: Callable[[Any], bool] | None
    rest: Callable[[Any, Binding], bool] | None
    of_row: Callable[[Any], Any] = _nothing
    of_binding: Callable[[None, Binding], Any] = _nothing


class Listening(ABC):
    """The listeners of one filter of a pattern."""

    def __init__(self, tests: FilterTests) -> None:
        self.count = 0
        self.own, self.rest, self.of_row, self.of_binding = tests

    @abstractmethod
    def add(self, listener: Listener) -> None: ...

    @abstractmethod
    def remove(self, listener: Listener) -> None: ...

    @abstractmethod
    def find(self, row: object, found: list[Listener]) -> None:
        """Append the listeners that an event that has passed `own` fits."""

    def _tested(self, row: object, listeners: Iterable[Listener], found: list[Listener]) -> None:
        rest = self.rest
        if rest is None:
            found.extend(listeners)
        else:
            found.extend(listener for listener in listeners if rest(row, listener.binding))


class InOrder(Listening):
    """All listeners, in order of their start: one key for all would cost 4 % more."""

    def __init__(self, tests: FilterTests) -> None:
        super().__init__(tests)
        self.listeners: dict[Listener, None] = {}

    def add(self, listener: Listener) -> None:
        self.listeners[listener] = None
        self.count += 1

    def remove(self, listener: Listener) -> None:
        del self.listeners[listener]
        self.count -= 1

    def find(self, row: object, found: list[Listener]) -> None:
        self._tested(row, self.listeners, found)


class ByKey(Listening):
    """Listeners by the values that their tags demand of the event."""

    def __init__(self, tests: FilterTests) -> None:
        super().__init__(tests)
        self.by_key: Buckets[Listener] = Buckets()

    def add(self, listener: Listener) -> None:
        self.count += 1
        key = self.of_binding(None, listener.binding)
        if key is not None:
            self.by_key.add(key, listener)

    def remove(self, listener: Listener) -> None:
        self.count -= 1
        key = self.of_binding(None, listener.binding)
        if key is not None:
            self.by_key.discard(key, listener)

    def find(self, row: object, found: list[Listener]) -> None:
        key = self.of_row(row)
        hit = None if key is None else self.by_key.found.get(key)
        if hit is None:
            return
        if isinstance(hit, dict):
            self._tested(row, hit, found)
        elif self.rest is None or self.rest(row, hit.binding):
            found.append(hit)


Entry = tuple[OrderKey, int, Listener]
"""The key of a value, the number of the start, which no other has, and the listener."""


class ByRange(Listening):
    """Listeners sorted by the value of the tag that the event is compared with.

    `operator` is that of `row value operator tag value`. A listener whose value is NULL is never found.
    """

    CHUNK = 512
    """Listeners in a run: inserting moves a run only."""

    def __init__(self, tests: FilterTests, operator: str) -> None:
        super().__init__(tests)
        self.operator = operator
        self.runs: list[list[Entry]] = []
        """Runs in ascending order, none empty."""

    def _entry(self, listener: Listener) -> Entry | None:
        value = self.of_binding(None, listener.binding)
        return None if value is None else (order_key(value), listener.number, listener)

    def _run(self, entry: Entry) -> int:
        """The run an entry belongs to."""
        return max(0, bisect_right(self.runs, entry, key=lambda run: run[0]) - 1)

    def add(self, listener: Listener) -> None:
        self.count += 1
        entry = self._entry(listener)
        if entry is None:
            return
        if not self.runs:
            self.runs.append([entry])
            return
        place = self._run(entry)
        run = self.runs[place]
        insort(run, entry)
        if len(run) > 2 * self.CHUNK:
            self.runs[place : place + 1] = [run[: self.CHUNK], run[self.CHUNK :]]

    def remove(self, listener: Listener) -> None:
        self.count -= 1
        entry = self._entry(listener)
        if entry is None:
            return
        place = self._run(entry)
        run = self.runs[place]
        del run[bisect_left(run, entry)]
        if not run:
            del self.runs[place]

    def find(self, row: object, found: list[Listener]) -> None:
        value = self.of_row(row)
        if value is None or value != value:
            return
        key = order_key(value)
        # `row > tag` finds the listeners below the row's value, `row < tag` those above.
        edge = (key, inf) if self.operator in (">=", "<") else (key, 0)
        first = bisect_left(self.runs, edge, key=lambda run: run[-1])
        split = self.runs[first : first + 1]
        if self.operator in (">", ">="):
            chosen = [*self.runs[:first], *(run[: bisect_left(run, edge)] for run in split)]
        else:
            chosen = [*(run[bisect_left(run, edge) :] for run in split), *self.runs[first + 1 :]]
        for run in chosen:
            self._tested(row, (entry[2] for entry in run if entry[0][0] == key[0]), found)
