"""What a query gives out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Row = dict[str, Any]


@dataclass(slots=True)
class Emission:
    """One output of one rule at one instant.

    kind   rows   `inserted` are the rows (the remove stream's with `select rstream`), `removed` the old rows of
    irstream
           late   `inserted` holds an event that came after its window was closed
           error  `inserted` holds an event that could not be evaluated, `error` says why
    """

    rule: str
    at_ms: int
    kind: Literal["rows", "late", "error"] = "rows"
    inserted: list[Row] = field(default_factory=list)
    removed: list[Row] = field(default_factory=list)
    error: str | None = None


class Out(NamedTuple):
    """One output row on its way: with its group's key and its place in ORDER BY."""

    row: Row
    key: Any = None
    order: Any = None


class Update(NamedTuple):
    """The rows one partial update of the window gives: new and old, how many events it carried, which groups it
    touched."""

    new: list[Out]
    old: list[Out]
    inserted: int = 0
    removed: int = 0
    keys: tuple[Any, ...] = ()
