"""The values that satisfy a condition on one column.

Texts are compared by their rank among the texts of the condition, so that a range of texts is one of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from sql.plan.bound import Bound, Const, Op, Read
from sql.record import Record

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}

COMPARING = frozenset(_TURNED)
"""The operators that compare two values."""

Column = tuple[int, str, bool]
"""A column: the place of its source in FROM, its name, and whether it is compared with texts."""

Comparison = tuple[Column, str, float]
"""`column op number`."""


class Range(Record):
    """The numbers from `low` to `high`, but not those `without`; an open end is not in it."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    without: frozenset[float] = frozenset()

    @property
    def is_empty(self) -> bool:
        is_open = self.low_open or self.high_open
        return self.low > self.high or (self.low == self.high and (is_open or self.low in self.without))

    def and_(self, other: Range) -> Range:
        """The intersection of both ranges."""
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high = min(self.high, other.high)
        high_open = any(item.high == high and item.high_open for item in (self, other))
        return Range(low, high, low_open, high_open, self.without | other.without)


def comparisons(nodes: Iterable[Bound]) -> list[Comparison]:
    """Those of the conditions that compare a column with a number or a text, in either order."""
    found = [item for item in map(_compared, nodes) if item is not None]
    texts = sorted({value for _, _, value in found if isinstance(value, str)})
    return [
        (column, op, texts.index(value) if isinstance(value, str) else value) for column, op, value in found
    ]


def _compared(node: Bound) -> tuple[Column, str, float | str] | None:
    if not (isinstance(node, Op) and node.name in _TURNED and len(node.args) == 2):
        return None
    left, right = node.args
    if isinstance(left, Const):
        left, right, name = right, left, _TURNED[node.name]
    else:
        name = node.name
    if not (isinstance(left, Read) and left.column is not None and isinstance(right, Const)):
        return None
    value = right.value
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    return (left.source, left.column, isinstance(value, str)), name, value


def range_of(name: str, number: float) -> Range:
    """The numbers that satisfy the comparison."""
    match name:
        case "<" | "<=":
            return Range(high=number, high_open=name == "<")
        case ">" | ">=":
            return Range(low=number, low_open=name == ">")
        case "=":
            return Range(number, number)
    return Range(without=frozenset({number}))


def parts(node: Bound, name: str) -> Iterator[Bound]:
    """The operands of a chain of ANDs, or of ORs."""
    if isinstance(node, Op) and node.name == name:
        for part in node.args:
            yield from parts(part, name)
    else:
        yield node


def covers(first: tuple[str, float], second: tuple[str, float]) -> bool:
    """True if every value satisfies one of the two: `x != 1 OR x != 2`, `x > 1 OR x <= 5`."""
    (one, a), (other, b) = first, second
    if one == other == "!=":
        return a != b
    if one in ("<", "<=") and other in (">", ">="):
        return b < a or (b == a and "=" in one + other)
    return one in (">", ">=") and other in ("<", "<=") and covers(second, first)
