"""Statements without FROM: a row of the partition's properties when it starts, or when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.operator import earliest
from sql.algebra.output.limit_builder import counted_condition
from sql.algebra.output.output_triggers import CountedCondition
from sql.compiler.program import subqueries_of
from sql.compiler.shared_code import Environment, InstanceData, SharedCode
from sql.emission import Emission, Update
from sql.engine.query import Running, RunningQuery
from sql.engine.statement.running_statement import RunningStatement
from sql.engine.statement.subqueries import Subqueries
from sql.plan.logical import Plan

ONE_ROW = Update([], [], 1)
"""What `output when terminated` counts: the row of the start is the only one."""


class OnceCode(SharedCode):
    """The functions of a statement without FROM."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        super().__init__(env, plan.options, len(plan.subqueries))
        self.plan = plan
        self.subqueries = subqueries_of(plan.subqueries, self)
        self.functions = self.function_set(text=plan.text)
        self.row = self.functions.row(plan.items, [])
        self.gives_rows = plan.selector != "rstream"
        """False if only rows that leave are selected: a row without FROM never does."""
        output = plan.output
        self.at_end = None if output is None or output.mode == "first" else output.terminated


class Once(RunningQuery, Running):
    """Emits its row at the first advance of time, or at the end with `output … when terminated`."""

    def __init__(self, code: OnceCode, env: Environment) -> None:
        super().__init__(env.name, code.plan, env.now_ms)
        self.code = code
        self.catalog = env.catalog
        self.subqueries = Subqueries(code.subqueries, code.warnings, env, RunningStatement, self.report)
        self.instance_data = InstanceData(code, env, self.subqueries.answers)
        self.context, self.functions = code.context, code.functions
        self.at_end: CountedCondition | None = None
        if code.at_end is not None:
            end = code.at_end
            functions, catalog = code.functions, env.catalog
            self.at_end = counted_condition(end.condition, end.then_set, functions, catalog, env.now_ms)
            self.at_end.counters.count(ONE_ROW)
        self.due_ms: int | None = env.now_ms if self.at_end is None else None

    def begin(self, now_ms: int) -> None:
        """Begin work at this instant, or the present one if that is later."""
        self.now_ms = max(self.now_ms, now_ms)
        self.instance_data.install(self.now_ms)

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events for the windows of subqueries."""
        self.begin(now_ms)
        for row in rows:
            self.subqueries.push(stream, row, now_ms)
        return self.take()

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.begin(now_ms)
        self.subqueries.variable_changed(name, self.now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        """The row, if it is due."""
        self.begin(now_ms)
        self.subqueries.advance(now_ms)
        if self.due_ms is not None:
            self.due_ms = None
            self._emit(now_ms)
        return self.take()

    def next_deadline(self) -> int | None:
        """When the row is due, or something in a subquery."""
        return earliest((self.due_ms, self.subqueries.next_deadline()))

    def terminate(self, now_ms: int) -> list[Emission]:
        """The partition ends: the row of `when terminated`."""
        self.begin(now_ms)
        if self.at_end is not None and self.at_end.is_met():
            self._emit(now_ms)
        return self.take()

    def _emit(self, now_ms: int) -> None:
        rows = self.read(now_ms) if self.code.gives_rows else []
        if rows or not (self.plan.output is None or self.plan.output.mode in ("first", "last")):
            self.out.append(Emission(self.name, now_ms, "rows", rows))

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The row at this instant."""
        self.instance_data.install(now_ms)
        return [self.code.row(Event(None, now_ms, 0))]

    def snapshot(self) -> dict[str, Any]:
        at_end = None if self.at_end is None else self.at_end.snapshot()
        subqueries = self.subqueries.snapshot()
        return {**self.head(), "due": self.due_ms, "subqueries": subqueries, "at_end": at_end}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.restore_head(snapshot)
        self.due_ms = snapshot["due"]
        self.subqueries.restore(snapshot.get("subqueries", []))
        if self.at_end is not None and snapshot.get("at_end") is not None:
            self.at_end.restore(snapshot["at_end"])
