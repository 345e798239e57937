"""The parts of a filter's condition: what reads the event alone, and what compares it with tags."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

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
