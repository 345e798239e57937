"""The parts of a filter's condition: what reads the event alone, and what compares it with tags, by which its
listeners are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.listening import ByKey, ByRange, InOrder, Listening
from sql.plan.bound import Bound, Op, Read, Slot
from sql.plan.pattern_plan import OWN
from sql.types import Type

if TYPE_CHECKING:
    from sql.codegen.functions import FunctionSet

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conjuncts(condition: Bound) -> Iterator[Bound]:
    """The parts of a condition that must all hold; a range counts as two."""
    if isinstance(condition, Op) and condition.name == "and":
        for part in condition.args:
            yield from conjuncts(part)
    elif isinstance(condition, Op) and condition.name == "between" and tags(condition):
        operand, low, high = condition.args
        yield Op(">=", (operand, low), type=Type.BOOLEAN, span=condition.span)
        yield Op("<=", (operand, high), type=Type.BOOLEAN, span=condition.span)
    else:
        yield condition


def joined(parts: list[Bound]) -> Bound:
    """The conjunction of parts, of which there is one."""
    return reduce(lambda left, right: Op("and", (left, right), type=Type.BOOLEAN, span=left.span), parts)


def reads(bound: Bound) -> set[int]:
    """The sources that an expression reads."""
    return {part.source for part in bound.walk() if isinstance(part, Read)}


def tags(bound: Bound) -> set[int]:
    """The tags that an expression reads."""
    return reads(bound) - {OWN}


def sides(part: Bound, operators: Any) -> tuple[Bound, Bound, str] | None:
    """The sides of a comparison, over the event and over tags, and the operator between them in this order.

    None if it has another form. A side with a variable is read when the event comes,
    so it cannot be indexed.
    """
    if not isinstance(part, Op) or part.name not in operators:
        return None
    left, right = part.args
    if any(isinstance(item, Slot) for item in part.walk()):
        return None
    if reads(left) == {OWN} and tags(right) and OWN not in reads(right):
        return left, right, part.name
    if reads(right) == {OWN} and tags(left) and OWN not in reads(left):
        return right, left, MIRRORED.get(part.name, part.name)
    return None


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
