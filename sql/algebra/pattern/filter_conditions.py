"""The parts of a filter's condition: what reads the event alone, and what compares it with tags, by which its
listeners are found."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial, reduce
from typing import NamedTuple

from sql.algebra.pattern.listening import ByKey, ByRange, InOrder, Listening
from sql.codegen.functions import FunctionSet
from sql.plan.bound import Bound, Op, Read, Slot
from sql.plan.pattern_plan import OWN
from sql.types import Type

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


def joined(parts: list[Bound]) -> Bound | None:
    """The conjunction of parts; None of none."""
    if not parts:
        return None
    return reduce(lambda left, right: Op("and", (left, right), type=Type.BOOLEAN, span=left.span), parts)


def reads(bound: Bound) -> set[int]:
    """The sources that an expression reads."""
    return {part.source for part in bound.walk() if isinstance(part, Read)}


def tags(bound: Bound) -> set[int]:
    """The tags that an expression reads."""
    return reads(bound) - {OWN}


def sides(part: Bound, operators: Container[str]) -> tuple[Bound, Bound, str] | None:
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


class Parts(NamedTuple):
    """A condition in parts: what reads the event alone, the sides of equalities between event and tags, and
    what is left. By `nulls` the equalities for which NULL equals NULL."""

    alone: Bound | None
    rows: list[Bound]
    tags: list[Bound]
    nulls: list[bool]
    left: list[Bound]


def parts_of(condition: Bound | None) -> Parts:
    """The parts of a filter's condition."""
    alone: list[Bound] = []
    left: list[Bound] = []
    keys: list[tuple[Bound, Bound, str]] = []
    for part in () if condition is None else conjuncts(condition):
        if not tags(part):
            alone.append(part)
        elif (found := sides(part, ("=", "is"))) is not None:
            keys.append(found)
        else:
            left.append(part)
    rows, bound, operators = [list(items) for items in zip(*keys, strict=True)] if keys else ([], [], [])
    return Parts(joined(alone), rows, bound, [operator == "is" for operator in operators], left)


def listening_of(condition: Bound | None, functions: FunctionSet) -> Callable[[], Listening]:
    """Makes what finds the listeners of a filter."""
    parts = parts_of(condition)
    own = None if parts.alone is None else functions.true(parts.alone)
    if parts.rows:
        left = true_of(parts.left, functions)
        of_row = functions.wanted_key(parts.rows, parts.nulls)
        of_binding = functions.wanted_key(parts.tags, parts.nulls)
        return partial(ByKey, own, left, of_row, of_binding)
    for chosen in parts.left:
        found = sides(chosen, MIRRORED)
        if found is not None:
            left = true_of([part for part in parts.left if part is not chosen], functions)
            row, tag, operator = found
            return partial(ByRange, own, left, functions.value(row), functions.value(tag), operator)
    return partial(InOrder, own, true_of(parts.left, functions))


def true_of(parts: list[Bound], functions: FunctionSet) -> Callable[..., bool] | None:
    """The conjunction of parts as a function; None of none."""
    condition = joined(parts)
    return None if condition is None else functions.true(condition)
