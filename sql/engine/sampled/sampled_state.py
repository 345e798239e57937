"""The state of a running sampled rule that its output and its sharing of groups work on."""

from __future__ import annotations

from sql.algebra.derived.analytic import AnalyticStage
from sql.algebra.row_blocks import new_holder
from sql.algebra.sample.core import Core
from sql.algebra.sample.sampled_rows import CommonRows
from sql.codegen.hits import HitCounters
from sql.compiler.shared_code import Environment
from sql.engine.query import Running
from sql.engine.sampled.sampled_text import SampledText
from sql.engine.statement.running_query import RunningQuery


class SampledState(RunningQuery, Running):
    """One instance of the compiled text, with its core."""

    core: Core
    """Its windows; its owner is the output."""

    def __init__(self, code: SampledText, env: Environment) -> None:
        plan = code.plan
        super().__init__(env.name, plan, env.now_ms)
        self.holder = new_holder()
        self.of_plan = code
        self.partition = env.partition
        self.own = code.catalog.own.found(env.catalog.variables, env.catalog.relations)
        self.hits = code.hits if env.partition is None else HitCounters(plan.hits)
        self.begin(env.now_ms)
        self.context, self.catalog = code.context, code.catalog
        self.shape, self.make_row = code.shape, code.make_row
        self.analytic: AnalyticStage | None = None
        if plan.analytics:
            self.analytic = AnalyticStage(plan.analytics, code.functions, plan.options.max_groups)
        self.is_timed = code.is_timed
        self.takes_times = not plan.joins
        self.common: CommonRows | None = None
        """The rule's rows among those that all make, while it shares groups."""

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: what the functions read is this instance's."""
        if self.partition is None:
            return
        self.of_plan.begin(now_ms, self.partition, self.own, ())
        if self.plan.hits:
            self.of_plan.hits.restore(self.hits.snapshot())
