"""An index of partitions, or of statements in them, by the property that a column of an event must equal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sql.algebra.buckets import Buckets, items_of
from sql.codegen.functions import FunctionSet
from sql.plan.context_plan import Correlation

Item = TypeVar("Item", bound=Hashable)


class Sides(NamedTuple):
    """The two sides of the equality. Keys are normal forms (`sql.types.key_of`); NULL equals nothing.

    find  what a dict by keys has for an event
    key   the key of a partition, of its properties
    """

    find: Callable[[Any, Mapping[Any, Any]], Any]
    key: Callable[[None, Sequence[Any]], Any]

    @classmethod
    def of(cls, correlation: Correlation, of_events: FunctionSet, of_partitions: FunctionSet) -> Sides:
        """The sides as functions."""
        return cls(
            of_events.find(correlation.event), of_partitions.wanted_key((correlation.partition,), (False,))
        )

    def fit(self, event: object, row: Sequence[Any]) -> bool:
        """True if the equality holds of an event and the partition with these properties."""
        return self.find(event, {self.key(None, row): True}) is not None


class ByProperty(Buckets[Item]):
    """Items by the key of their partition."""

    def __init__(self, sides: Sides) -> None:
        super().__init__()
        self.find, self.key = sides

    def enter(self, item: Item, row: Sequence[Any]) -> None:
        """Note an item of the partition with these properties."""
        key = self.key(None, row)
        if key is not None:
            self.add(key, item)

    def leave(self, item: Item, row: Sequence[Any]) -> None:
        key = self.key(None, row)
        if key is not None:
            self.discard(key, item)

    def fitting(self, event: object) -> Sequence[Item]:
        """The items that an event finds, in order of allocation."""
        return items_of(self.find(event, self.found))
