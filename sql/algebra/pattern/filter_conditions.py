"""The parts of a filter's condition: what reads the event alone, and what compares it with tags, by which its
listeners are found."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from sql.algebra.pattern.listening import FilterTests
from sql.codegen.functions import FunctionSet
from sql.functions import lookup
from sql.plan.bound import (
    RANGES,
    Apply,
    Bound,
    Op,
    Slot,
    TableRead,
    all_of,
    both_ways,
    conjuncts,
    sources_read,
)
from sql.plan.pattern_plan import OWN
from sql.types import Type


def parts_in(condition: Bound | None) -> Iterator[Bound]:
    """The parts of a condition that must all hold; a range of tags counts as two.

    The bounds of EPL's BETWEEN may be in the wrong order: it is tested whole, on the listeners that the
    lesser bound finds.
    """
    for part in conjuncts(condition):
        if not isinstance(part, Op) or part.name != "between" or not tags(part):
            yield part
            continue
        operand, low, high = part.args
        if part.extra == "turned":
            least = lookup("least")
            assert least is not None
            yield _compared(">=", operand, Apply(least, (low, high), type=low.type, span=part.span))
            yield part
        else:
            yield _compared(">=", operand, low)
            yield _compared("<=", operand, high)


def _compared(sign: str, operand: Bound, bound: Bound) -> Op:
    return Op(sign, (operand, bound), type=Type.BOOLEAN, span=operand.span)


def tags(bound: Bound) -> frozenset[int]:
    """The tags that an expression reads."""
    return sources_read(bound) - {OWN}


def sides(part: Bound, operators: Container[str]) -> tuple[Bound, Bound, str] | None:
    """The sides of a comparison, over the event and over tags, and the operator between them in this order.

    None if it has another form. A side with a variable or a row of a table is read when the event
    comes, so it cannot be indexed.
    """
    if any(isinstance(item, Slot | TableRead) for item in part.walk()):
        return None
    for operator, row, tag in both_ways(part, operators):
        if sources_read(row) == {OWN} and tags(tag) and OWN not in sources_read(tag):
            return row, tag, operator
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
    for part in parts_in(condition):
        if not tags(part):
            alone.append(part)
        elif (found := sides(part, ("=", "is"))) is not None:
            keys.append(found)
        else:
            left.append(part)
    rows, bound, operators = [list(items) for items in zip(*keys, strict=True)] if keys else ([], [], [])
    return Parts(all_of(alone), rows, bound, [operator == "is" for operator in operators], left)


def tests_of(condition: Bound | None, functions: FunctionSet) -> FilterTests:
    """The parts of a filter's condition as functions."""
    parts = parts_of(condition)
    own = None if parts.alone is None else functions.true(parts.alone)
    for chosen in () if parts.rows else parts.left:
        found = sides(chosen, RANGES)
        if found is not None:
            left = true_of([part for part in parts.left if part is not chosen], functions)
            row, tag, operator = found
            return FilterTests(own, left, functions.value(row), functions.value(tag), operator)
    left = true_of(parts.left, functions)
    if not parts.rows:
        return FilterTests(own, left)
    of_row = functions.wanted_key(parts.rows, parts.nulls)
    of_binding = functions.wanted_key(parts.tags, parts.nulls)
    return FilterTests(own, left, of_row, of_binding)


def true_of(parts: list[Bound], functions: FunctionSet) -> Callable[..., bool] | None:
    """The conjunction of parts as a function; None of none."""
    condition = all_of(parts)
    return None if condition is None else functions.true(condition)
