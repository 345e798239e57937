"""One live partition of one level of a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sql.algebra.context.level import Level


class Partition:
    """A partition of a level; on the innermost level it holds one instance of each statement of the context.

    level     the level it lives in
    key       its key, hash, label or distinct value: what the level finds it by
    row       what statements read: the properties of every level from the outermost on, by place, and the id
    id        its number in the order of allocation, over the whole context; outer ones are counted apart
    below     the level inside it; None on the innermost
    due_ms    when time ends it; None: never
    end_key   the key of its end, where that is found by hash; None: none, NULL
    bodies    the instances of the statements, in the order in which those were created
    """

    __slots__ = ("below", "bodies", "due_ms", "end_key", "id", "key", "level", "row")

    def __init__(self, level: Level, key: Any, values: list[Any], number: int) -> None:
        self.level: Level | None = level
        self.key = key
        before = () if level.parent is None else level.parent.row
        self.row: tuple[Any, ...] = (*before, values, number) if level.is_innermost else (*before, values)
        self.id = number
        self.below: Level | None = None
        self.due_ms: int | None = None
        self.end_key: Any = None
        self.bodies: tuple[Any, ...] = ()

    @property
    def is_alive(self) -> bool:
        """True if it has not ended."""
        return self.level is not None

    @property
    def values(self) -> list[Any]:
        """Its properties on its own level, by place."""
        values: list[Any] = self.row[-1 if self.below is not None else -2]
        return values

    def path(self) -> list[Partition]:
        """The partitions it lies in, from the outermost to itself."""
        found: list[Partition] = []
        at: Partition | None = self
        while at is not None:
            found.append(at)
            at = None if at.level is None else at.level.parent
        return found[::-1]
