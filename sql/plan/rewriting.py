"""Bound expressions with other reads in them."""

from __future__ import annotations

from collections.abc import Callable

from sql.plan.bound import Apply, Bound, Const, Enumerate, Op, Read, Slot, TableRead
from sql.record import replace


def with_sources(bound: Bound, numbers: dict[int, int]) -> Bound:
    """The expression with its source numbers exchanged."""

    def change(node: Read | Slot) -> Bound:
        return replace(node, source=numbers.get(node.source, node.source)) if isinstance(node, Read) else node

    return rewritten(bound, change)


def without_event(bound: Bound) -> Bound:
    """The expression with NULL in the place of every column."""

    def change(node: Read | Slot) -> Bound:
        return Const(None, type=node.type, span=node.span) if isinstance(node, Read) else node

    return rewritten(bound, change)


def rewritten(bound: Bound, change: Callable[[Read | Slot], Bound]) -> Bound:
    """The expression with every column and every value of an operator changed."""
    if isinstance(bound, Read | Slot):
        return change(bound)
    return with_parts(bound, lambda part: rewritten(part, change))


def with_parts(bound: Bound, change: Callable[[Bound], Bound]) -> Bound:
    """The expression with its direct operands changed."""
    if isinstance(bound, Op | Apply):
        return replace(bound, args=tuple(map(change, bound.args)))
    if isinstance(bound, TableRead) and bound.keys is not None:
        return replace(bound, keys=tuple(map(change, bound.keys)))
    if isinstance(bound, Enumerate):
        return replace(bound, base=change(bound.base), body=change(bound.body))
    return bound
