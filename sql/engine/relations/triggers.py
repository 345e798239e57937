"""Statements that act on relations: on … delete, update and merge, split streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.algebra.event import Delta, Event
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.compiler.acting import ActingText
from sql.emission import Emission
from sql.engine.relations.statements import Partition, Triggered
from sql.plan.logical import Plan
from sql.plan.relations import ActionPlan, SplitPlan, TriggerPlan

Row = dict[str, Any]


class Insert:
    """A row to insert: its expressions read (trigger row, relation row, initial row)."""

    def __init__(self, plan: ActionPlan, functions: FunctionSet) -> None:
        self.into = plan.into
        self.where = None if plan.where is None else functions.true(plan.where)
        self.row = functions.row(plan.items, [None, None, None])

    def holds(self, probe: Event) -> bool:
        """True if its own WHERE lets it run."""
        return self.where is None or bool(self.where(probe))


class Actor:
    """Does what an event does to a relation."""

    def __init__(self, plan: TriggerPlan, catalog: Catalog, functions: FunctionSet) -> None:
        self.plan = plan
        self.relation = catalog.relations[plan.relation]
        self.work = ActingText(plan, self.relation, functions).compiled()

    def __call__(self, trigger: Any, now_ms: int, forward: Callable[[str, Row], None]) -> Delta:
        """The change of the relation that an event causes; rows for other streams go to `forward`."""
        updates, inserts, removed, forwards = self.work(trigger, now_ms)
        delta = NOTHING
        if updates or inserts or removed:
            delta = self.relation.write(updates, inserts, removed, now_ms)
        for stream, row in forwards:
            forward(stream, row)
        return Delta((), removed) if self.plan.shows == "rows" else delta


NOTHING = Delta()


class ActingStatement(Triggered):
    """on … delete, update and merge: they act at once."""

    def __init__(
        self, name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Partition = None
    ) -> None:
        acts = plan.acts
        assert isinstance(acts, TriggerPlan) and acts.trigger is not None
        super().__init__(name, plan, catalog, acts.trigger, acts.subqueries, now_ms, partition)
        self.actor = Actor(acts, catalog, self.functions)

    def act(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        inserted: list[Row] = []
        removed: list[Row] = []
        out: list[Emission] = []
        for row in rows:
            try:
                delta = self.actor(row, now_ms, self._forward)
            except DATA_ERRORS as error:
                out += self.failed(row, self.functions.failure(error), now_ms)
                continue
            inserted += [event.row for event in delta.inserted]
            removed += [event.row for event in delta.removed]
        if self.actor.plan.shows == "rows":
            inserted, removed = removed, []
        return self.shown(inserted, removed, now_ms) + out

    def _forward(self, stream: str, row: Row) -> None:
        self.catalog.loop.forward(stream, [row], self.name)


class SplitStatement(Triggered):
    """on … insert into A select … insert into B select …: rows are queued as those of `insert into`."""

    def __init__(
        self, name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Partition = None
    ) -> None:
        acts = plan.acts
        assert isinstance(acts, SplitPlan)
        super().__init__(name, plan, catalog, acts.trigger, acts.subqueries, now_ms, partition)
        self.every = acts.all
        self.branches = [Insert(branch, self.functions) for branch in acts.branches]

    def act(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        for row in rows:
            probe = Event((row, None, None), now_ms, 0)
            for branch in self.branches:
                if not branch.holds(probe):
                    continue
                assert branch.into is not None
                self.catalog.loop.forward(branch.into, [branch.row(probe)], self.name)
                if not self.every:
                    break
        return []
