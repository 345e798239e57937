"""What lives in partitions, by the property that a column of an event must equal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from sql.algebra.buckets import Buckets, items_of

Item = TypeVar("Item", bound=Hashable)

Find = Callable[[Any, Mapping[Any, Any]], Any]
"""What a dict by keys has for an event. Keys are normal forms (`sql.types.key_of`); NULL finds nothing."""

KeyOf = Callable[[None, Sequence[Any]], Any]
"""The key of a partition, of its properties; None, NULL, equals nothing."""


class ByProperty(Buckets[Item]):
    """Items by the key of their partition."""

    def __init__(self, find: Find, key: KeyOf) -> None:
        super().__init__()
        self.find = find
        self.key = key

    def enter(self, item: Item, row: Sequence[Any]) -> None:
        """Note an item of the partition with these properties."""
        key = self.key(None, row)
        if key is not None:
            self.add(key, item)

    def leave(self, item: Item, row: Sequence[Any]) -> None:
        """Forget it."""
        key = self.key(None, row)
        if key is not None:
            self.discard(key, item)

    def fitting(self, event: object) -> Sequence[Item]:
        """The items that an event finds, in order of allocation."""
        return items_of(self.find(event, self.found))
