"""The core of a running statement: its program, its windows and their join, its groups, its memory of earlier
events. Its sources, its output and its state work on these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from sql.algebra.budget import Budget
from sql.algebra.derived.analytic import analytic_stage
from sql.algebra.event import Delta, Event
from sql.algebra.join.joined import Joined
from sql.algebra.join.passing import Passing
from sql.algebra.join.store import Pulled
from sql.algebra.operator import Operator
from sql.algebra.row_blocks import new_holder
from sql.algebra.table.feed import Feed
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.hits import HitCounters
from sql.compiler.program import Program, as_seen
from sql.compiler.shared_code import Environment, InstanceData
from sql.compiler.statement.driving import SEARCHING, is_looked_into
from sql.engine.query import Running, RunningQuery, Stateful
from sql.engine.statement.earlier_events import EarlierEvents
from sql.engine.statement.groups import Groups

Change = Delta | Mapping[int, Delta]
"""The changes of a statement's rows: of its events, or of the sources of a join whose rows are not
kept."""


class StatementCore(RunningQuery, Running):
    """One instance of a compiled statement, without what feeds it and what it emits."""

    def __init__(self, program: Program, env: Environment) -> None:
        super().__init__(env.name, program.plan, env.now_ms)
        plan, text = program.plan, program.text
        self.program = program
        self.env = env
        self.instance_data = InstanceData(program, env)
        self.catalog = env.catalog
        self.context = program.context
        self.shape = program.shape
        self.make_row = env.make_row
        self.holder = new_holder()
        self.start_ms = env.now_ms
        self.began = env.catalog.values_of(program.read_at_start)
        self.code = text.code
        self.is_one_of_many = env.partition is not None or bool(plan.subqueries)
        """True if the program's functions read things that each instance has for itself."""
        self.begin(env.now_ms)
        self.analytic = analytic_stage(plan, program.functions)
        self.windows = [self._window(index) for index in range(len(plan.sources))]
        self.pulled = {i: window for i, window in enumerate(self.windows) if isinstance(window, Pulled)}
        """The relations that are only looked into, by their place."""
        self.joined = self._joined()
        self.groups = Groups(text)
        self.budget = Budget(plan.options.max_window_events, self.retained)
        self.hits = HitCounters(plan.hits)
        self.earlier = EarlierEvents(text, program.functions, self.windows)

    @abstractmethod
    def retained(self) -> int: ...

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: time, partition and answers in its program are this instance's."""
        if self.is_one_of_many:
            self.instance_data.install(now_ms)
        else:
            self.context.now_ms = now_ms

    # --- what it is made of ---------------------------------------------------------------------------------

    def _window(self, index: int) -> Operator:
        """The windows of a source; a relation feeds it, or is looked into where nothing of it makes rows."""
        source, program = self.plan.sources[index], self.program
        if source.relation is None:
            return program.builders[index].build(self.start_ms, self, lambda: self.start_ms)
        relation = self.catalog.relations[source.stream]
        if program.use in SEARCHING:
            return Pulled(relation, program.filters[index])
        if is_looked_into(self.plan, source):
            return Pulled(as_seen(source, self.env), program.filters[index])
        return Feed(relation, partial(self.arrival, index))

    def _joined(self) -> Joined | Passing | None:
        text, code = self.program.text.join, self.program.join
        if code is None:
            return None
        settings = self.plan, code, self.pulled, self.fail
        return Joined(*settings, self.new_event) if text is None else Passing(*settings, text.chains)

    @property
    def kept(self) -> dict[str, Stateful | None]:
        return {"budget": self.budget, "analytic": self.analytic, "hits": self.hits}

    # --- events ---------------------------------------------------------------------------------------------

    def arrival(self, index: int, row: object, now_ms: int) -> Event | None:
        """The event, if it passes the filter of a source."""
        event = self.new_event(row, now_ms)
        passes = self.program.filters[index]
        try:
            if self.analytic is not None:
                self.analytic.see(event)
            return event if passes is None or passes(event) else None
        except DATA_ERRORS as error:
            self.fail(row, error)
            return None

    def fail(self, row: object, error: BaseException) -> None:
        """An event could not be evaluated."""
        if self.analytic is not None:
            self.analytic.drop(row)
        self.report(row, self.program.functions.failure(error, self.code))

    @abstractmethod
    def present(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the present content, made at an instant."""
