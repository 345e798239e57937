"""Filters: an event of a stream that fits a condition, and the search for the listeners that an event fits.

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
from typing import Any

from sql.algebra.buckets import Buckets
from sql.algebra.pattern.machine import Binding, Machine
from sql.algebra.pattern.nodes import PatternInstance, PatternPart
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.types import OrderKey, order_key

Test = Callable[[Any, Binding], bool]
"""Tests of an event against a condition, with the tags of a listener."""


class Listening(ABC):
    """The listeners of one filter of a pattern."""

    def __init__(self, rest: Test | None) -> None:
        self.count = 0
        self.rest = rest
        """The part of the condition that is left to test on each listener found."""

    @abstractmethod
    def add(self, listener: Filter) -> None: ...

    @abstractmethod
    def remove(self, listener: Filter) -> None: ...

    @abstractmethod
    def find(self, row: object, found: list[Filter]) -> None:
        """Append the listeners that an event fits."""

    def _tested(self, row: object, listeners: Iterable[Filter], found: list[Filter]) -> None:
        rest = self.rest
        if rest is None:
            found.extend(listeners)
        else:
            found.extend(listener for listener in listeners if rest(row, listener.binding))


class InOrder(Listening):
    """All listeners, in order of their start."""

    def __init__(self, rest: Test | None) -> None:
        super().__init__(rest)
        self.listeners: dict[Filter, None] = {}

    def add(self, listener: Filter) -> None:
        self.listeners[listener] = None
        self.count += 1

    def remove(self, listener: Filter) -> None:
        del self.listeners[listener]
        self.count -= 1

    def find(self, row: object, found: list[Filter]) -> None:
        self._tested(row, self.listeners, found)


class ByKey(Listening):
    """Listeners by the values that their tags demand of the event. A key is None if it holds NULL."""

    def __init__(
        self, rest: Test | None, of_row: Callable[[Any], Hashable], of_binding: Callable[..., Hashable]
    ) -> None:
        super().__init__(rest)
        self.of_row = of_row
        self.of_binding = of_binding
        self.by_key: Buckets[Filter] = Buckets()

    def add(self, listener: Filter) -> None:
        self.count += 1
        key = self.of_binding(None, listener.binding)
        if key is not None:
            self.by_key.add(key, listener)

    def remove(self, listener: Filter) -> None:
        self.count -= 1
        key = self.of_binding(None, listener.binding)
        if key is not None:
            self.by_key.discard(key, listener)

    def find(self, row: object, found: list[Filter]) -> None:
        key = self.of_row(row)
        hit = None if key is None else self.by_key.found.get(key)
        if hit is None:
            return
        if isinstance(hit, dict):
            self._tested(row, hit, found)
        elif self.rest is None or self.rest(row, hit.binding):
            found.append(hit)


class ByRange(Listening):
    """Listeners sorted by the value of the tag that the event is compared with.

    `operator` is that of `row value operator tag value`. A listener whose value is NULL is never found.
    """

    CHUNK = 512
    """Listeners in a run: inserting moves a run only."""

    def __init__(
        self, rest: Test | None, of_row: Callable[[Any], Any], of_binding: Callable[..., Any], operator: str
    ) -> None:
        super().__init__(rest)
        self.of_row = of_row
        self.of_binding = of_binding
        self.operator = operator
        self.runs: list[list[tuple[Any, int, Filter]]] = []
        """Runs of (key of the value, number of the start, listener), ascending, none empty."""

    def _entry(self, listener: Filter) -> tuple[Any, int, Filter] | None:
        value = self.of_binding(None, listener.binding)
        return None if value is None else (order_key(value), listener.number, listener)

    def _run(self, entry: tuple[Any, int, Filter]) -> int:
        """The run an entry belongs to."""
        return max(0, bisect_right(self.runs, entry[:2], key=lambda run: run[0][:2]) - 1)

    def add(self, listener: Filter) -> None:
        self.count += 1
        entry = self._entry(listener)
        if entry is None:
            return
        if not self.runs:
            self.runs.append([entry])
            return
        place = self._run(entry)
        run = self.runs[place]
        insort(run, entry, key=lambda item: item[:2])
        if len(run) > 2 * self.CHUNK:
            self.runs[place : place + 1] = [run[: self.CHUNK], run[self.CHUNK :]]

    def remove(self, listener: Filter) -> None:
        self.count -= 1
        entry = self._entry(listener)
        if entry is None:
            return
        place = self._run(entry)
        run = self.runs[place]
        del run[bisect_left(run, entry[:2], key=lambda item: item[:2])]
        if not run:
            del self.runs[place]

    def find(self, row: object, found: list[Filter]) -> None:
        value = self.of_row(row)
        if value is None or value != value:
            return
        key = order_key(value)
        for run in self.runs:
            # `row > tag` finds the listeners below the row's value, `row < tag` those above.
            if self.operator in (">", ">="):
                if run[0][0] > key:
                    break
                chosen = self._below(run, key)
            else:
                if run[-1][0] < key:
                    continue
                chosen = self._above(run, key)
            self._tested(row, (entry[2] for entry in chosen if entry[0][0] == key[0]), found)

    def _below(self, run: list[tuple[Any, int, Filter]], key: OrderKey) -> list[tuple[Any, int, Filter]]:
        cut = (bisect_right if self.operator == ">=" else bisect_left)(run, key, key=lambda item: item[0])
        return run[:cut]

    def _above(self, run: list[tuple[Any, int, Filter]], key: OrderKey) -> list[tuple[Any, int, Filter]]:
        cut = (bisect_left if self.operator == "<=" else bisect_right)(run, key, key=lambda item: item[0])
        return run[cut:]


class Filter(PatternInstance):
    """A filter that listens."""

    __slots__ = ("begun",)
    begun: int
    """The time of its start in ms."""

    def start(self) -> None:
        machine = self.node.machine
        self.number = machine.number = machine.number + 1
        self.begun = machine.now
        self.node.listening.add(self)

    def hear(self, row: object) -> None:
        """An event that fits."""
        parent, node = self.parent, self.node
        if parent is None:
            return  # an earlier listener of the same event has ended this one
        tag, binding = node.tag, self.binding
        if tag is not None:
            binding = (*binding[:tag], row, *binding[tag + 1 :])
        if node.stays:
            parent.on_true(self, binding, over=False)
        else:
            node.listening.remove(self)
            self.parent = None
            parent.on_true(self, binding, over=True)

    def quit(self) -> None:
        if self.parent is not None and self.number:  # not where its parent ends before it has been started
            self.node.listening.remove(self)
        self.parent = None

    def pack(self, packer: Packer) -> tuple[int, int, int]:
        return self.number, packer.binding(self.binding), self.begun

    def unpack(self, state: tuple[int, int, int], unpacker: Unpacker) -> None:
        self.number, binding, self.begun = state
        self.binding = unpacker.binding(binding)
        unpacker.listeners.append((self.number, lambda: self.node.listening.add(self)))


class FilterNode(PatternPart):
    """A filter. `stays`: under `every` and repeats it goes on listening after a match."""

    instance = Filter

    def __init__(
        self,
        machine: Machine,
        *,
        stream: str,
        tag: int | None,
        consume: int,
        stays: bool,
        own: Callable[[Any], bool] | None,
        listening: Listening,
    ) -> None:
        super().__init__(machine)
        self.stream = stream
        self.tag = tag
        self.consume = consume
        self.stays = stays
        self.own = own
        """The part of the condition that reads no tag: tested once per event, however many listen."""
        self.listening = listening

    def find(self, row: object, found: list[Filter]) -> None:
        """Append the listeners that an event fits."""
        if self.listening.count and (self.own is None or self.own(row)):
            self.listening.find(row, found)
