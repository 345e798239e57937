"""The program of a plan: everything that is made once, whatever the number of running instances.

Parameters, filters and the compiled text belong to the plan; windows, groups and counters belong to an
instance (`sql.engine.statement.running_statement`), which a program makes in microseconds. A program has the
code of its subqueries, and a subquery that reads nothing of the event around it has a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sql.algebra.derived.statistics import NoOwner
from sql.algebra.join.join_sources import join_code
from sql.algebra.join.store import Carried, Pulled, Rows, Seen
from sql.algebra.operator import Operator
from sql.algebra.pattern import PatternBuilder
from sql.algebra.table.search import Finder
from sql.algebra.window_builder import WindowBuilder
from sql.codegen.functions import PatternReader
from sql.codegen.hits import HitCounters
from sql.compiler.answer import AnswerText, answers_by_row, indexed_column
from sql.compiler.members_text import MembersText
from sql.compiler.recognize_text import RecognizeCode
from sql.compiler.shared_code import Answer, Environment, SharedCode, no_answer
from sql.compiler.statement.by_value import keeps_values
from sql.compiler.statement.deferral import is_fleeting
from sql.compiler.statement.driving import Use, drives
from sql.compiler.statement.statement_frame import StatementFrame
from sql.compiler.statement.statement_text import StatementText
from sql.plan.bound import Bound, Read, TableRead
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan, SubqueryPlan
from sql.plan.walk import read_at_start


class Program(SharedCode):
    """A compiled statement or stream query."""

    def __init__(self, plan: Plan, env: Environment, use: Use = "rule") -> None:
        super().__init__(env, plan.options, len(plan.subqueries))
        self.plan = plan
        self.shape = env.shape
        self.use = use
        self.subqueries = subqueries_of(plan.subqueries, self)
        aggregates, prevs = len(plan.aggregates), len(plan.prevs)
        self.offsets = {"aggregate": 0, "prev": aggregates, "row_number": aggregates + prevs}
        hits = HitCounters(plan.hits)
        self.functions = self.function_set(
            text=plan.text, joined=plan.reads_tuples, offsets=self.offsets, hits=hits
        )
        self.builders = [self._builder(source) for source in plan.sources]
        self.read_at_start = read_at_start(plan)
        """The variables with whose values its windows begin."""
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
        self.join = join_code(plan, self.functions) if plan.joins else None
        self.item_keys = self._item_keys()
        frame = StatementFrame(plan, self, self.answers, use, self._window(env.now_ms))
        self.text = StatementText(frame, self.functions)

    def _window(self, now_ms: int) -> Operator | None:
        """The window of the only stream, as instances have it."""
        if self.plan.joins or self.plan.sources[0].relation is not None:
            return None
        return self.builders[0].build(now_ms, NoOwner(), lambda: now_ms)

    def _builder(self, source: SourcePlan) -> WindowBuilder:
        functions = self.function_set(joined=source.rows_are_tuples)
        # Errors of its filter and its windows are reported with their place in the text.
        functions.spans, functions.lines = self.functions.spans, self.functions.lines
        alone = drives(self.plan) and self.use != "observed"
        kept = alone and keeps_values(self.plan)
        return WindowBuilder(
            source, self.options, functions, alone=alone, keeps_values=kept, shown_by=self._shown_by()
        )

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
            [builder.functions.key(keys) for keys in (lot.partition_by, lot.unique) if keys]
            if lot is not None
            else []
            for lot, builder in zip(lots, self.builders, strict=True)
        ]


def looking_code(plan: Plan, env: Environment, use: Use = "looking") -> Program:
    """The program of a statement that only reads named windows. The rows of a relation alone are searched."""
    is_searched = len(plan.sources) == 1 and plan.sources[0].relation is not None
    return Program(plan, env, "evaluated" if is_searched else use)


class PatternCode:
    """The functions of a pattern's filters and parameters, which read the instance at work."""

    def __init__(self, source: SourcePlan, around: SharedCode) -> None:
        assert source.pattern is not None
        self.source = source
        self.plan = source.pattern
        self.streams = frozenset(self.plan.streams)
        self.functions = around.function_set(text=self.plan.text, kind=PatternReader, subqueries=())
        builder = PatternBuilder(self.plan, self.functions, around.context.zone, around.options)
        self.pattern = builder.fastest()
        """Makes a pattern, not yet started, given what takes its errors."""


# --- subqueries ---------------------------------------------------------------------------------------------


