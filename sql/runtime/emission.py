"""What a query gives out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

Row = dict[str, Any]


def record(cls: Any) -> Any:
    """A slotted dataclass made again as a msgspec struct where msgspec is installed: many are made, and that is twice
    as fast. They hold JSON values only, through which no cycle can pass, so the garbage collector need not visit them.
    """
    try:
        import msgspec
    except ImportError:
        return cls
    columns: list[Any] = []
    for item in fields(cls):
        default: Any = item.default
        if item.default_factory is not MISSING:
            default = msgspec.field(default_factory=item.default_factory)
        columns.append((item.name, Any) if default is MISSING else (item.name, Any, default))
    names = {"__doc__": cls.__doc__, "__module__": cls.__module__}
    return msgspec.defstruct(cls.__name__, columns, namespace=names, gc=False)


@dataclass(slots=True)
class Emission:
    """One output of one rule at one instant.

    kind   rows   `inserted` are the rows (of the remove stream with `select rstream`), `removed` irstream's old rows
           late   `inserted` holds an event that came after its window was closed
           error  `inserted` holds an event that could not be evaluated, `error` says why
    """

    rule: str
    at_ms: int
    kind: Literal["rows", "late", "error"] = "rows"
    inserted: list[Row] = field(default_factory=list)
    removed: Sequence[Row] = ()
    error: str | None = None


if not TYPE_CHECKING:
    Emission = record(Emission)


def joined(emissions: list[Emission], names: Collection[str]) -> list[Emission]:
    """The emissions with the rows of each rule of `names` at one instant in one, at the place of its first."""
    out: list[Emission] = []
    first: dict[tuple[str, int], int] = {}
    for item in emissions:
        if item.kind != "rows" or item.rule not in names:
            out.append(item)
            continue
        place = first.setdefault((item.rule, item.at_ms), len(out))
        if place == len(out):
            out.append(item)
        else:
            known = out[place]
            out[place] = Emission(item.rule, item.at_ms, "rows", [*known.inserted, *item.inserted],
                                  [*known.removed, *item.removed])  # fmt: skip
    return out


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
