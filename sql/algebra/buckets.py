"""Items by a key that several may have, in order of arrival; a key of one item costs no container."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class Buckets(Generic[Item]):
    """Items by key: `found` has the only item of a key, or all of several as a dictionary's keys.
    Items are objects that are compared by identity."""

    def __init__(self) -> None:
        self.found: dict[Hashable, Item | dict[Item, None]] = {}

    def add(self, key: Hashable, item: Item) -> None:
        known = self.found.setdefault(key, item)
        if known is item:
            return
        if isinstance(known, dict):
            known[item] = None
        else:
            self.found[key] = {known: None, item: None}

    def discard(self, key: Hashable, item: Item) -> None:
        known = self.found.get(key)
        if known is item:
            del self.found[key]
        elif isinstance(known, dict):
            known.pop(item, None)
            if not known:
                del self.found[key]

    def of(self, key: Hashable) -> Sequence[Item]:
        """The items of a key, in the order in which they came."""
        return items_of(self.found.get(key))


def items_of(found: Item | dict[Item, None] | None) -> Sequence[Item]:
    """The items that `Buckets.found` has for a key, as they are now."""
    if found is None:
        return ()
    return tuple(found) if isinstance(found, dict) else (found,)
