"""The output of a query: rows, late events and errors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

import msgspec

Row = dict[str, Any]


class Emission(msgspec.Struct, gc=False):
    """One output of one rule at one instant.

    kind   rows   `inserted` are the rows (of the remove stream with `select rstream`),
                  `removed` irstream's old rows
           late   `inserted` holds an event that came after its window was closed
           error  `inserted` holds an event that could not be evaluated, `error` gives the reason

    A struct, for many are made; it holds JSON values only, so the garbage collector need not visit it.
    Rows are not to be changed: several actions get the same ones,
    and rules that select the same of one window share them.
    """

    rule: str
    at_ms: int
    kind: Literal["rows", "late", "error"] = "rows"
    inserted: list[Row] = msgspec.field(default_factory=list)
    removed: Sequence[Row] = ()
    error: str | None = None
    states: Sequence[Row] = ()
    """The columns that actions need beside those of each row of `inserted`; none for most rules."""

    def with_states(self) -> list[Row]:
        """The inserted rows, each with the columns beside it."""
        if not self.states:
            return self.inserted
        return [{**row, **state} for row, state in zip(self.inserted, self.states, strict=True)]


class Singles(Emission, gc=False):
    """Emissions of one row each, of one rule at one instant: `inserted` holds their rows, in order, and
    `removed` none, or for each the row in whose place it came.

    A loop that gives a row with every event would spend a sixth of its time on a struct and a list around
    each row. It hands its rows on as they are; emissions are made for those who read them one by one.
    """

    def each(self) -> Iterator[Emission]:
        """The emissions."""
        rule, at_ms = self.rule, self.at_ms
        if not self.removed:
            return (Emission(rule, at_ms, "rows", [row]) for row in self.inserted)
        pairs = zip(self.inserted, self.removed, strict=True)
        return (Emission(rule, at_ms, "rows", [row], [before]) for row, before in pairs)


def singles(rule: str, at_ms: int, rows: list[Row], removed: Sequence[Row] = ()) -> Emission:
    """The emissions of these rows, of which there is at least one; `removed`: the rows they replace."""
    return (Emission if len(rows) == 1 else Singles)(rule, at_ms, "rows", rows, removed)


def apart(emissions: Iterable[Emission]) -> Iterator[Emission]:
    """The emissions one by one."""
    for emission in emissions:
        if emission.__class__ is Singles:
            yield from emission.each()
        else:
            yield emission


class Emissions(Sequence[Emission]):
    """The emissions of the rules, in order. `parts` has the same with the rows of each `Singles` together."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Emission]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[Emission]:
        return apart(self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __len__(self) -> int:
        return sum(len(part.inserted) if part.__class__ is Singles else 1 for part in self.parts)

    @overload
    def __getitem__(self, place: int) -> Emission: ...
    @overload
    def __getitem__(self, place: slice) -> list[Emission]: ...
    def __getitem__(self, place: int | slice) -> Emission | list[Emission]:
        return [*self][place]

    def __eq__(self, other: object) -> bool:
        return [*self] == [*other] if isinstance(other, list | Emissions) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Iterable[Emission]) -> list[Emission]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Emission]) -> list[Emission]:
        return [*other, *self]

    def __repr__(self) -> str:
        return repr([*self])


def joined(emissions: list[Emission], names: Collection[str] | None = None) -> list[Emission]:
    """The emissions with the rows of each rule (of `names`, if given) at one instant in one, at the place of
    its first."""
    out: list[Emission] = []
    first: dict[tuple[str, int], int] = {}
    sides: dict[int, tuple[list[Row], list[Row], list[Row]]] = {}
    for item in apart(emissions):
        if item.kind != "rows" or (names is not None and item.rule not in names):
            out.append(item)
            continue
        place = first.setdefault((item.rule, item.at_ms), len(out))
        if place == len(out):
            out.append(item)
            continue
        if place not in sides:
            known = out[place]
            sides[place] = [*known.inserted], [*known.removed], [*known.states]
            inserted, removed, states = sides[place]
            out[place] = Emission(item.rule, item.at_ms, "rows", inserted, removed, states=states)
        inserted, removed, states = sides[place]
        inserted += item.inserted
        removed += item.removed
        states += item.states
    return out


class Out(NamedTuple):
    """One output row on its way: with its group's key and its place in ORDER BY."""

    row: Row
    key: Any = None
    order: Any = None


R = TypeVar("R")


def shown(selector: str, new: list[R], old: list[R]) -> tuple[list[R], list[R]]:
    """The rows that a statement inserts and removes where `new` come and `old` leave. `rstream` inserts those
    that leave, `istream` removes none."""
    if selector == "rstream":
        return old, []
    return new, [] if selector == "istream" else old


class Update(NamedTuple):
    """The rows one partial update of the window gives: new and old, how many events it carried, which groups
    it touched."""

    new: list[Out]
    old: list[Out]
    inserted: int = 0
    removed: int = 0
    keys: tuple[Any, ...] = ()
    came: Sequence[Any] = ()
    """The group of each event that came, where the output limit counts the events of groups."""
    left: Sequence[Any] = ()
    """The group of each event that left, likewise."""


def visible(row: Row) -> Row:
    """A row as it is printed: without NULL columns and metadata."""
    return {name: value for name, value in row.items() if value is not None and name != "$meta"}
