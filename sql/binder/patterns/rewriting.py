"""Bound expressions with other reads in them."""

from __future__ import annotations

from collections.abc import Callable

from sql.plan.bound import Apply, Bound, Enumerate, Op, Read
from sql.record import replace


def with_sources(bound: Bound, numbers: dict[int, int]) -> Bound:
    """The expression with its source numbers exchanged."""
    return rewritten(bound, lambda read: replace(read, source=numbers.get(read.source, read.source)))


def rewritten(bound: Bound, change: Callable[[Read], Bound]) -> Bound:
    """The expression with every read of a source changed."""
    if isinstance(bound, Read):
        return change(bound)
    if isinstance(bound, Op | Apply):
        return replace(bound, args=tuple(rewritten(arg, change) for arg in bound.args))
    if isinstance(bound, Enumerate):
        body = None if bound.body is None else rewritten(bound.body, change)
        return replace(bound, base=rewritten(bound.base, change), body=body)
    return bound
