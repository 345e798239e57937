"""The values of a subquery's only column, as IN reads them for one event.

Those that equal a value are found by an index, so that a test costs the same beside any number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Rows = Callable[[], Iterable[Any]]


class IndexedColumn(NamedTuple):
    """The column of a subquery's rows, and how its values are found.

    classes  the classes of values that can be compared with its values, NULL among them
    find     the rows whose value equals a value; those with NULL for NULL
    content  all rows
    any_of   True if one of the rows is a row of the subquery for an event
    values   the values of all rows of the subquery for an event
    """

    classes: frozenset[type]
    find: Callable[[Any], Iterable[Any]]
    content: Rows
    any_of: Callable[[Rows, Any], bool]
    values: Callable[[Any], list[Any]]


class Members:
    """The values for an event; `= ANY` and `!= ALL` alone are asked of them."""

    __slots__ = ("column", "event")

    def __init__(self, column: IndexedColumn, event: Any) -> None:
        self.column = column
        self.event = event

    def can_find(self, value: object) -> bool:
        """True if the index finds what equals a value."""
        return value.__class__ in self.column.classes

    def has(self, value: object) -> bool | None:
        """`value = ANY (values)` in three-valued logic; FALSE over no value."""
        column = self.column
        if value is None:
            return None if column.any_of(column.content, self.event) else False
        return True if self._find(value) else None if self._find(None) else False

    def _find(self, value: object) -> bool:
        found = self.column.find(value)
        return bool(found) and self.column.any_of(lambda: found, self.event)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.column.values(self.event))
