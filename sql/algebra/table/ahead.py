"""Look-ups for a whole batch of events, before the first of them is processed.

Beside many rows most of a look-up is waiting for memory: for the slot of the index, then for the key. Between
two look-ups the text of a statement does so much that the waits never overlap. In the short loops here the
processor waits for several events at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.table.index import Bucket, sought

CACHED = 4096
"""So few keys stay in the processor's cache."""


class Ahead:
    """Finds the rows that have a column of an event as their key."""

    def __init__(self, index: Any, column: str) -> None:
        """`index`: by one column. `column`: that of the events."""
        self.index = index
        self.column = column

    def find(self, events: Sequence[dict[str, Any]]) -> list[Bucket | None]:
        """The rows found for each event, in order."""
        column = self.column
        keys = [key if (key := event.get(column)).__class__ is str else sought(key) for event in events]
        if len(self.index.by_key) > CACHED:
            for _ in map(hash, keys):  # a string keeps its hash, which makes the next loop short
                pass
        found: list[Bucket | None] = self.index.buckets(keys)
        return found
