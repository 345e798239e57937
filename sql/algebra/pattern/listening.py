"""The search for the listeners that an event fits: the filters of a pattern that have been started.

| conditions of the filter | structure | an event costs |
|---|---|---|
| none reads a tag | a dictionary with one key for all | O(listeners found) |
| `column = tag expression`, one or several | a dictionary by the values | one look-up |
| `column < tag expression` and its like | rows sorted by the tag's value | O(log n + listeners found) |
| others | a dictionary with one key for all, each listener tested | O(n) |

Listeners that are found are in no order here: the caller sorts them by the number of their start.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from sql.algebra.buckets import Buckets
from sql.algebra.table.sorted_rows import SortedRows

Binding = tuple[Any, ...]
"""The values of all tags in the order of the plan: an event's row, a list of rows under a repeat, or None."""


class Listener(Hashable, Protocol):
    """A filter that listens, with the tags bound before it and the number of its start."""

    binding: Binding
    seq: int

    @property
    def consume(self) -> int:
        """The level at which it takes an event from the other filters of its pattern."""

    def take(self, row: object) -> None:
        """An event that fits."""


EVERY: Hashable = ()
"""The key of all events and listeners where no condition finds some by a value."""


class FilterTests(NamedTuple):
    """The parts of a filter's condition as functions.

    own         the part that reads no tag: tested once per event, however many listen
    rest        what is left to test on each listener found
    of_row      the value of an event by which listeners are found, none by NULL; None: all are tested
    of_binding  that of the tags of a listener
    operator    the comparison between the two; None: they are equal
    """

    own: Callable[[Any], bool] | None
    rest: Callable[[Any, Binding], bool] | None
    of_row: Callable[[Any], Any] | None = None
    of_binding: Callable[[None, Binding], Any] | None = None
    operator: str | None = None


class Compared:
    """Listeners in order of their values, found by one that is compared with them."""

    def __init__(self, operator: str) -> None:
        """`operator`: that of `row value operator tag value`."""
        self.is_above = operator in (">", ">=")
        self.may_equal = operator in ("<=", ">=")
        self.sorted: SortedRows[Listener] = SortedRows()
        self.add, self.discard = self.sorted.add, self.sorted.remove

    def of(self, value: object) -> Sequence[Listener]:
        """The listeners below a value of an event, or those above it."""
        low, high = (None, value) if self.is_above else (value, None)
        return self.sorted.between(low, high, self.may_equal, self.may_equal)


class Listening:
    """The listeners of one filter of a pattern."""

    def __init__(self, tests: FilterTests) -> None:
        self.count = 0
        self.own, self.rest, self.of_row, self.of_binding, operator = tests
        self.by_value: Buckets[Listener] | Compared = Buckets() if operator is None else Compared(operator)

    def add(self, listener: Listener) -> None:
        self.count += 1
        value = EVERY if self.of_binding is None else self.of_binding(None, listener.binding)
        if value is not None:
            self.by_value.add(value, listener)

    def remove(self, listener: Listener) -> None:
        self.count -= 1
        value = EVERY if self.of_binding is None else self.of_binding(None, listener.binding)
        if value is not None:
            self.by_value.discard(value, listener)

    def find(self, row: object) -> Sequence[Listener]:
        """The listeners that an event that has passed `own` fits."""
        value = EVERY if self.of_row is None else self.of_row(row)
        if value is None:
            return ()
        found, rest = self.by_value.of(value), self.rest
        return found if rest is None else [each for each in found if rest(row, each.binding)]
