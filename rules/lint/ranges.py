"""The numbers that satisfy a condition on one column."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sql.plan.bound import Bound, Const, Op, Read
from sql.record import Record

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}

Column = tuple[int, str]
"""A column: the place of its source in FROM, and its name."""


class Range(Record):
    """The numbers from `low` to `high`; an open end is not in it."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def and_(self, other: Range) -> Range:
        """The intersection of both ranges."""
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high = min(self.high, other.high)
        high_open = any(item.high == high and item.high_open for item in (self, other))
        return Range(low, high, low_open, high_open)


def compared(node: Bound) -> tuple[Column, str, float] | None:
    """`column op number`, in either order, as (column, op, number)."""
    if not (isinstance(node, Op) and node.name in _TURNED and len(node.args) == 2):
        return None
    left, right = node.args
    if isinstance(left, Const):
        left, right, name = right, left, _TURNED[node.name]
    else:
        name = node.name
    if not (isinstance(left, Read) and left.column is not None and isinstance(right, Const)):
        return None
    number = right.value
    if not isinstance(number, int | float) or isinstance(number, bool):
        return None
    return (left.source, left.column), name, number


def range_of(name: str, number: float) -> Range | None:
    """The numbers that satisfy the comparison; None if they are no range."""
    match name:
        case "<" | "<=":
            return Range(high=number, high_open=name == "<")
        case ">" | ">=":
            return Range(low=number, low_open=name == ">")
        case "=":
            return Range(number, number)
    return None


def parts(node: Bound, name: str) -> Iterator[Bound]:
    """The operands of a chain of ANDs, or of ORs."""
    if isinstance(node, Op) and node.name == name:
        for part in node.args:
            yield from parts(part, name)
    else:
        yield node


def covers(first: tuple[str, float], second: tuple[str, float]) -> bool:
    """True if every number satisfies one of the two: `x != 1 OR x != 2`, `x > 1 OR x <= 5`."""
    (one, a), (other, b) = first, second
    if one == other == "!=":
        return a != b
    if one in ("<", "<=") and other in (">", ">="):
        return b < a or (b == a and "=" in one + other)
    return one in (">", ">=") and other in ("<", "<=") and covers(second, first)
