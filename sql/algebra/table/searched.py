"""The interfaces of a search: rows and the indexes over them, wherever they are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from sql.algebra.event import Event
from sql.algebra.table.lookup import Name
from sql.algebra.table.sorted_rows import Span
from sql.plan.declared import TableDeclaration, WindowDeclaration

Bucket = Event | dict[Event, None]
"""The row of a key, or its rows in order of arrival: most keys have one, which needs no container."""

FindBucket = Callable[[Hashable], Bucket | None]
"""Finds the rows of a key without NULL; None if no row has it."""

ReadAhead = Callable[[Sequence[Bucket | None]], None]
"""Reads the columns of rows found that a statement reads later."""

FindRange = Callable[[Hashable, Span], Iterable[Event]]
"""Finds the rows of a key whose value is in a range; at least one of its ends is known."""


class KeyIndex(NamedTuple):
    """The look-ups of rows by the values of columns."""

    find: FindBucket
    is_single: bool = False
    """True if no key has several rows."""
    find_many: Callable[[Sequence[Hashable], ReadAhead], Sequence[Bucket | None]] | None = None
    """The same for many keys at once, which may read ahead; None where more than the key decides
    which rows are found."""


class Searched(Protocol):
    """Rows that conditions look for."""

    def content(self) -> Iterable[Event]:
        """All rows."""

    def by_key(self, equal: tuple[Name, ...]) -> KeyIndex | None:
        """The index by these columns; None where there can be none."""

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> FindRange | None:
        """The function that finds rows by these columns and in order of one more; None where there can be
        no index."""


class RowStore(Searched, Protocol):
    """The rows of a source."""

    @property
    def of_relation(self) -> bool:
        """True if the rows hold their columns themselves."""


class Relation(Searched, Protocol):
    """A named window or table, or one per partition of a context."""

    name: str
    kind: str
    columns: tuple[str, ...]

    @property
    def declaration(self) -> WindowDeclaration | TableDeclaration:
        """The statement that declared it."""

    def all_parts(self) -> Sequence[Relation]:
        """Itself, or the relations of all partitions."""

    def __len__(self) -> int:
        """The number of rows."""


class WindowRelation(Relation, Protocol):
    """A named window, or one per partition of a context."""

    @property
    def rows(self) -> Collection[Event]:
        """The rows, in order of arrival; of a batch window the last batch posted."""

    def numbers(self) -> dict[Event, Any]:
        """The rows, each with what a snapshot calls it."""
