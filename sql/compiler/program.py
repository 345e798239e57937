"""The program of a plan: everything that is made once, whatever the number of running instances.

Parameters, filters and the compiled text belong to the plan; windows, groups and counters belong to an
instance (`sql.engine.running.running_statement`), which a program makes in microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.accumulators import LocalGroups
from sql.algebra.derived.statistics import Nobody
from sql.algebra.operator import Operator
from sql.algebra.window_builder import WindowBuilder
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet
from sql.codegen.hits import HitCounters
from sql.codegen.support import Warnings
from sql.compiler.pattern_code import PatternCode
from sql.compiler.recognize_text import RecognizeCode
from sql.compiler.shared_code import Environment, SharedCode
from sql.compiler.statement.driving import PLAIN, Use, drives
from sql.compiler.statement.fold import keeps_values
from sql.compiler.statement.statement_frame import StatementFrame
from sql.compiler.statement.statement_text import StatementText
from sql.compiler.subquery_code import SubqueryCode, codes_of
from sql.functions.definition import Context
from sql.plan.bound import Bound
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan, SubqueryPlan


class Program(SharedCode):
    """A compiled statement or stream query."""

    def __init__(self, plan: Plan, env: Environment, use: Use = PLAIN) -> None:
        super().__init__(env, plan.options, len(plan.subqueries))
        self.plan = plan
        self.shape = env.shape
        self.use = use
        self.subqueries = subqueries_of(plan.subqueries, self)
        aggregates, prevs = len(plan.aggregates), len(plan.prevs)
        self.offsets = {"aggregate": 0, "prev": aggregates, "row_number": aggregates + prevs}
        self.functions = self._functions()
        self.builders = [self._builder(source) for source in plan.sources]
        self.filters = [
            None if source.filter is None else builder.functions.true(source.filter)
            for source, builder in zip(plan.sources, self.builders, strict=True)
        ]
        self.patterns = {
            place: PatternCode(source, self)
            for place, source in enumerate(plan.sources)
            if source.pattern is not None
        }
        """The patterns among the sources, by their place."""
        self.recognized = {
            place: RecognizeCode(source, self)
            for place, source in enumerate(plan.sources)
            if source.recognize is not None
        }
        """The sources with match_recognize, by their place."""
        for builder in self.builders:  # errors of a filter are reported with their place in the text
            self.functions.spans |= builder.functions.spans
        self.item_keys = self._item_keys()
        self.text = StatementText(StatementFrame(plan, self, self.answers, use, self._window(env.now_ms)))
        self.keys = {
            place: self.functions.key(item.call.group_by or ())
            for place, item in self.text.fold.kept.accumulated.items()
            if item.is_shared
        }

    def _window(self, now_ms: int) -> Operator | None:
        """The window of the only stream, as instances have it."""
        if self.plan.joins or self.plan.sources[0].relation is not None:
            return None
        return self.builders[0].build(now_ms, Nobody(), lambda: now_ms)

    def _functions(self) -> FunctionSet:
        """The set in which the functions of the statement's expressions are made."""
        return FunctionSet(
            *self.settings, shape=self.shape, joined=self.plan.reads_tuples, text=self.plan.text,
            offsets=self.offsets, hits=HitCounters(self.plan.hits), subqueries=self.answers,
        )  # fmt: skip

    def _builder(self, source: SourcePlan) -> WindowBuilder:
        alone = drives(self.plan) and not self.use.calls_windows
        return WindowBuilder(
            source, self.options, *self.settings, self.shape, self.answers,
            alone=alone, keeps_values=alone and keeps_values(self.plan), shown_by=self._shown_by(),
        )  # fmt: skip

    def _shown_by(self) -> tuple[Bound, ...]:
        """The keys of the groups, where a step shows no more than one row
        of each group that it has changed."""
        plan = self.plan
        is_plain = plan.row_kind == "group" and plan.output is None and not plan.prevs
        return plan.group_by if is_plain else ()

    def _item_keys(self) -> list[list[Any]]:
        """The item keys of each source's windows in a stream query."""
        lots = [source.lot for source in self.plan.sources]
        return [
            [self.functions.key(keys) for keys in (lot.partition_by, lot.unique) if keys]
            if lot is not None
            else []
            for lot in lots
        ]

    def shared_accumulators(self) -> dict[int, LocalGroups]:
        """The accumulators of aggregates with dimensions of their own, for a new instance."""
        accumulated = self.text.fold.kept.accumulated
        return {
            place: LocalGroups(self.keys[place], item.make)
            for place, item in accumulated.items()
            if item.is_shared
        }


def looking_code(plan: Plan, env: Environment, *, is_asked: bool = False) -> Program:
    """The program of a statement that only reads named windows."""
    return Program(plan, env, Use(pulls=True, is_asked=is_asked))


def subqueries_of(parts: Sequence[SubqueryPlan], around: SharedCode) -> list[SubqueryCode]:
    """The code of the subqueries of a statement."""
    return codes_of(parts, around, partial(looking_code, env=around.env))


def departure_of(plan: Plan, catalog: Catalog) -> Removal:
    """The order in which events leave the window of a statement."""
    if plan.joins or not plan.sources or plan.sources[0].relation is not None:
        return Removal.ANY
    context = Context(now_ms=0, zone=plan.options.zone_info(), rule_id="", start_ms=0)
    builder = WindowBuilder(plan.sources[0], plan.options, catalog, context, Warnings(), "dict")
    return builder.build(0, Nobody(), lambda: 0).departure
