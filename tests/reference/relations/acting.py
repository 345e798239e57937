"""Statements that act on relations: on … select, delete, update and merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sql.plan.logical import ActionPlan, BranchPlan, ChoicePlan, Plan, TriggerPlan
from tests.reference.expressions import Place, Row, evaluate, holds
from tests.reference.members import Delta
from tests.reference.relations.joins import Rows
from tests.reference.relations.statements import Source, Statement
from tests.reference.relations.stores import Refused, shaped
from tests.reference.rows import Event, project

if TYPE_CHECKING:
    from tests.reference.relations.world import World


class Choosing(Statement):
    """on … select, which may delete what it has found."""

    def changed(self, deltas: list[Delta]) -> None:
        assert isinstance(self.plan.acts, ChoicePlan)
        rows, store = Rows(self.plan, self.asking.value), self.world.stores[self.plan.sources[1].stream]
        for event in deltas[0].inserted:
            passes = self.plan.sources[1].filter
            content = [row for row in store.content() if holds(passes, Place((row.row,)))]
            found = rows.passing([(event, row) for row in content])
            self.world.post(self.name, self.plan, rows.whole(found), [])
            if self.plan.acts.delete and found:
                self.world.publish(
                    store, store.write((), [pair[1] for pair in found if pair[1]], self.world.now)
                )


class Acting(Statement):
    """on … delete, update and merge."""

    def __init__(self, name: str, plan: Plan, world: World) -> None:
        super().__init__(name, plan, world)
        assert isinstance(plan.acts, TriggerPlan) and plan.acts.trigger is not None
        if plan.acts.trigger.pattern is not None:
            raise NotImplementedError("the twin of relations has no patterns that act")
        self.acts = plan.acts
        self.sources = [Source(plan.acts.trigger, world)]

    def changed(self, deltas: list[Delta]) -> None:
        inserted: list[Row] = []
        removed: list[Row] = []
        for event in deltas[0].inserted:
            try:
                came, before = self.act(event.row)
            except Refused:
                continue
            inserted += came
            removed += before
        if self.acts.shows == "rows":
            inserted, removed = removed, []
        self.world.post(self.name, self.plan, inserted, removed)

    def act(self, trigger: Row) -> tuple[list[Row], list[Row]]:
        """What one event does: the rows that it writes, also those that a data window refuses, and those that
        were there before. What data windows push out for them is not posted."""
        store = self.world.stores[self.acts.relation]
        changes = Changes(self, trigger)
        is_matched = False
        for event in store.content():
            if holds(self.acts.where, changes.place(event.row, event.row)) and self._may_match():
                is_matched = True
                changes.matched(event, [branch for branch in self.acts.branches if branch.matched])
        if not is_matched:
            changes.unmatched([branch for branch in self.acts.branches if not branch.matched])
        self.world.publish(store, store.write(changes.written, changes.removed, self.world.now))
        for into, row in changes.forwards:
            self.world.forward(into, row)
        removed = [event.row for event in changes.removed]
        if self.acts.shows == "rows":
            return [], removed
        before = [event.row for event, _ in changes.written if event is not None]
        return [shaped(row, store.columns) for _, row in changes.written], before + removed

    def _may_match(self) -> bool:
        return any(branch.matched is not None for branch in self.acts.branches)


class Changes:
    """What an event is about to do to a relation."""

    def __init__(self, statement: Acting, trigger: Row) -> None:
        self.statement, self.trigger = statement, trigger
        self.written: list[tuple[Event | None, Row]] = []
        """In order, each with the row that it updates; None where it is a new one."""
        self.removed: list[Event] = []
        self.forwards: list[tuple[str, Row]] = []

    def place(self, row: Row | None, initial: Row | None) -> Place:
        """Where expressions are evaluated: the event, the row as it is now, the row as it was."""
        rows = (self.trigger, row, initial)
        return Place(rows, lambda slot: self.statement.asking.value(slot, Place(rows)))

    def matched(self, event: Event, branches: list[BranchPlan]) -> None:
        """The first branch that holds acts on a row; each action reads what those before it wrote."""
        row, is_gone, place_of_update = event.row, False, None
        for action in self._chosen(branches, self.place(row, row)):
            place = self.place(row, event.row)
            if not holds(action.where, place):
                continue
            if action.kind == "update":
                row = dict(row)
                for column, value in action.assignments:
                    row[column] = evaluate(value, self.place(row, event.row))
                if place_of_update is None:
                    place_of_update = len(self.written)
                    self.written.append((event, row))
                self.written[place_of_update] = event, row
            elif action.kind == "delete":
                is_gone = True
            else:
                self._insert(action, place)
        if is_gone:
            self.removed.append(event)
            self.written = [pair for pair in self.written if pair[0] is not event]

    def unmatched(self, branches: list[BranchPlan]) -> None:
        place = self.place(None, None)
        for action in self._chosen(branches, place):
            if holds(action.where, place):
                self._insert(action, place)

    @staticmethod
    def _chosen(branches: list[BranchPlan], place: Place) -> Sequence[ActionPlan]:
        return next((branch.actions for branch in branches if holds(branch.condition, place)), ())

    def _insert(self, action: ActionPlan, place: Place) -> None:
        row = project(action.items, place, None)
        if action.into is None:
            self.written.append((None, row))
        else:
            self.forwards.append((action.into, row))
