"""The code of subqueries, made once for all instances of the statement around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sql.algebra.join.store import Carried, Pulled, Rows, Seen
from sql.algebra.table.search import Finder
from sql.algebra.window_builder import WindowBuilder
from sql.codegen.functions import FunctionSet
from sql.compiler.answer import AnswerText, answers_by_row
from sql.compiler.shared_code import Answer, Environment, SharedCode, no_answer
from sql.compiler.statement.deferral import is_fleeting
from sql.compiler.statement.driving import Use
from sql.compiler.statement.statement_frame import StatementFrame
from sql.compiler.statement.statement_text import StatementText
from sql.plan.bound import Read, TableRead
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan, SubqueryPlan


class CorrelatedCode:
    """A subquery whose condition or values read the event around it."""

    def __init__(self, part: SubqueryPlan, around: SharedCode, looking: Looking) -> None:
        plan = part.plan
        self.part = part
        self.shape = shape = around.env.shape
        self.warnings = around.warnings
        self.inner_answers: list[Answer] = [no_answer] * len(plan.subqueries)
        """The values of the subqueries in it, of the instance at work."""
        self.inner = codes_of(plan.subqueries, around, looking)
        self.functions = FunctionSet(
            *around.settings, shape=shape, joined=True, text=plan.text, subqueries=self.inner_answers
        )
        source = plan.sources[0]
        self.builder = WindowBuilder(source, plan.options, *around.settings, shape, self.inner_answers)
        self.passes = None if source.filter is None else self.builder.functions.true(source.filter)
        rows = store_of(source, self, around.env)
        self.answer: AnswerText | None = None
        """The value itself, where every row that is found is a row of the subquery."""
        if source.relation != "answer" and answers_by_row(part):
            self.answer = AnswerText(part, rows, self.functions, shape)
            return
        width = range(1, 1 + len(part.outer))
        self.finder = Finder(plan.where, 0, width, rows, self.functions, shape=shape, nullable=width)
        use = Use(is_correlated=True)
        self.text = StatementText(StatementFrame(plan, around, self.inner_answers, use, None))


def store_of(source: SourcePlan, code: CorrelatedCode, env: Environment) -> Rows | Pulled | Carried:
    """The rows of a correlated subquery: kept here, in a relation, or with the event around it."""
    if source.relation is None:
        return Rows(code.shape)
    if source.relation == "answer":
        return Carried(source.stream, code.passes)
    return Pulled(as_seen(source, env), code.passes)


class AloneCode:
    """A subquery that reads nothing of the event around it: a query of its own."""

    def __init__(self, part: SubqueryPlan, looking: Looking) -> None:
        self.part = part
        plan = part.plan
        self.shows_each = _shows_each(plan)
        is_asked = part.kind == "scalar" and self.shows_each and not _reads_columns(plan)
        self.program = looking(plan, is_asked=is_asked)
        self.reads_relations = any(source.relation for source in plan.sources)
        self.finder = finder_of(self.program) if self.reads_relations else None


SubqueryCode = CorrelatedCode | AloneCode

Looking = Callable[..., Any]
"""Makes the program of a statement that only searches named windows; `is_asked`: only its value is read."""


def codes_of(parts: Sequence[SubqueryPlan], around: SharedCode, looking: Looking) -> list[SubqueryCode]:
    """The code of each subquery of a statement."""
    return [
        CorrelatedCode(part, around, looking)
        if part.correlated or _keeps_rows(part)
        else AloneCode(part, looking)
        for part in parts
    ]


def finder_of(program: Any) -> Finder | None:
    """The function that finds the rows of a select over the present rows of one relation; None for a join."""
    plan = program.plan
    if len(plan.sources) > 1:
        return None
    functions = FunctionSet(*program.settings, joined=True, subqueries=program.answers)
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


def _keeps_rows(part: SubqueryPlan) -> bool:
    """True if a subquery of its own answers with the rows its windows have posted, and not with
    aggregates."""
    return part.plan.row_kind != "aggregate" and not any(source.relation for source in part.plan.sources)
