"""The reads of compiled statements: columns, and values that operators keep."""

from __future__ import annotations

from collections.abc import Container, Mapping
from copy import copy

from sql.catalog.streams import Catalog
from sql.codegen.expression_code import Code
from sql.codegen.names import Names
from sql.codegen.own_reads import partition_text, relation_text, variable_text, whole_text
from sql.codegen.source import SourceWriter, identifier
from sql.plan.bound import Slot
from sql.rows import Shape, column_text, field_name


class RowReader:
    """The reads of columns of the row `e` through locals, each loaded once, before its first use.

    `slots` has the code of the values that operators keep. With `joined` a row is a tuple of the sources'
    rows, NULL if a source has none; with `rows` the row of each source is in a local of its own, NULL for
    those `nullable`. Those of sources that are `kept` are rows of relations.
    """

    def __init__(
        self,
        names: Names,
        catalog: Catalog,
        shape: Shape,
        slots: dict[tuple[str, object], Code],
        *,
        joined: bool,
        rows: Mapping[int, str] | None = None,
        nullable: Container[int] = (),
        kept: Container[int] = (),
    ) -> None:
        self.names = names
        self.catalog = catalog
        self.shape = shape
        self.slots = slots
        self.joined = joined
        self.rows = rows
        self.nullable = nullable
        self.kept = kept
        self.locals: dict[tuple[int, str], str] = {}
        self.loaded: set[tuple[int, str]] = set()

    def inner(self) -> RowReader:
        """The reader of a loop inside: it shares the columns loaded here, and adds loads of its own."""
        found = copy(self)
        found.locals, found.loaded = dict(self.locals), set(self.loaded)
        return found

    def read(self, source: int, column: str | None) -> Code:
        if column is None:
            row = self.row(source)
            value = whole_text(self.names, row.text, self.shape)
            return row if source in self.kept or value == row.text else Code(value, row.nullable)
        name = self.locals.get((source, column))
        if name is None:
            name = f"c_{identifier(column)}"
            if name in self.locals.values():
                name = f"{name}_{len(self.locals)}"
            self.locals[source, column] = name
        return Code(name, True, True)

    def row(self, source: int) -> Code:
        """The row of a source, of whatever shape."""
        if self.rows is None:
            row, is_nullable = f"e[{source}]" if self.joined else "e", self.joined
        else:
            row, is_nullable = self.rows[source], source in self.nullable
        if source not in self.kept:
            return Code(row, is_nullable, True)
        return Code(f"(None if {row} is None else {row}.row)" if is_nullable else f"{row}.row", is_nullable)

    def relation(self, name: str) -> str:
        """The text of the named window or table of this name."""
        return relation_text(self.names, self.catalog, name)

    def slot(self, slot: Slot) -> Code:
        if slot.kind == "subquery":
            return self.slots.get(("subquery", slot.key)) or Code(f"subqueries[{slot.key}](x)")
        if slot.kind in ("variable", "arrived"):
            return Code(variable_text(self.names, self.catalog, slot))
        if slot.kind == "context":
            return Code(partition_text("partition", slot))
        return self.slots[slot.kind, slot.key]

    def load(self, writer: SourceWriter) -> None:
        """Write the loads of columns that were read first since the last call."""
        for (source, column), name in self.locals.items():
            if (source, column) not in self.loaded:
                self.loaded.add((source, column))
                writer.line(f"{name} = {self._access(source, column)}")

    def _access(self, source: int, column: str) -> str:
        if self.rows is not None:
            row = self.rows[source]
            text = self._column_of(source, row, column)
            return f"None if {row} is None else {text}" if source in self.nullable else text
        if not self.joined:
            return self._column_of(source, "e", column)
        return f"None if (r := e[{source}]) is None else {self._column_of(source, 'r', column)}"

    def _column_of(self, source: int, row: str, column: str) -> str:
        if source in self.kept:
            return f"{row}.{field_name(column)}"
        return column_text(row, column, self.shape)
