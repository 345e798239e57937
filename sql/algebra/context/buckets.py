"""Items by a key that several may have, in order of arrival; a key of one item costs no container."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


class BucketItems(dict[Item, None]):
    """The items of a key that has several."""


class Buckets(Generic[Item]):
    """Items by key: `found` has the only item of a key, or all of them as `BucketItems`."""

    def __init__(self) -> None:
        self.found: dict[Any, Item | BucketItems[Item]] = {}

    def add(self, key: object, item: Item) -> None:
        """Note an item."""
        known = self.found.setdefault(key, item)
        if known is item:
            return
        if not isinstance(known, BucketItems):
            known = self.found[key] = BucketItems({known: None})
        known[item] = None

    def discard(self, key: object, item: Item) -> None:
        """Forget an item, if it is there."""
        known = self.found.get(key)
        if known is item:
            del self.found[key]
        elif isinstance(known, BucketItems):
            known.pop(item, None)
            if not known:
                del self.found[key]

    def of(self, key: object) -> Collection[Item]:
        """The items of a key, in the order in which they came."""
        return items_of(self.found.get(key))


def items_of(found: Item | BucketItems[Item] | None) -> Collection[Item]:
    """The items that `Buckets.found` has for a key, as they are now."""
    if found is None:
        return ()
    return tuple(found) if isinstance(found, BucketItems) else (found,)
