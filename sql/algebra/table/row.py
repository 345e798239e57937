"""The rows of relations: events that hold their columns themselves.

Each set of columns has a class of its own. A look-up that reads `row.temp` touches one object, where a dict
beside the event would make it touch three, and beside many rows that is what a look-up costs. `row.row` makes
a dict of the columns for whoever takes a whole row: posts, consumers, snapshots.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from sql.aggregates.base import Accumulator
from sql.algebra.event import Event
from sql.codegen.source import Generated, SourceWriter
from sql.emission import Row
from sql.rows import field_name

Change = tuple[list[Row], list[Row]]
"""The rows that came, also by an update, and those that were there before in their place or at all."""

NONE: dict[str, Accumulator] = {}
"""The accumulators of a row without aggregating columns."""


class KeptRow(Event, eq=False):
    """A row of a relation; each has a subclass with its columns."""

    @abstractmethod
    def put(self, row: Mapping[str, Any]) -> None:
        """All columns get the values of `row`; those it lacks are NULL."""


def shown(row: Any) -> Any:
    """A row of a query with dicts in the place of rows of relations, also among those of a joined one."""
    if row.__class__ is tuple:
        return tuple([shown(side) for side in row])
    return row.row if isinstance(row, KeptRow) else row


class TableRow(KeptRow, eq=False):
    """A row of a table with the accumulators of its aggregating columns.

    stale   these are not computed yet
    stamp   of its last write: writes between which a snapshot may lie have different ones
    """

    key: Hashable = None
    stamp: int = 0
    accumulators: dict[str, Accumulator] = NONE
    stale: bool = False

    def refresh(self) -> None:
        """Compute the columns that aggregate."""
        self.stale = False
        self.put(self.row | {name: item.result() for name, item in self.accumulators.items()})


@lru_cache(maxsize=4096)
def putter(columns: tuple[str, ...]) -> Callable[[Any, Mapping[str, Any]], None]:
    """The function that gives a row the values of these columns."""
    source = SourceWriter()
    with source.block("def put(self, row):"):
        source.line("get = row.get")
        for column in columns:
            source.line(f"self.{field_name(column)} = get({column!r})")
    found: Callable[[Any, Mapping[str, Any]], None] = Generated(source, {})["put"]
    return found


KeptClass = TypeVar("KeptClass", bound=KeptRow)


@lru_cache(maxsize=4096)
def row_class(columns: tuple[str, ...], base: type[KeptClass]) -> type[KeptClass]:
    """The class of rows with these columns, which are NULL at first."""
    fields = {column: field_name(column) for column in columns}
    source = SourceWriter()
    with source.block("def row(self):"), source.block("return {"):
        for column, field in fields.items():
            source.line(f"{column!r}: self.{field},")
        source.line("}")
    columns_of = Generated(source, {})["row"]
    found = msgspec.defstruct(
        base.__name__,
        [(field, Any, None) for field in fields.values()],
        bases=(base,),
        namespace={"row": property(columns_of), "put": putter(columns)},
        eq=False,
    )
    return cast("type[KeptClass]", found)
