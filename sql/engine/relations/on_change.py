"""Statements that act on relations: on … delete, update and merge, split streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.event import Event
from sql.codegen.functions import FunctionSet
from sql.compiler.acting import ActingText, Changed
from sql.compiler.shared_code import Environment
from sql.emission import Row, singles
from sql.engine.relations.triggered import TriggerCode, Triggered
from sql.plan.logical import ActionPlan, Plan, SplitPlan, TriggerPlan
from sql.rows import as_dict


class Insert:
    """A row to insert: its expressions read (trigger row, relation row, initial row)."""

    def __init__(self, plan: ActionPlan, functions: FunctionSet) -> None:
        self.into = plan.into
        self.where = None if plan.where is None else functions.true(plan.where)
        self.row = functions.row(plan.items, [None, None, None])

    def holds(self, probe: Event) -> bool:
        """True if its own WHERE lets it run."""
        return self.where is None or bool(self.where(probe))


class EachChanged(Changed):
    """The changes of a relation by several events, as an emission for each of them."""

    def __init__(self, statement: ActingStatement) -> None:
        super().__init__(statement.fail)
        self.statement = statement

    def post(self, came: Sequence[Row], before: Sequence[Row]) -> None:
        self.post_singles()
        self.statement.post(list(came), before)

    def post_singles(self) -> None:
        """The rows that came in the place of others, an emission each."""
        if self.came:
            made = singles(self.statement.name, self.statement.now_ms, self.came[:], self.before[:])
            self.statement.out.append(made)
            self.came.clear()
            self.before.clear()


class ActingCode(TriggerCode):
    """The function of a trigger that changes a relation."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        acts = plan.acts
        assert isinstance(acts, TriggerPlan) and acts.trigger is not None
        super().__init__(plan, env, acts.trigger, acts.subqueries)
        self.relation = acts.relation
        self.text = ActingText(acts, env.catalog.relations[acts.relation], self.functions)


class ActingStatement(Triggered[ActingCode]):
    """on … delete, update and merge: they act at once."""

    def __init__(self, code: ActingCode, env: Environment) -> None:
        super().__init__(code, env)
        self.work = code.text.over(env.catalog.relations[code.relation], self._forward)

    def act(self, rows: Sequence[Any]) -> None:
        changed = Changed(self.fail)
        self.work(changed, rows, self.now_ms)
        self.post(changed.came, changed.before)

    def act_on_each(self, rows: Sequence[Any]) -> None:
        changed = EachChanged(self)
        self.work(changed, rows, self.now_ms)
        changed.post_singles()

    def _forward(self, stream: str, row: Row) -> None:
        self.catalog.loop.forward(stream, [row], self.name)


class SplitCode(TriggerCode):
    """The functions of a trigger that inserts rows into streams."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        acts = plan.acts
        assert isinstance(acts, SplitPlan)
        super().__init__(plan, env, acts.trigger, acts.subqueries)
        self.every = acts.all
        self.branches = [Insert(branch, self.functions) for branch in acts.branches]


class SplitStatement(Triggered[SplitCode]):
    """on … insert into A select … insert into B select …: rows are queued as those of `insert into`.
    The statement posts the events that no branch takes."""

    def act(self, rows: Sequence[Any]) -> None:
        self.post([dict(as_dict(row)) for row in rows if not self._is_taken(row)])

    def _is_taken(self, row: object) -> bool:
        """Forward the rows of the branches that hold for an event: of all of them, or of the first."""
        probe, is_taken = Event((row, None, None), self.now_ms, 0), False
        for branch in self.code.branches:
            if branch.holds(probe):
                assert branch.into is not None
                self.catalog.loop.forward(branch.into, [branch.row(probe)], self.name)
                is_taken = True
                if not self.code.every:
                    break
        return is_taken
