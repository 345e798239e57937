"""Outer joins: a chain of steps, each joins what is joined before it with one more source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.join.inner import Sides
from sql.algebra.join.outer_step import Net, Step, StepCode, count_in, joined_event
from sql.algebra.join.store import Rows, Store
from sql.algebra.join.tables_before import of_tables
from sql.algebra.table.search import Find
from sql.codegen.functions import FunctionSet
from sql.errors import Fail
from sql.plan.clauses import JoinPlan


class OuterCode:
    """A chain of steps over all sources, made once for all instances of a join."""

    def __init__(self, joins: Sequence[JoinPlan], functions: FunctionSet) -> None:
        self.joins = joins
        self.functions = functions
        self.steps: list[StepCode] = []

    def over(self, stores: Sequence[Store], fail: Fail) -> Outer:
        if not self.steps:
            self.steps = [
                StepCode(self.joins, place, stores, self.functions) for place in range(1, len(self.joins) + 1)
            ]
        return Outer(self.steps, stores, fail)


class Outer:
    """The joined rows of one instance."""

    def __init__(self, steps: Sequence[StepCode], stores: Sequence[Store], fail: Fail) -> None:
        """`fail` takes joined rows whose condition cannot be evaluated."""
        self.stores = stores
        self.steps = [
            Step(code, stores, fail, partial(self._joined_before, place)) for place, code in enumerate(steps)
        ]
        for code, step in zip(steps, self.steps, strict=True):
            if code.to_table is not None:
                step.tables = partial(self._beside_first, step, code.to_table.over(stores[0], step.failed))
            elif code.meets_tables:
                step.tables = partial(self._beside_tables, step)

    def change(self, changes: Mapping[int, Delta]) -> Net:
        """The net change of the joined rows, from the rows that came and went by source."""
        change, first, net = changes.get(0, Delta()), self.stores[0], Net()
        if isinstance(first, Rows):
            first.change(change)
        for event in change.inserted:
            count_in(net, (event,), 1)
        for event in change.removed:
            count_in(net, (event,), -1)
        net = {sides: count for sides, count in net.items() if count}
        for step in self.steps:
            came, went = changes.get(step.place, Delta())
            stayed = [event for event in came if event not in set(went)]
            left = [event for event in went if event not in set(came)]
            net = step.change(net, stayed, left)
        return net

    def product(self) -> list[Sides]:
        return self._joined(self.steps)

    def _beside_first(self, step: Step, find: Find, event: Event) -> list[Sides]:
        """The rows of the first source, a table, that stand alone beside an event."""
        nothing: list[Any] = [None] * step.width
        nothing[step.place] = event.row
        rows: list[Sides] = [(found,) for found in find(nothing, 0)]
        for before in self.steps[: step.place - 1]:
            rows = before.extend(rows)
        return of_tables(rows, self.stores)

    def _beside_tables(self, step: Step, event: Event) -> list[Sides]:
        """The joined rows of several tables that stand alone beside an event."""
        rows = of_tables(self._joined_before(step.place - 1), self.stores)
        return [sides for sides in rows if step.pairs(joined_event(sides, step.width), event)]

    def _joined_before(self, place: int) -> list[Sides]:
        return self._joined(self.steps[:place])

    def _joined(self, steps: Iterable[Step]) -> list[Sides]:
        """The present rows of the first source, joined by the first steps."""
        rows: list[Sides] = [(event,) for event in self.stores[0].content()]
        for step in steps:
            longer = step.extend(rows)
            if step.keeps_right:
                met = {sides[-1] for sides in longer}
                longer += [(*step.nothing, right) for right in step.right.content() if right not in met]
            rows = longer
        return rows

    def between(self) -> list[list[Sides]]:
        """The rows joined before each step but the first, in order of arrival."""
        return [list(step.lefts) for step in self.steps[1:]]

    def restore(
        self, sources: Sequence[Sequence[Event]], between: Sequence[Sequence[Sides]], rows: Sequence[Sides]
    ) -> None:
        """Put a snapshot back: the rows of each source, those joined before each step but the first, and
        those shown."""
        first = self.stores[0]
        if isinstance(first, Rows):
            first.change(Delta(sources[0]))
        before = [[(event,) for event in sources[0]], *between]
        for step, lefts, shown in zip(self.steps, before, [*between, rows], strict=True):
            step.restore(lefts, sources[step.place], shown)

    def of_event(self, driver: int, event: Event) -> list[Sides]:
        """The joined rows that hold an event of a source that keeps nothing."""
        if driver == 0:
            rows: list[Sides] = [(event,)]
        else:
            rows = self._beside(self.steps[driver - 1], self._joined(self.steps[: driver - 1]), event)
        for step in self.steps[driver:]:
            rows = step.extend(rows)
        return rows

    @staticmethod
    def _beside(step: Step, rows: list[Sides], event: Event) -> list[Sides]:
        found = [(*sides, event) for sides in rows if step.pairs(joined_event(sides, step.width), event)]
        return found or ([(*step.nothing, event)] if step.keeps_right else [])
