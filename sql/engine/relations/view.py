"""A named window or table as programs read it: rows as dicts, one by key, how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sql.algebra.table.searched import Relation
from sql.algebra.table.table import Table
from sql.emission import Row
from sql.errors import DataError
from sql.types import key_of


class RelationView:
    """Reads a relation between two events; it always shows the present rows.

    name     of the relation
    kind     `window` or `table`
    columns  names of the columns
    keys     those of the primary key; empty for a window, and for a table of one row
    """

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self.name: str = relation.name
        self.kind: str = relation.kind
        self.columns: tuple[str, ...] = relation.columns
        self.keys: tuple[str, ...] = tuple(relation.declaration.keys)

    def __len__(self) -> int:
        return len(self._relation)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def rows(self) -> list[Row]:
        """The rows, each a copy; of a relation of a context those of all partitions."""
        return [event.row for event in self._relation.content()]

    def get(self, *key: Any) -> Row | None:
        """The row of a primary key, None without one. Raises DataError if the relation
        has no key of so many values."""
        if not self.keys or len(key) != len(self.keys):
            wanted = ", ".join(self.keys) or "nothing"
            raise DataError(f"'{self.name}' is keyed by {wanted}, not by {len(key)} values")
        wanted_key = tuple(map(key_of, key))
        for part in self._relation.all_parts():
            assert isinstance(part, Table)
            row = part.row_at(wanted_key if len(key) > 1 else wanted_key[0])
            if row is not None:
                return row
        return None