class CorrelatedCode:
    """A subquery whose condition or values read the event around it."""

    def __init__(self, part: SubqueryPlan, around: SharedCode) -> None:
        plan = part.plan
        self.part = part
        self.shape = around.env.shape
        self.warnings = around.warnings
        self.answers: list[Answer] = [no_answer] * len(plan.subqueries)
        """The values of the subqueries in it, of the instance at work."""
        self.subqueries = subqueries_of(plan.subqueries, around)
        self.functions = around.function_set(text=plan.text, joined=True, subqueries=self.answers)
        source = plan.sources[0]
        of_source = around.function_set(
            text=plan.text, joined=source.rows_are_tuples, subqueries=self.answers
        )
        self.builder = WindowBuilder(source, plan.options, of_source)
        self.passes = None if source.filter is None else self.builder.functions.true(source.filter)
        rows = store_of(source, self, around.env)
        self.answer: AnswerText | MembersText | None = None
        """The value itself, where every row that is found is a row of the subquery."""
        if source.relation != "answer" and answers_by_row(part):
            column = indexed_column(part)
            self.answer = (
                MembersText(part, column, rows, self.functions)
                if column is not None
                else AnswerText(part, rows, self.functions)
            )
            return
        width = range(1, 1 + len(part.outer))
        self.finder = Finder(plan.where, 0, width, rows, self.functions, nullable=width)
        frame = StatementFrame(plan, around, self.answers, "correlated", None)
        self.text = StatementText(frame, self.functions)


def store_of(source: SourcePlan, code: CorrelatedCode, env: Environment) -> Rows | Pulled | Carried:
    """The rows of a correlated subquery: kept here, in a relation, or with the event around it."""
    if source.relation is None:
        return Rows(code.shape)
    if source.relation == "answer":
        return Carried(source.stream, code.passes)
    return Pulled(as_seen(source, env), code.passes)


class UncorrelatedCode:
    """A subquery that reads nothing of the event around it: a query of its own."""

    def __init__(self, part: SubqueryPlan, env: Environment) -> None:
        self.part = part
        plan = part.plan
        self.shows_each = _shows_each(plan)
        is_value = part.kind == "scalar" and self.shows_each and not _reads_columns(plan)
        self.program = looking_code(plan, env, "value" if is_value else "looking")
        self.reads_relations = any(source.relation for source in plan.sources)
        self.finder = finder_of(self.program) if self.reads_relations else None


SubqueryCode = CorrelatedCode | UncorrelatedCode


def subqueries_of(parts: Sequence[SubqueryPlan], around: SharedCode) -> list[SubqueryCode]:
    """The code of each subquery of a statement."""
    return [
        CorrelatedCode(part, around) if _is_searched(part) else UncorrelatedCode(part, around.env)
        for part in parts
    ]


def finder_of(program: Program) -> Finder | None:
    """The function that finds the rows of a select over the present rows of one relation; None for a join."""
    plan = program.plan
    if len(plan.sources) > 1:
        return None
    functions = program.function_set(joined=True)
    source = plan.sources[0]
    store = Pulled(program.catalog.relations[source.stream], program.filters[0])
    return Finder(plan.where, 0, (), store, functions)


def as_seen(source: SourcePlan, env: Environment) -> Any:
    """A relation as a statement sees it: a named window without the changes that it has not taken yet."""
    relation = env.catalog.relations[source.stream]
    return (
        relation
        if source.relation != "window"
        else Seen(relation, partial(env.catalog.loop.unseen, env.name))
    )


def _shows_each(plan: Plan) -> bool:
    """True if each change of the content gives one row, which depends on nothing but the content."""
    is_whole = (
        plan.row_kind == "aggregate" and plan.having is None and plan.output is None and plan.limit is None
    )
    return is_whole and plan.selector == "istream" and not any(is_fleeting(item.value) for item in plan.items)


def _reads_columns(plan: Plan) -> bool:
    """True if the row of a statement shows more than aggregates."""
    return any(isinstance(node, Read | TableRead) for item in plan.items for node in item.value.walk())


def _is_searched(part: SubqueryPlan) -> bool:
    """True if rows are searched for each event: it is correlated, or IN looks values up, or its rows are
    those that its windows have posted."""
    if part.correlated or indexed_column(part) is not None:
        return True
    return part.plan.row_kind != "aggregate" and not any(source.relation for source in part.plan.sources)
