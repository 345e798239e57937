"""on … select: answers from the rows that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sql.algebra.event import Event
from sql.algebra.table.search import Finder
from sql.compiler.program import Program, looking_code
from sql.compiler.shared_code import Environment
from sql.compiler.statement.driving import drives, makes_rows
from sql.emission import Emission, Row
from sql.engine.relations.triggered import PostingStatement, TriggerCode, Triggered
from sql.engine.statement.evaluation import Evaluation
from sql.engine.statement.running_statement import RunningStatement
from sql.plan.bound import take_events_once
from sql.plan.logical import ChoicePlan, Plan
from sql.record import replace


def select_code(plan: Plan, env: Environment) -> Callable[[Environment], LoopedSelect | SelectStatement]:
    """Makes an on … select: with the loop of a join where each event gives rows of its own and takes none
    away."""
    acts, asked = plan.acts, replace(plan, acts=None)
    assert isinstance(acts, ChoicePlan)
    if not acts.delete and drives(asked) and makes_rows(asked):
        return partial(LoopedSelect, plan, looking_code(asked, env))
    return partial(SelectStatement, SelectCode(plan, env))


class LoopedSelect(PostingStatement):
    """An on … select whose events go through the compiled loop of a join."""

    def __init__(self, plan: Plan, program: Program, env: Environment) -> None:
        super().__init__(env.name, plan, env.now_ms)
        self.query = RunningStatement(program, env)
        self.query.counts = self.counts

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return self.query.push(stream, rows, now_ms)

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"subqueries": []}


class SelectCode(TriggerCode):
    """The functions of an on … select that evaluates the rows it finds together."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        acts = plan.acts
        assert isinstance(acts, ChoicePlan)
        super().__init__(plan, env, plan.sources[0], ())
        self.delete = acts.delete
        self.is_numbered = take_events_once(plan.aggregates)
        """True if an aggregate tells the events of a source from each other, by the numbers of a pair."""
        self.program = looking_code(replace(plan, where=None, acts=None), env, "evaluated")
        self.passes, self.functions = self.program.filters[0], self.program.functions
        first = RunningStatement(self.program, env)
        rows = first.pulled[1]
        self.finder = Finder(plan.where, 1, {0}, rows, self.functions)


class SelectStatement(Triggered[SelectCode]):
    """on … select: answers from the rows that are there, and with `and delete` removes those that matched."""

    def __init__(self, code: SelectCode, env: Environment) -> None:
        super().__init__(code, env)
        self.query = RunningStatement(code.program, env)
        self.query.counts = self.counts
        self.evaluation = Evaluation(code.program.text, code.functions, self.query.fail)
        self.subqueries = self.query.sources.subqueries or self.subqueries
        self.relation = env.catalog.relations[code.plan.sources[1].stream]
        self.find = code.finder.over(self.query.pulled[1])

    def begin(self, now_ms: int) -> None:
        super().begin(now_ms)
        self.query.now_ms = now_ms
        self.query.begin(now_ms)

    def take(self) -> list[Emission]:
        return [*super().take(), *self.query.take()]

    def act(self, rows: Sequence[Any]) -> None:
        shown: list[Row] = []
        for row in rows:
            found, pairs = self._matched(row)
            shown += self.evaluation.rows(pairs, Event((row, None), self.now_ms, -1))
            if self.code.delete and found:
                self.relation.change([], found, self.now_ms)
        self.post(shown)

    def _matched(self, trigger: object) -> tuple[list[Event], list[Event]]:
        """The rows that match, and each beside the trigger."""
        found = self.find((trigger, None), self.now_ms)
        rows = self.evaluation.read(found)
        pairs = [
            Event((trigger, row), self.now_ms, event.seq) for event, row in zip(found, rows, strict=True)
        ]
        if self.code.is_numbered:
            for place, pair in enumerate(pairs):
                pair.extra = (0, place)
        return found, pairs
