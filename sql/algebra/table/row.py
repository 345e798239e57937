"""The rows of relations: events that hold their columns themselves.

Each set of columns has a class of its own. A look-up that reads `row.temp` touches one object, where a dict
beside the event would make it touch three, and beside many rows that is what a look-up costs. The columns
stand first in memory, so that most rows have them in the cache line that a look-up reads anyway; the fields
of an event follow. `row.row` makes a dict of the columns for whoever takes a whole row: posts, consumers,
snapshots.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import msgspec

from sql.aggregates.base import Accumulator
from sql.algebra.event import Event
from sql.algebra.table.searched import ReadAhead
from sql.codegen.source import Generated, SourceWriter
from sql.emission import Row
from sql.rows import field_name

Change = tuple[list[Row], list[Row]]
"""The rows that came, also by an update, and those that were there before in their place or at all."""

Written = Sequence[tuple[Event | None, Row]]
"""Rows to write, in order, each with the row that it updates; None where it is a new one."""


Field = tuple[str, Any, Any]
"""Name, type and default of a field."""

if TYPE_CHECKING:

    class _Row(Event, eq=False):
        row: Any = None
        time_ms: int = 0
        seq: int = 0

else:  # the fields of a base class stand before those of its subclasses
    _Row = msgspec.Struct


class KeptRow(_Row, eq=False):
    """A row of a relation, with the fields of an event. Each relation has a subclass with its columns."""

    _after_columns: ClassVar[tuple[Field, ...]] = (
        ("time_ms", int, 0),
        ("seq", int, 0),
        ("extra", Any, None),
        ("group", Any, None),
        ("values", Any, None),
    )

    @abstractmethod
    def put(self, row: Mapping[str, Any]) -> None:
        """All columns get the values of `row`; those it lacks are NULL."""


class TableRow(KeptRow, eq=False):
    """A row of a table.

    stamp         of its last write: writes between which a snapshot may lie have different ones
    accumulators  of its aggregating columns, in their order
    stale         these columns are not computed yet
    """

    if TYPE_CHECKING:
        stamp: int = 0
        accumulators: tuple[Accumulator, ...] = ()
        stale: bool = False

    _after_columns: ClassVar[tuple[Field, ...]] = (
        *KeptRow._after_columns,
        ("stamp", int, 0),
        ("accumulators", Any, ()),
        ("stale", bool, False),
    )

    @abstractmethod
    def refresh(self) -> None:
        """Compute the columns that aggregate."""


def columns_text(row: str, columns: Sequence[str]) -> str:
    """The text of the columns of a row, which stands in the local `row`, as a dict."""
    return f"{{{', '.join(f'{column!r}: {row}.{field_name(column)}' for column in columns)}}}"


KeptClass = TypeVar("KeptClass", bound=KeptRow)


@lru_cache(maxsize=4096)
def row_class(
    columns: tuple[str, ...], base: type[KeptClass], computed: tuple[str, ...] = ()
) -> type[KeptClass]:
    """The class of rows with these columns, which are NULL at first; `computed`: those that aggregate."""
    methods = _methods(columns, computed)
    fields = {column: field_name(column) for column in columns}
    found = msgspec.defstruct(
        base.__name__,
        [*((field, Any, None) for field in fields.values()), *base._after_columns],
        bases=(base,),
        namespace={**methods, "row": property(methods["row"]), "__columns__": fields},
        eq=False,
        gc=bool(computed),  # without accumulators no cycle can lead back to a row
    )
    return cast("type[KeptClass]", found)


@lru_cache(maxsize=4096)
def read_ahead(columns: tuple[str, ...]) -> ReadAhead:
    """The function that reads these columns of rows that were found by their keys. A test in its loop would
    cost more than it reads ahead: it raises AttributeError where a key has no row, or several."""
    source = SourceWriter()
    with source.block("def read(found):"), source.block("for y in found:"):
        for column in columns:
            source.line(f"y.{field_name(column)}")
        if not columns:
            source.line("pass")
    read: ReadAhead = Generated(source, {})["read"]
    return read


def _methods(columns: tuple[str, ...], computed: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    """The functions of rows that name columns."""
    source = SourceWriter()
    with source.block("def row(self):"):
        source.line(f"return {columns_text('self', columns)}")
    with source.block("def put(self, row):"):
        source.line("get = row.get")
        for column in columns:
            source.line(f"self.{field_name(column)} = get({column!r})")
    with source.block("def refresh(self):"):
        for place, column in enumerate(computed):
            source.line(f"self.{field_name(column)} = self.accumulators[{place}].result()")
        if computed:
            source.line("self.stale = False")
    found = Generated(source, {})
    return {name: found[name] for name in ("row", "put", "refresh")}
