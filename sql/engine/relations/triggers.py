"""What acts on relations: on … delete, update and merge, split streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.table.search import finder
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.emission import Emission
from sql.engine.relations.statements import Partition, Triggered
from sql.plan.logical import Plan
from sql.plan.relations import ActionPlan, BranchPlan, SplitPlan, TriggerPlan

Row = dict[str, Any]


class Action:
    """One action of a branch, ready to run: expressions read (trigger row, relation row, initial row)."""

    def __init__(self, plan: ActionPlan, functions: FunctionSet) -> None:
        self.kind = plan.kind
        self.into = plan.into
        self.where = None if plan.where is None else functions.true(plan.where)
        self.row = functions.row(plan.items, [None, None, None]) if plan.kind == "insert" else None
        self.setters = [(column, functions.value(value)) for column, value in plan.assignments]

    def holds(self, probe: Event) -> bool:
        """Whether its own WHERE lets it run."""
        return self.where is None or bool(self.where(probe))

    def changed(self, probe: Event, row: Row) -> Row:
        """The row with what SET gives, left to right: a column already set reads as new."""
        trigger, _, initial = probe.row
        row = dict(row)
        for column, value in self.setters:
            probe.row = (trigger, row, initial)
            row[column] = value(probe)
        return row


class Branch:
    """A branch of merge; update and delete are one branch."""

    def __init__(self, plan: BranchPlan, functions: FunctionSet) -> None:
        self.matched = plan.matched
        self.condition = None if plan.condition is None else functions.true(plan.condition)
        self.actions = [Action(action, functions) for action in plan.actions]


class Work:
    """What one event does to a relation, collected before any of it is done."""

    def __init__(self) -> None:
        self.updates: list[tuple[Event, Row]] = []
        self.inserts: list[Row] = []
        self.removed: list[Event] = []
        self.forwards: list[tuple[str, Row]] = []


class Actor:
    """Finds the rows that an event means and runs the branches on them."""

    def __init__(self, plan: TriggerPlan, catalog: Catalog, functions: FunctionSet) -> None:
        self.plan = plan
        self.relation = catalog.relations[plan.relation]
        self.find = finder(plan.where, 1, {0}, self.relation, functions)
        self.branches = [Branch(branch, functions) for branch in plan.branches]

    def __call__(self, trigger: Any, now_ms: int, forward: Callable[[str, Row], None]) -> Delta:
        """The change of the relation that an event causes; rows for other streams go to `forward`."""
        work = self._work(trigger, now_ms)
        delta = Delta()
        if work.updates or work.inserts or work.removed:
            delta = self.relation.write(work.updates, work.inserts, work.removed, now_ms)
        for stream, row in work.forwards:
            forward(stream, row)
        return Delta((), work.removed) if self.plan.shows == "rows" else delta

    def _work(self, trigger: Any, now_ms: int) -> Work:
        probe = Event((trigger, None, None), now_ms, 0)
        work = Work()
        matched = self._matched(trigger, probe)
        for event in matched:
            probe.row = (trigger, event.row, event.row)
            branch = self._branch(True, probe)
            if branch is not None:
                self._run(branch, event, probe, work)
        if not matched:
            probe.row = (trigger, None, None)
            branch = self._branch(False, probe)
            for action in branch.actions if branch is not None else ():
                if action.holds(probe):
                    self._insert(action, probe, work)
        return work

    def _matched(self, trigger: Any, probe: Event) -> list[Event]:
        if not any(branch.matched for branch in self.branches) and self.plan.where is None:
            return []  # a merge that only inserts
        return self.find((trigger, None, None), probe.time_ms)

    def _branch(self, matched: bool, probe: Event) -> Branch | None:
        for branch in self.branches:
            if branch.matched is matched and (branch.condition is None or branch.condition(probe)):
                return branch
        return None

    def _run(self, branch: Branch, event: Event, probe: Event, work: Work) -> None:
        """The actions on one row, one after the other: each reads what those before it wrote."""
        trigger, row, initial = probe.row
        updated = gone = False
        for action in branch.actions:
            probe.row = (trigger, row, initial)
            if not action.holds(probe):
                continue
            if action.kind == "insert":
                self._insert(action, probe, work)
            elif action.kind == "delete":
                gone = True
            else:
                row, updated = action.changed(probe, row), True
        if gone:
            work.removed.append(event)
        elif updated:
            work.updates.append((event, row))

    @staticmethod
    def _insert(action: Action, probe: Event, work: Work) -> None:
        assert action.row is not None
        row = action.row(probe)
        if action.into is None:
            work.inserts.append(row)
        else:
            work.forwards.append((action.into, row))


class ActingStatement(Triggered):
    """on … delete, update and merge: they act at once."""

    def __init__(self, name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Partition = None) -> None:
        acts = plan.acts
        assert isinstance(acts, TriggerPlan) and acts.trigger is not None
        super().__init__(name, plan, catalog, acts.trigger, acts.subqueries, now_ms, partition)
        self.actor = Actor(acts, catalog, self.functions)

    def act(self, rows: list[Any], now_ms: int) -> list[Emission]:
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

    def __init__(self, name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Partition = None) -> None:
        acts = plan.acts
        assert isinstance(acts, SplitPlan)
        super().__init__(name, plan, catalog, acts.trigger, acts.subqueries, now_ms, partition)
        self.every = acts.all
        self.branches = [Action(branch, self.functions) for branch in acts.branches]

    def act(self, rows: list[Any], now_ms: int) -> list[Emission]:
        for row in rows:
            probe = Event((row, None, None), now_ms, 0)
            for branch in self.branches:
                if not branch.holds(probe):
                    continue
                assert branch.row is not None and branch.into is not None
                self.catalog.loop.forward(branch.into, [branch.row(probe)], self.name)
                if not self.every:
                    break
        return []
