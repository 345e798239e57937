"""The use of indexes by a condition: the rows that can satisfy it.

Of a condition that must hold, the parts `own = f(others)`, `own op f(others)` and `own between f and g` give
the rows that can satisfy it: all equalities and one range make an index. `sql.algebra.table.search` writes
the search in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sql.plan.bound import RANGES, Bound, Op, Read, both_ways, conjuncts, sources_read
from sql.record import Record, replace
from sql.types import NUMERIC, Type

INDEXED = True
"""Off only in tests that show that an index never changes a result."""


Own = int | frozenset[int]
"""Whose rows are looked for: a source, or the sources of rows joined before."""

Name = str | tuple[int, str]
"""A column, of joined rows with its source."""


class Equality(Record):
    """A column that equals a value computed from other sources."""

    column: Name
    value: Bound
    needs: frozenset[int]
    part: Bound
    """The part of the condition that it comes from."""


class KeyRange(Record):
    """A column that lies between values computed from other sources; None: no bound.

    `turned`: bounds in the wrong order are turned round.
    """

    column: Name
    low: Bound | None
    high: Bound | None
    low_inside: bool
    high_inside: bool
    needs: frozenset[int]
    parts: tuple[Bound, ...]
    """The parts of the condition that say so."""
    turned: bool = False

    @property
    def is_exact(self) -> bool:
        """True if rows whose values lie between the ends satisfy the parts: all are numbers, or all texts."""
        types = {operand.type for part in self.parts for operand in part.parts()}
        return types <= NUMERIC or types == {Type.STRING}

    def below(self, other: KeyRange) -> KeyRange | None:
        """The range from this low end to the high end of another; None unless each has that one end only."""
        if self.high is not None or other.low is not None:
            return None
        return replace(
            self,
            high=other.high,
            high_inside=other.high_inside,
            needs=self.needs | other.needs,
            parts=self.parts + other.parts,
        )


def _column(node: Bound, own: Own) -> Name | None:
    if not isinstance(node, Read) or node.column is None:
        return None
    if isinstance(own, int):
        return node.column if node.source == own else None
    return (node.source, node.column) if node.source in own else None


def _is_free(own: Own, needs: frozenset[int]) -> bool:
    """True if a value can be computed without the rows that are looked for."""
    return own not in needs if isinstance(own, int) else not own & needs


def equalities(parts: Iterable[Bound], own: Own) -> list[Equality]:
    """The equalities of columns of source `own` with values of others."""
    out: list[Equality] = []
    for part in parts:
        for _, mine, other in both_ways(part, ("=",)):
            column, needs = _column(mine, own), sources_read(other)
            if column is not None and _is_free(own, needs) and all(column != known.column for known in out):
                out.append(Equality(column, other, needs, part))
                break
    return out


def ranges(parts: Iterable[Bound], own: Own) -> list[KeyRange]:
    """The ranges of columns of source `own` with ends from others; two ends of one column are one range."""
    out: dict[Name, KeyRange] = {}
    for part in parts:
        found = _bounds(part, own) if isinstance(part, Op) else None
        known = None if found is None else out.get(found.column)
        if found is not None:
            out[found.column] = found if known is None else found.below(known) or known.below(found) or known
    return list(out.values())


def _bounds(part: Op, own: Own) -> KeyRange | None:
    if part.name == "between":
        column = _column(part.args[0], own)
        needs = sources_read(part.args[1]) | sources_read(part.args[2])
        if column is not None and _is_free(own, needs):
            return KeyRange(
                column, part.args[1], part.args[2], True, True, needs, (part,), part.extra == "turned"
            )
        return None
    for name, mine, other in both_ways(part, RANGES):
        column, needs = _column(mine, own), sources_read(other)
        if column is not None and _is_free(own, needs):
            inside = name.endswith("=")
            low, high = (other, None) if name.startswith(">") else (None, other)
            return KeyRange(column, low, high, inside, inside, needs, (part,))
    return None


def explain(condition: Bound | None, own: int, known: Collection[int]) -> str:
    """The search for rows, in words: `hash(k)`, `hash(k) then btree(n)`, `scan`."""
    parts = list(conjuncts(condition))
    equal = [item.column for item in equalities(parts, own) if item.needs <= set(known)]
    spans = [
        item.column for item in ranges(parts, own) if item.needs <= set(known) and item.column not in equal
    ]
    words = [f"hash({', '.join(map(str, equal))})"] if equal else []
    return " then ".join([*words, *[f"btree({column})" for column in spans[:1]]]) or "scan"
