"""Statements that act on relations: on … delete, update and merge, split streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.event import Event
from sql.codegen.functions import FunctionSet
from sql.compiler.acting import ActingText, Changed
from sql.compiler.shared_code import Environment
from sql.emission import Emission, Row, singles
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

    def __init__(self, statement: ActingStatement, now_ms: int) -> None:
        super().__init__(self._failed)
        self.statement = statement
        self.now_ms = now_ms
        self.out: list[Emission] = []

    def post(self, came: Sequence[Row], before: Sequence[Row]) -> None:
        self._take_singles()
        self.out += self.statement.shown(list(came), before, self.now_ms)

    def emissions(self) -> list[Emission]:
        """The emissions of all events, in order."""
        self._take_singles()
        return self.out

    def _failed(self, row: object, error: BaseException) -> None:
        self._take_singles()
        self.out += self.statement.failed(row, self.statement.functions.failure(error), self.now_ms)

    def _take_singles(self) -> None:
        """The rows that came in the place of others, an emission each."""
        if self.came:
            self.statement.counts["rows_out"] += len(self.came)
            self.out.append(singles(self.statement.name, self.now_ms, self.came[:], self.before[:]))
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

    def act(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        errors: list[Emission] = []

        def fail(row: object, error: BaseException) -> None:
            errors.extend(self.failed(row, self.functions.failure(error), now_ms))

        changed = Changed(fail)
        self.work(changed, rows, now_ms)
        return self.shown(changed.came, changed.before, now_ms) + errors

    def act_on_each(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        changed = EachChanged(self, now_ms)
        self.work(changed, rows, now_ms)
        return changed.emissions()

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

    def act(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return self.shown([dict(as_dict(row)) for row in rows if not self._taken(row, now_ms)], (), now_ms)

    def _taken(self, row: object, now_ms: int) -> bool:
        """Forward the rows of the branches that hold for an event: of all of them, or of the first."""
        probe, is_taken = Event((row, None, None), now_ms, 0), False
        for branch in self.code.branches:
            if branch.holds(probe):
                assert branch.into is not None
                self.catalog.loop.forward(branch.into, [branch.row(probe)], self.name)
                is_taken = True
                if not self.code.every:
                    break
        return is_taken
