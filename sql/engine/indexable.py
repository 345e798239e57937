"""Which condition of a rule decides about an event before anything else, and what of it an index can hold."""

from __future__ import annotations

from typing import Any

from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES
from sql.plan.bound import MIRRORED, Bound, Const, Op, Read, conjuncts
from sql.plan.logical import Plan
from sql.record import Record, replace
from sql.types import Type

NUMBER, TEXT = "number", "text"
_KINDS = {int: NUMBER, float: NUMBER, str: TEXT}


class Equal(Record):
    """The column has one of these values, all texts or all numbers."""

    column: str
    kind: str
    values: tuple[Any, ...]


class Range(Record):
    """The column lies between two values of a kind; None: no bound. The flags say whether a
    bound itself is inside."""

    column: str
    kind: str
    low: Any = None
    high: Any = None
    low_inside: bool = False
    high_inside: bool = False


Indexable = Equal | Range


def first_condition(plan: Plan) -> Bound | None:
    """The condition that is evaluated before everything else on an event; None if there is none that can be
    indexed.

    Analytic functions read every event; windows that count, or are shown by, events that pass FILTER need
    those that WHERE drops afterwards. In event time the stage reads every event, and the index stands
    behind it.
    """
    if plan.reads_beside or len(plan.sources) != 1 or plan.mode == "lots" or plan.spreads:
        return None
    if plan.window is not None:
        harmless = not GROUP_ENTRIES[plan.window.kind].counts_dropped and not plan.window.partition_by
        return plan.window.filter if plan.window.filter is not None or not harmless else plan.where
    source = plan.sources[0]
    if source.pattern is not None:
        return None
    if source.filter is not None:
        return source.filter
    return None if source.windows or plan.aggregates or plan.output is not None else plan.where


def without_first_condition(plan: Plan) -> Plan:
    """The plan of a rule with a window, without the first part of its first condition."""
    window = plan.window
    if window is not None and window.filter is not None:
        return replace(plan, window=replace(window, filter=_rest(window.filter)))
    return replace(plan, where=_rest(plan.where))


def _rest(condition: Bound | None) -> Bound | None:
    parts = tuple(conjuncts(condition))[1:]
    return (
        Op("and", parts, type=Type.BOOLEAN, span=parts[0].span) if len(parts) > 1 else next(iter(parts), None)
    )


def indexable(condition: Bound | None) -> Indexable | None:
    """The part of a condition that can be indexed: the first part of a conjunction,
    if it compares a column with constants."""
    while isinstance(condition, Op) and condition.name == "and":
        condition = condition.args[0]
    if not isinstance(condition, Op) or not condition.args:
        return None
    operand, *others = condition.args
    name = condition.name
    if name in MIRRORED and isinstance(operand, Const):
        name, operand, others = MIRRORED[name], others[0], [operand]
    if not isinstance(operand, Read) or operand.column is None or operand.column.startswith("$"):
        return None
    values = tuple(other.value for other in others if isinstance(other, Const))
    kinds = {_KINDS.get(value.__class__) for value in values}
    if len(values) != len(others) or len(kinds) != 1 or None in kinds:
        return None
    return _comparison(name, operand.column, str(kinds.pop()), values)


def _comparison(name: str, column: str, kind: str, values: tuple[Any, ...]) -> Indexable | None:
    if name in ("=", "in"):
        return Equal(column, kind, values)
    if any(value != value for value in values):
        return None
    if name in ("<", "<="):
        return Range(column, kind, high=values[0], high_inside=name == "<=")
    if name in (">", ">="):
        return Range(column, kind, low=values[0], low_inside=name == ">=")
    if name == "between":
        return Range(column, kind, values[0], values[1], low_inside=True, high_inside=True)
    return None
