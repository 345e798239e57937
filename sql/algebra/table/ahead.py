"""Look-ups for a whole batch of events, before the first of them is processed.

Beside many rows most of a look-up is waiting for memory: for the slot of the index, then for the key. Between
two look-ups the text of a statement does so much that the waits never overlap. In the short loops here the
processor waits for several events at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from sql.algebra.table.index import sought
from sql.algebra.table.searched import Bucket, PlainIndex

CACHED = 4096
"""So few keys stay in the processor's cache."""


def keys_of(events: Sequence[dict[str, Any]], column: str) -> list[Hashable]:
    """For each event the key of the rows that equal its value of a column."""
    return [key if (key := event.get(column)).__class__ is str else sought(key) for event in events]


def found_at(index: PlainIndex, keys: Sequence[Hashable]) -> Sequence[Bucket | None]:
    """The rows of each key, in order; `index`: by one column."""
    if len(index.by_key) > CACHED:
        for _ in map(hash, keys):  # a string keeps its hash, which makes the next loop short
            pass
    return index.buckets(keys)
