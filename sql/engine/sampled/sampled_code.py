"""The compiled text of a rule with a window in GROUP BY."""

from __future__ import annotations

from collections.abc import Hashable

from sql.algebra.output.row_order import row_limit
from sql.algebra.sample.compose import SampleParts, compose
from sql.algebra.sample.core import CoreCode
from sql.algebra.sample.folding.folded import Folded
from sql.algebra.sample.folding.group_fold import is_numeric
from sql.algebra.sample.instance import Tap
from sql.algebra.sample.sampled_rows import SampledRows
from sql.algebra.sample.source_join import SourceJoinCode
from sql.algebra.sample.windows.tumbling import OnGrid
from sql.algebra.sample.write import write_each
from sql.codegen.functions import FunctionSet
from sql.codegen.hits import HitCounters
from sql.codegen.source import Generated, SourceWriter
from sql.compiler.shared_code import Environment, SharedCode
from sql.plan.bound import Bound, Op, reads_clock
from sql.plan.logical import Plan


class SampledCode(SharedCode):
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
        self.join = SourceJoinCode(plan, self.functions) if plan.joins else None
        self.core = CoreCode(self.composed(plan, tap))
        self.sampled_rows = SampledRows(plan, self.text_functions(), self.hits, self.core.parts.entries)

    def composed(self, plan: Plan, tap: Tap | None = None) -> SampleParts:
        """The parts of the windows of a plan like the rule's."""
        return compose(plan, self.text_functions(), self.hits, self.context.zone, self.make_row,
                       is_timed=self.is_timed, tap=tap)  # fmt: skip

    def text_functions(self) -> FunctionSet:
        """The writer of expressions for a text of its own."""
        joined = bool(self.plan.joins)
        found = self.function_set(text=self.plan.text, joined=joined, hits=self.hits, literals=False)
        found.names.bound["partition"] = self.partition
        return found

    # --- rules alike ----------------------------------------------------------------------------------------

    @property
    def signature(self) -> Hashable | None:
        """Equal for rules that find the same groups for the same events;
        None for a rule that always works alone."""
        return self.signature_of(self.plan) if self.may_share else None

    @property
    def may_share(self) -> bool:
        """True if the rule treats an event as any rule with these conditions, keys and window does.

        Aggregates that read more than numbers are not shared, nor expressions that count divisions by zero
        for their rule or read its time.
        """
        plan, parts, window = self.plan, self.core.parts, self.plan.window
        if window is None or window.partition_by or not plan.emits_as_made or plan.options.emit_empty:
            return False
        if not isinstance(parts.content, Folded) or not isinstance(parts.window, OnGrid):
            return False
        own = plan.analytics or any(map(_is_the_rules_own, parts.per_event()))
        return not own and all(map(is_numeric, plan.aggregates))

    def signature_of(self, plan: Plan) -> Hashable:
        """A signature equal for rules whose conditions, keys and windows are equal."""
        shared = plan.options.zone, plan.options.max_groups, self.shape, self.is_timed
        return plan.window, plan.where, plan.group_by, *shared

    def code_for_each(self, plan: Plan) -> Generated:
        """The loop over the events of rules alike."""
        parts, writer = self.composed(plan), SourceWriter()
        write_each(writer, parts)
        return Generated(writer, parts.functions.names.bound)


def _is_the_rules_own(expression: Bound) -> bool:
    divides = any(isinstance(node, Op) and node.name in ("/", "%") for node in expression.walk())
    return divides or reads_clock(expression)
