"""A select over the present rows of relations: of questions, and of subqueries that read nothing else."""

from __future__ import annotations

from typing import Any

from sql.algebra.event import Event
from sql.algebra.join.joined import Joined
from sql.algebra.output.row_order import row_limit
from sql.algebra.table.search import Finder
from sql.codegen.functions import DATA_ERRORS
from sql.engine.statement.evaluation import Evaluation
from sql.engine.statement.statement_core import StatementCore
from sql.plan.logical import Plan


class Choice:
    """Every evaluation starts anew: nothing accumulates."""

    def __init__(self, plan: Plan, query: StatementCore, finder: Finder | None) -> None:
        """`query` holds the relations and the compiled text. `finder` finds the rows of one relation; without
        it they are joined."""
        self.functions = query.program.functions
        limit = row_limit(query.plan, self.functions)
        self.evaluation = Evaluation(plan, query.program.text, limit, query.fail)
        self.product = query.joined
        self.find = None if finder is None else finder.over(query.pulled[0])

    def events(self) -> list[Event]:
        """The joined rows, before WHERE."""
        if self.find is None:
            assert isinstance(self.product, Joined)
            return self.product.once()
        try:
            return self.find((None,), 0)
        except DATA_ERRORS as error:
            raise self.functions.failure(error) from error

    def rows(self) -> list[dict[str, Any]]:
        """The rows of one evaluation."""
        return self.evaluation.rows(self.events())
