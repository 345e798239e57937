"""How the rows that a condition asks for are found: by an index where its parts allow, else by looking at all.

Of a condition that must hold, the parts `own = f(others)`, `own op f(others)` and `own between f and g` say which rows
can satisfy it: all equalities and one range make an index. An index only proposes: the whole condition is evaluated on
what it finds, so that it never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sql.algebra.event import Event
from sql.algebra.table.index import Span
from sql.codegen.functions import FunctionSet
from sql.plan.bound import Bound, Op, Read, conjuncts, sources_read
from sql.types import key_of, order_key

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

INDEXED = True
"""Off only in tests that show that an index never changes a result."""


Own = int | frozenset[int]
"""Whose rows are looked for: a source, or the sources of rows joined before."""

Name = str | tuple[int, str]
"""A column, of joined rows with its source."""


@dataclass(frozen=True, slots=True)
class Equality:
    """A column that equals a value computed from other sources."""

    column: Name
    value: Bound
    needs: frozenset[int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """A column that lies between values computed from other sources; None: no bound.

    `turned`: bounds in the wrong order are turned round.
    """

    column: Name
    low: Bound | None
    high: Bound | None
    low_inside: bool
    high_inside: bool
    needs: frozenset[int]
    turned: bool = False


def _column(node: Bound, own: Own) -> Name | None:
    if not isinstance(node, Read) or node.column is None:
        return None
    if isinstance(own, int):
        return node.column if node.source == own else None
    return (node.source, node.column) if node.source in own else None


def _is_free(own: Own, needs: frozenset[int]) -> bool:
    """Whether a value can be computed without the rows that are looked for."""
    return own not in needs if isinstance(own, int) else not own & needs


def equalities(parts: Iterable[Bound], own: Own) -> list[Equality]:
    """The equalities of columns of source `own` with values of others."""
    out: list[Equality] = []
    for part in parts:
        if not isinstance(part, Op) or part.name != "=":
            continue
        for mine, other in (part.args, part.args[::-1]):
            column, needs = _column(mine, own), sources_read(other)
            if column is not None and _is_free(own, needs) and all(column != known.column for known in out):
                out.append(Equality(column, other, needs))
                break
    return out


def ranges(parts: Iterable[Bound], own: Own) -> list[Bounds]:
    """The ranges of columns of source `own` with ends from others; two ends of one column are one range."""
    out: dict[Name, Bounds] = {}
    for part in parts:
        found = _bounds(part, own) if isinstance(part, Op) else None
        known = None if found is None else out.get(found.column)
        if found is None:
            continue
        if known is None:
            out[found.column] = found
        elif known.low is None and found.high is None:
            out[found.column] = Bounds(found.column, found.low, known.high, found.low_inside, known.high_inside,
                                       known.needs | found.needs)  # fmt: skip
        elif known.high is None and found.low is None:
            out[found.column] = Bounds(found.column, known.low, found.high, known.low_inside, found.high_inside,
                                       known.needs | found.needs)  # fmt: skip
    return list(out.values())


def _bounds(part: Op, own: Own) -> Bounds | None:
    if part.name == "between":
        column = _column(part.args[0], own)
        needs = sources_read(part.args[1]) | sources_read(part.args[2])
        if column is not None and _is_free(own, needs):
            return Bounds(column, part.args[1], part.args[2], True, True, needs, part.extra == "turned")
        return None
    if part.name not in MIRRORED:
        return None
    left, right = part.args
    for name, mine, other in ((part.name, left, right), (MIRRORED[part.name], right, left)):
        column, needs = _column(mine, own), sources_read(other)
        if column is not None and _is_free(own, needs):
            inside = name.endswith("=")
            low, high = (other, None) if name.startswith(">") else (None, other)
            return Bounds(column, low, high, inside, inside, needs)
    return None


Find = Callable[[Event], Sequence[Event]]
"""The rows that can stand beside the sources that an event (a joined row) knows."""


def finder(condition: Bound | None, own: Own, known: Collection[int], store: Any, functions: FunctionSet) -> Find:
    """What proposes the rows of `store` (content, index) for a condition, from the sources `known`.

    `functions` compile for joined rows. Where no part of the condition helps, all rows are proposed.
    """
    parts = list(conjuncts(condition)) if INDEXED else []
    equal = [item for item in equalities(parts, own) if item.needs <= set(known)]
    spans = [item for item in ranges(parts, own) if item.needs <= set(known) and (item.low or item.high)]
    spans.sort(key=lambda item: item.low is None or item.high is None)
    columns = tuple(item.column for item in equal)
    span = next((item for item in spans if item.column not in columns), None)
    if span is not None and (index := store.index(columns, span.column)) is not None:
        return _by_range(index, _key(equal, functions), span, functions)
    if equal and (index := store.index(columns, None)) is not None:
        find, key = index.find, _key(equal, functions)
        return lambda event: tuple(find(key(event)))
    return lambda event: tuple(store.content())


def _key(equal: list[Equality], functions: FunctionSet) -> Callable[[Event], Any]:
    values = [functions.value(item.value) for item in equal]
    if len(values) == 1:
        value = values[0]
        return lambda event: key_of(value(event))
    return lambda event: tuple([key_of(value(event)) for value in values])


def _by_range(index: Any, key: Callable[[Event], Any], bounds: Bounds, functions: FunctionSet) -> Find:
    low = None if bounds.low is None else functions.value(bounds.low)
    high = None if bounds.high is None else functions.value(bounds.high)

    def find(event: Event) -> Sequence[Event]:
        least = None if low is None else low(event)
        most = None if high is None else high(event)
        if (low is not None and least is None) or (high is not None and most is None):
            return ()
        if bounds.turned and order_key(least) > order_key(most):
            least, most = most, least
        span = Span(least, most, bounds.low_inside, bounds.high_inside)
        return tuple(index.find(key(event), span))

    return find


def explain(condition: Bound | None, own: int, known: Collection[int], indexed: Mapping[str, Any] | None = None) -> str:
    """How rows are found, in words: `hash(k)`, `hash(k) then btree(n)`, `scan`."""
    parts = list(conjuncts(condition))
    equal = [item.column for item in equalities(parts, own) if item.needs <= set(known)]
    spans = [item.column for item in ranges(parts, own) if item.needs <= set(known) and item.column not in equal]
    words = [f"hash({', '.join(map(str, equal))})"] if equal else []
    return " then ".join([*words, *[f"btree({column})" for column in spans[:1]]]) or "scan"
