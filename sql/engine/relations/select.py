"""on … select: answers from the rows that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.table.search import finder
from sql.catalog.streams import Catalog
from sql.compiler.joins.driven import makes_rows
from sql.compiler.statement import drives
from sql.emission import Emission
from sql.engine.relations.statements import Partition, PostingStatement, Triggered
from sql.engine.running.evaluation import Evaluation
from sql.engine.running.statement import looking
from sql.plan.logical import Plan
from sql.plan.relations import ChoicePlan
from sql.record import replace

Row = dict[str, Any]


def select_statement(
    name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Partition = None
) -> PostingStatement:
    """The runner of an on … select: the loop of a join where each event gives rows of its
    own and takes none away."""
    acts, asked = plan.acts, replace(plan, acts=None)
    assert isinstance(acts, ChoicePlan)
    if not acts.delete and drives(asked) and makes_rows(asked):
        return LoopedSelect(name, plan, asked, catalog, now_ms, partition)
    return SelectStatement(name, plan, catalog, now_ms, partition)


class LoopedSelect(PostingStatement):
    """An on … select whose events go through the compiled loop of a join."""

    def __init__(
        self, name: str, plan: Plan, asked: Plan, catalog: Catalog, now_ms: int, partition: Partition
    ) -> None:
        """`asked`: the plan as a join."""
        super().__init__(name, plan)
        self.query = looking(name, asked, catalog, now_ms, partition=partition)
        self.query.counts = self.counts

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return self.query.push(stream, rows, now_ms)

    def snapshot(self) -> dict[str, Any]:
        return {"fingerprint": self.plan.fingerprint, "subqueries": [], "counts": dict(self.counts)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.counts |= snapshot["counts"]


class SelectStatement(Triggered):
    """on … select: answers from the rows that are there, and with `and delete` removes those that matched."""

    def __init__(
        self, name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Partition = None
    ) -> None:
        acts = plan.acts
        assert isinstance(acts, ChoicePlan)
        super().__init__(name, plan, catalog, plan.sources[0], (), now_ms, partition)
        where, bare = plan.where, replace(plan, where=None, acts=None)
        self.query = looking(name, bare, catalog, now_ms, partition=partition)
        self.query.counts = self.counts
        self.evaluation = Evaluation(
            bare, self.query.program.text, self.query.output.row_limit, self.query.fail
        )
        self.subqueries = self.query.sources.subqueries or self.subqueries
        functions = self.query.program.functions
        self.passes = self.query.program.filters[0]
        self.functions = functions
        self.delete = acts.delete
        self.relation = catalog.relations[plan.sources[1].stream]
        filtered = self.query.windows[1].rows  # type: ignore[attr-defined]
        self.find = finder(where, 1, {0}, filtered, functions)

    def taken(self) -> list[Emission]:
        return [*super().taken(), *self.query.take()]

    def act(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.query.now_ms = now_ms
        self.query.begin(now_ms)
        out: list[Emission] = []
        shown: list[Row] = []
        for row in rows:
            found, pairs = self._matched(row, now_ms)
            shown += self.evaluation.rows(pairs, Event((row, None), now_ms, -1))
            out += self.query.take()
            if self.delete and found:
                self.relation.change([], found, now_ms)
        return self.shown(shown, (), now_ms) + out

    def _matched(self, trigger: Any, now_ms: int) -> tuple[list[Event], list[Event]]:
        """The rows that match, and each beside the trigger."""
        found = self.find((trigger, None), now_ms)
        return found, [Event((trigger, event.row), now_ms, event.seq) for event in found]
