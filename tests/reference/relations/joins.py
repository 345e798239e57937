"""Rows of several sources beside each other, and what SELECT makes of them: all computed anew each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.plan.bound import AggregateCall, Slot
from sql.plan.clauses import JoinPlan
from sql.plan.logical import Plan
from sql.types import key_of
from tests.reference.aggregates import AGGREGATES, distinct
from tests.reference.expressions import Place, Row, evaluate, holds
from tests.reference.rows import Event, project

Sides = tuple[Event | None, ...]
"""A joined row: of each source an event, or None beside a row without a partner."""

Asked = Callable[[Slot, Place], Any]
"""The value of a subquery for the rows around it."""


def product(joins: Sequence[JoinPlan], contents: Sequence[list[Event]], asked: Asked) -> list[Sides]:
    """All joined rows of the contents, before WHERE."""
    rows: list[Sides] = [(event,) for event in contents[0]]
    for join, partners in zip(joins, contents[1:], strict=True):
        pairs = [(row, event) for row in rows for event in partners if _fits(join, (*row, event), asked)]
        joined: list[Sides] = [(*row, event) for row, event in pairs]
        if join.kind in ("left", "full"):
            joined += [(*row, None) for row in rows if all(row is not known for known, _ in pairs)]
        if join.kind in ("right", "full"):
            width = len(rows[0]) if rows else len(contents[: contents.index(partners)])
            joined += [(*[None] * width, e) for e in partners if all(e is not known for _, known in pairs)]
        rows = joined
    return rows


def _fits(join: JoinPlan, sides: Sides, asked: Asked) -> bool:
    return holds(join.on, Reading(sides, (), (), asked).place)


class Reading:
    """What an expression reads: a joined row, the rows that its aggregates cover,
    the rows around a subquery."""

    def __init__(
        self,
        sides: Sides,
        covered: Sequence[Sides],
        outer: Sequence[Row | None],
        asked: Asked,
        calls: Sequence[AggregateCall] = (),
    ) -> None:
        self.covered, self.outer, self.asked, self.calls = covered, outer, asked, calls
        self.place = Place((*(None if e is None else e.row for e in sides), *outer), self.slot)

    def slot(self, slot: Slot) -> Any:
        if slot.kind == "subquery":
            return self.asked(slot, self.place)
        if slot.kind != "aggregate":
            raise NotImplementedError(f"the twin of relations has no {slot.kind}")
        call = self.calls[slot.key]
        places = [Reading(sides, (), self.outer, self.asked).place for sides in self.covered]
        counted = [place for place in places if holds(call.filter, place)]
        values = [evaluate(call.args[0], place) if call.args else True for place in counted]
        return AGGREGATES[call.definition.name](
            distinct(values) if call.distinct else values, *call.constants
        )


class Rows:
    """Makes the rows of one SELECT."""

    def __init__(self, plan: Plan, asked: Asked, outer: Sequence[Row | None] = ()) -> None:
        if plan.order_by or plan.distinct or plan.limit or plan.prevs or plan.analytics or plan.output:
            raise NotImplementedError("the twin of relations has no order, limits, prev or output")
        self.plan, self.asked, self.outer = plan, asked, outer

    def passing(self, rows: Sequence[Sides]) -> list[Sides]:
        """Those that WHERE lets through."""
        return [sides for sides in rows if holds(self.plan.where, self._reading(sides, ()).place)]

    def made(self, shown: Sequence[Sides], covered: Sequence[Sides]) -> list[Row]:
        """The output rows of some joined rows, where aggregates cover others; with HAVING."""
        out = []
        for sides in shown:
            group = [other for other in covered if self.key(other) == self.key(sides)]
            place = self._reading(sides, group).place
            if holds(self.plan.having, place):
                out.append(project(self.plan.items, place, self.plan.sources[0].columns))
        return out

    def whole(self, covered: Sequence[Sides]) -> list[Row]:
        """The rows of a content that is looked at as it is, with nothing before."""
        match self.plan.row_kind:
            case "aggregate":
                return self.made([(None,) * len(self.plan.sources)], covered)
            case "group":
                return self.made(self.firsts(covered), covered)
        return self.made(covered, covered)

    def firsts(self, rows: Sequence[Sides]) -> list[Sides]:
        """The first row of each group, in order of first appearance."""
        found: dict[Any, Sides] = {}
        for sides in rows:
            found.setdefault(self.key(sides), sides)
        return list(found.values())

    def key(self, sides: Sides) -> Any:
        """The group of a row; there is one without GROUP BY."""
        place = self._reading(sides, ()).place if self.plan.group_by else None
        return key_of([evaluate(node, place) for node in self.plan.group_by]) if place else ()

    def _reading(self, sides: Sides, covered: Sequence[Sides]) -> Reading:
        return Reading(sides, covered, self.outer, self.asked, self.plan.aggregates)
