"""What is found by a key that several may have, in order of arrival; a key of one costs no container."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


class Buckets(Generic[Item]):
    """Items by key."""

    def __init__(self) -> None:
        self._one: dict[Any, Item] = {}
        """By key its only item."""
        self._several: dict[Any, dict[Item, None]] = {}

    def add(self, key: Any, item: Item) -> None:
        """Note an item."""
        several = self._several.get(key)
        if several is not None:
            several[item] = None
        elif key in self._one:
            self._several[key] = {self._one.pop(key): None, item: None}
        else:
            self._one[key] = item

    def discard(self, key: Any, item: Item) -> None:
        """Forget an item, if it is there."""
        if self._one.get(key) is item:
            del self._one[key]
            return
        several = self._several.get(key)
        if several is not None:
            several.pop(item, None)
            if not several:
                del self._several[key]

    def of(self, key: Any) -> list[Item]:
        """The items of a key, in the order in which they came."""
        one = self._one.get(key)
        return list(self._several.get(key, ())) if one is None else [one]
