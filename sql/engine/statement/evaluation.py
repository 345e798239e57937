"""Rows over events that are all there are: questions on demand, on … select, and subqueries.

Each evaluation starts anew: nothing accumulates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.event import NOTHING, Event
from sql.algebra.join.joined import Joined
from sql.algebra.output.row_order import in_order, row_limit
from sql.algebra.table.search import Finder
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.hits import HitCounters
from sql.compiler.statement.statement_text import StatementText
from sql.engine.statement.earlier_events import EarlierEvents
from sql.engine.statement.groups import Groups
from sql.engine.statement.statement_core import StatementCore
from sql.errors import Fail


class Evaluation:
    """Evaluates the compiled text of a plan, which is not driven by events."""

    def __init__(self, text: StatementText, functions: FunctionSet, fail: Fail) -> None:
        self.plan = text.plan
        self.code = text.code
        self.reads_kept = bool(text.frame.kept)
        self.limit = row_limit(self.plan, functions)
        self.fail = fail
        self.hits = HitCounters(self.plan.hits)
        self.groups = Groups(text)
        self.earlier = EarlierEvents(text)

    def read(self, found: Sequence[Event]) -> Sequence[Any]:
        """The rows that a search has found, as the text reads them."""
        return found if self.reads_kept else [event.row for event in found]

    def rows(self, events: Sequence[Event], first: Event | None = None) -> list[dict[str, Any]]:
        """The rows; aggregates over no event give one row, whose columns are read from `first`."""
        self.groups.reset()
        new: list[Any] = []
        counted = self.code["change"](self, events, (), 0, new, [])
        if not counted and self.plan.row_kind == "aggregate":
            self.code["show"](self, first or NOTHING, self.groups.whole, new, True)
        return in_order(new, self.plan, self.limit)


class Choice:
    """A select over the present rows of relations: of questions, and of subqueries that read nothing else."""

    def __init__(self, query: StatementCore, finder: Finder | None) -> None:
        """`query` holds the relations and the compiled text. `finder` finds the rows of one relation; without
        it they are joined."""
        self.functions = query.program.functions
        self.evaluation = Evaluation(query.program.text, self.functions, query.fail)
        self.product = query.joined
        self.find = None if finder is None else finder.over(query.pulled[0])

    def events(self) -> list[Event]:
        """The rows of the only relation for which WHERE holds, or joined rows."""
        if self.find is None:
            assert isinstance(self.product, Joined)
            return self.product.once()
        try:
            found = self.find((None,), 0)
        except DATA_ERRORS as error:
            raise self.functions.failure(error) from error
        rows = self.evaluation.read(found)
        return [Event(row, event.time_ms, event.seq) for event, row in zip(found, rows, strict=True)]

    def rows(self) -> list[dict[str, Any]]:
        """The rows of one evaluation."""
        return self.evaluation.rows(self.events())
