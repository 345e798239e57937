"""A named window or table of a context as seen from outside: the rows of all its partitions,
or of the chosen ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sql.algebra.context.selectors import Selector, every
from sql.algebra.event import Delta, Event, merged
from sql.algebra.table.lookup import Name
from sql.algebra.table.named_window import NamedWindow
from sql.algebra.table.row import Change, Written
from sql.algebra.table.table import Table
from sql.plan.declared import IndexDeclaration, TableDeclaration, WindowDeclaration

Part = NamedWindow | Table
"""The relation of one partition."""

Parts = Callable[[Selector], Sequence[Part]]
"""The relations of the chosen live partitions, in order of allocation."""


class SpreadRelation:
    """Reads go over all parts; a row inserted goes to the parts it belongs to, a change to
    the part that has the row.

    parts      the relations of the partitions
    owners     the relations of the partitions that a row from outside belongs to
    is_routed  true if a row that a statement of the context inserts enters as one from outside does: a window
               holds what belongs to its partition. Rows of tables, and of windows whose type the context
               does not divide, stay in the partition they come from
    """

    batches = False

    def __init__(
        self,
        declaration: WindowDeclaration | TableDeclaration,
        parts: Parts,
        owners: Callable[[Mapping[str, Any], int], Sequence[Part]],
        *,
        is_routed: bool,
    ) -> None:
        self.declaration = declaration
        self.kind = "window" if isinstance(declaration, WindowDeclaration) else "table"
        self.name = declaration.name
        self.columns = tuple(declaration.columns)
        self.parts = parts
        self.owners = owners
        self.is_routed = is_routed
        self.named: dict[str, IndexDeclaration] = {}
        """Declared indexes: each partition has its own."""

    def chosen(self, selector: Selector) -> SpreadRelation:
        """The same relation with the rows of the chosen partitions only."""
        return SpreadRelation(
            self.declaration, lambda _: self.parts(selector), self.owners, is_routed=self.is_routed
        )

    def all_parts(self) -> Sequence[Part]:
        return self.parts(every)

    # --- reading --------------------------------------------------------------------------------------------

    @property
    def rows(self) -> AllRows:
        return AllRows(self.parts(every))

    @property
    def version(self) -> tuple[tuple[int, int], ...]:
        """Another one after every change."""
        return tuple((id(part), part.version) for part in self.parts(every))

    def content(self) -> Iterable[Event]:
        return [event for part in self.parts(every) for event in part.content()]

    def numbers(self) -> dict[Event, Any]:
        return {
            event: f"{place}.{event.seq}"
            for place, part in enumerate(self.parts(every))
            for event in _rows(part)
        }

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts(every))

    def by_key(self, equal: tuple[Name, ...]) -> None:
        """Over all partitions there is no index."""

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> None:
        """Nor one in order."""

    def create_index(self, name: str, equal: tuple[str, ...], ordered: str | None, *, unique: bool) -> None:
        """A declared index, in every partition; `indexed` makes it in those to come."""
        for part in self.parts(every):
            part.create_index(name, equal, ordered, unique=unique)
        self.named[name] = IndexDeclaration(name, equal, ordered, unique)

    def indexed(self, part: Part) -> Part:
        """The relation of a new partition, with the declared indexes."""
        for index in self.named.values():
            part.create_index(index.name, index.equal, index.ordered, unique=index.unique)
        return part

    # --- writing --------------------------------------------------------------------------------------------

    def insert(self, row: Mapping[str, Any], now_ms: int) -> Delta:
        """A row comes from outside the context; where its partition does not live it goes nowhere."""
        return merged([part.insert(row, now_ms) for part in self.owners(row, now_ms)])

    def change(self, rows: Sequence[Mapping[str, Any]], removed: Iterable[Event], now_ms: int) -> Delta:
        """Rows leave the parts that have them, and others come."""
        gone = tuple(removed)
        deltas = [self.insert(row, now_ms) for row in rows]
        for part in self.parts(every) if gone else ():
            held = set(part.content())
            deltas.append(part.change((), [event for event in gone if event in held], now_ms))
        return merged(deltas)

    def write(self, written: Written, removed: Sequence[Event], now_ms: int) -> Change:
        """Rows are updated and removed in the parts that have them, others come."""
        came: list[dict[str, Any]] = []
        before: list[dict[str, Any]] = []
        for part in self.parts(every):
            mine = set(part.content())
            changed = [item for item in written if item[0] in mine]
            gone = [event for event in removed if event in mine]
            if changed or gone:
                new, old = part.write(changed, gone, now_ms)
                came += new
                before += old
        for row in (row for event, row in written if event is None):
            came += [event.row for event in self.insert(row, now_ms).inserted]
        return came, before


class AllRows:
    """The rows of several relations, as one collection."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[Event]:
        for part in self.parts:
            yield from _rows(part)

    def __len__(self) -> int:
        return sum(len(_rows(part)) for part in self.parts)

    def __contains__(self, event: object) -> bool:
        return any(event in _rows(part) for part in self.parts)


def _rows(part: Part) -> Collection[Event]:
    """The rows of one part; of a batch window the last batch posted."""
    return part.rows if isinstance(part, NamedWindow) else part.content()
