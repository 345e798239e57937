"""Families: rules alike but for their names and the constants that a column is compared with. One loop runs
them all.

    dev = 'p1' ─┐
    dev = 'p2' ─┼─ one lookup per event, then one loop over (event, rule)
    dev = 'p3' ─┘

The lookup decides the condition that the loop leaves out. An event that fails in the loop is evaluated again
by its rule's own code, which reports it. Each rule keeps its own state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Generic, TypeVar

from sql.emission import Emission

Q = TypeVar("Q")
"""The kind of rules."""

G = TypeVar("G")
"""What their loop is given of a rule beside its events."""

At = int | Sequence[int]
"""The instant of some events, or in event time that of each."""


@dataclass(frozen=True, slots=True)
class FamilyKind(Generic[Q]):
    """The common parts of the rules of a family; equal signatures make one family."""

    signature: Hashable
    found: Callable[[], Family[Q, Any]]
    """Makes a family without rules."""


class Family(ABC, Generic[Q, G]):
    """The rules by their constants, none of which two rules have."""

    def __init__(self) -> None:
        self.by_value: dict[Any, G] = {}
        """The argument of the loop beside an event, by value."""
        self.values: dict[str, tuple[Any, ...]] = {}
        """The constants by rule."""
        self.queries: dict[G, Q] = {}
        """The rules, by the argument of the loop."""
        self.met: Counter[G] = Counter()
        """The number of events since the last reconciling, by the loop's argument."""

    def add(self, name: str, values: Iterable[Any], query: Q) -> None:
        given = self.given_for(query)
        self.queries[given] = query
        self.values[name] = tuple(values)
        self.by_value.update(dict.fromkeys(self.values[name], given))

    @abstractmethod
    def given_for(self, query: Q) -> G:
        """The argument of the loop beside the events of a rule."""

    def route(self, rows: Sequence[Any], values: Sequence[Any], at: At, out: list[Emission]) -> None:
        """Run the rules over their events. The values are of the column's kind, or NULL."""
        found = list(map(self.by_value.get, values))
        given = list(filter(None, found))
        if not given:
            return
        if len(given) < len(rows):
            rows = list(compress(rows, found))
            at = at if isinstance(at, int) else list(compress(at, found))
        self.met.update(given)
        self.run(given, rows, at, out)

    @abstractmethod
    def run(self, given: list[G], rows: Sequence[Any], at: At, out: list[Emission]) -> None:
        """Run the loop over events, each with the argument for its rule."""

    def take_woken(self) -> list[str]:
        """The rules that may have a new deadline since the last call."""
        return []

    @abstractmethod
    def reconcile(self) -> dict[str, int]:
        """Add the counts of the loop to its rules; returns the number of events of each."""
