"""Parts of a plan as words: the source text of expressions, periods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.calendar.period import Period
from sql.errors import NOWHERE, Span
from sql.explain.time_lengths import length
from sql.plan.bound import Bound, Const, Read, Slot
from sql.plan.clauses import Criterion, PeriodArgument, PredicatePlan
from sql.plan.logical import Plan
from sql.types import literal

UNWRITTEN = {"event_time": "event_time()", "grouping": "grouping set"}
"""What stands for values that rules read without naming them."""


def slice_of(text: str, span: Span) -> str:
    """The source text of a span on one line; empty if the span is unknown.

    >>> slice_of("select a\\n  + b from s", Span(7, 14))
    'a + b'
    """
    return "" if span == NOWHERE else " ".join(text[span.start : span.end].split())


def written(bound: Bound, text: str) -> str:
    """The source text of an expression in the rule; a plain rendering if the rule does not contain it."""
    found = slice_of(text, bound.span)
    if found:
        return found
    if isinstance(bound, Const):
        return literal(bound.value)
    if isinstance(bound, Read):
        return bound.column or "*"
    if isinstance(bound, Slot) and bound.kind in UNWRITTEN:
        return UNWRITTEN[bound.kind]
    return ", ".join(written(part, text) for part in bound.parts()) or type(bound).__name__.lower()


def several(bounds: Iterable[Bound], text: str) -> str:
    """Expressions separated by commas."""
    return ", ".join(written(bound, text) for bound in bounds)


def groups(plan: Plan) -> str:
    """The keys of GROUP BY, or its grouping sets."""
    keys = [written(key, plan.text) for key in plan.group_by]
    if not plan.grouping_sets:
        return ", ".join(keys)
    return ", ".join(f"({', '.join(keys[place] for place in chosen)})" for chosen in plan.grouping_sets)


def period(argument: PeriodArgument, text: str) -> str:
    """A period: its length if that is fixed, else its source text."""
    amounts: dict[str, Any] = {}
    for bound, unit in argument.parts:
        if not isinstance(bound, Const):
            return (
                slice_of(text, argument.span)
                or f"{several((part for part, _ in argument.parts), text)} {unit}s"
            )
        amounts[unit] = bound.value
    made = Period.of(amounts, zero_allowed=True)
    return slice_of(text, argument.span) if made.is_calendar else length(made.millis)


def argument(value: object, text: str) -> str:
    """One bound window argument of any kind."""
    if isinstance(value, PeriodArgument):
        return period(value, text)
    if isinstance(value, PredicatePlan):
        return written(value.test, text)
    if isinstance(value, Criterion):
        return written(value.value, text) + (" desc" if value.descending else "")
    if isinstance(value, Bound):
        return written(value, text)
    if isinstance(value, tuple):
        return ", ".join(argument(item, text) for item in value)
    return str(value)
