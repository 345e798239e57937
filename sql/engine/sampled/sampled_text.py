"""The compiled text of a rule with a window in GROUP BY, and the state of its instances that their output
and their sharing of groups work on."""

from __future__ import annotations

from sql.algebra.derived.analytic import AnalyticStage
from sql.algebra.output.row_order import row_limit
from sql.algebra.row_blocks import new_holder
from sql.algebra.sample.compose import compose
from sql.algebra.sample.core import Core, CoreCode
from sql.algebra.sample.instance import Tap
from sql.algebra.sample.parts import SampleParts
from sql.algebra.sample.sampled_rows import CommonRows, SampledRows
from sql.algebra.sample.source_join import JoinCode
from sql.codegen.functions import FunctionSet
from sql.codegen.hits import HitCounters
from sql.compiler.shared_code import Environment, SharedCode
from sql.engine.query import Running, RunningQuery
from sql.plan.logical import Plan


class SampledText(SharedCode):
    """The functions of a rule with a window in GROUP BY, made once for all its instances."""

    def __init__(
        self, plan: Plan, env: Environment, *, tap: Tap | None = None, by_instants: bool = False
    ) -> None:
        """`tap` observes the windows; `by_instants`: events come with an instant each,
        in processing time too."""
        super().__init__(env, plan.options)
        self.plan = plan
        self.shape, self.make_row = env.shape, env.make_row
        self.hits = HitCounters(plan.hits)
        """The hits of the instance at work."""
        self.is_timed = by_instants or plan.timestamp is not None
        self.functions = self.text_functions()
        self.row_limit = row_limit(plan, self.functions)
        self.join = JoinCode(plan, self.functions) if plan.joins else None
        self.made = self.composed(plan, tap)
        self.core = CoreCode(self.made, self.text_functions())
        self.sampled_rows = SampledRows(
            plan, env.catalog, env.shape, self.text_functions(), self.hits, self.made.entries
        )

    def composed(self, plan: Plan, tap: Tap | None = None) -> SampleParts:
        """The parts of the windows of a plan like the rule's."""
        zone = self.context.zone
        return compose(plan, self.catalog, self.shape, self.hits, zone, self.make_row,
                       is_timed=self.is_timed, tap=tap)  # fmt: skip

    def text_functions(self) -> FunctionSet:
        """The writer of expressions for a text of its own."""
        found = FunctionSet(*self.settings, shape=self.shape, joined=bool(self.plan.joins),
                            text=self.plan.text, hits=self.hits, literals=False)  # fmt: skip
        found.names.bound["partition"] = self.partition
        return found


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
        self.common: CommonRows | None = None
        """The rule's rows among those that all make, while it shares groups."""

    def begin(self, now_ms: int) -> None:
        """Begin work of this instance: what the functions read is this instance's."""
        if self.partition is None:
            return
        self.of_plan.begin(now_ms, self.partition, self.own, ())
        if self.plan.hits:
            self.of_plan.hits.restore(self.hits.snapshot())
