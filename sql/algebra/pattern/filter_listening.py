"""How a filter of a pattern listens: what it asks of an event alone, and what finds its listeners by the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.filter_conditions import MIRRORED, conjuncts, joined, sides, tags
from sql.algebra.pattern.listening import ByKey, ByRange, InOrder, Listening
from sql.plan.bound import Bound

if TYPE_CHECKING:
    from sql.codegen.functions import FunctionSet


def listening_of(
    condition: Bound | None, functions: FunctionSet
) -> tuple[Callable[[Any], bool] | None, Callable[[], Listening]]:
    """The part that reads no tag, and what finds the listeners by the rest."""
    parts = [] if condition is None else list(conjuncts(condition))
    alone = [part for part in parts if not tags(part)]
    rest = [part for part in parts if tags(part)]
    own = None if not alone else functions.true(joined(alone))
    keys = [(part, found) for part in rest if (found := sides(part, ("=", "is"))) is not None]
    if keys:
        left = _rest(functions, [part for part in rest if all(part is not key for key, _ in keys)])
        nulls = [operator == "is" for _, (_, _, operator) in keys]
        of_row = functions.wanted_key([row for _, (row, _, _) in keys], nulls)
        of_binding = functions.wanted_key([tag for _, (_, tag, _) in keys], nulls)
        return own, lambda: ByKey(left, of_row, of_binding)
    ranges = [(part, found) for part in rest if (found := sides(part, MIRRORED)) is not None]
    if ranges:
        chosen, (row, tag, operator) = ranges[0]
        left = _rest(functions, [part for part in rest if part is not chosen])
        row_value, tag_value = functions.value(row), functions.value(tag)
        return own, lambda: ByRange(left, row_value, tag_value, operator)
    left = _rest(functions, rest)
    return own, partial(InOrder, left)


def _rest(functions: FunctionSet, parts: list[Bound]) -> Callable[..., bool] | None:
    return functions.true(joined(parts)) if parts else None
