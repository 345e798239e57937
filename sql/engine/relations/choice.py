"""A select over the present rows of relations: of on … select, of questions, of subqueries that read nothing else."""

from __future__ import annotations

from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.table.search import finder
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.engine.running.evaluation import Evaluation
from sql.plan.logical import Plan


class Choice:
    """A select over the present rows of relations, for an event or for none:
    on-select, and queries on demand.

    Every evaluation starts anew: nothing accumulates.
    """

    def __init__(self, plan: Plan, catalog: Catalog, query: Any, *, trigger: bool) -> None:
        """`query` compiles the expressions; `trigger`: source 0 is the event, and
        gives no rows of its own."""
        self.plan = plan
        self.trigger = trigger
        self.joined = len(plan.sources) > 1
        self.evaluation = Evaluation(plan, query.program.text, query.output.row_limit, query.fail)
        self.stores = [
            query.windows[i].rows if source.relation else None for i, source in enumerate(plan.sources)
        ]
        self.product = query.sources.joined
        if not self.joined:
            functions = FunctionSet(
                catalog, query.context, query.program.warnings, joined=True, subqueries=query.program.answers
            )
            self.functions = functions
            self.find = finder(plan.where, 0, (), self.stores[0], functions)

    def events(self, event: Event | None) -> list[Event]:
        """The joined rows, before WHERE."""
        if not self.joined:
            try:
                return self.find((None,), 0)
            except DATA_ERRORS as error:
                raise self.functions.failure(error) from error
        if event is not None:
            delta = self.product.change({0: Delta((event,))})
            return [] if delta is None else list(delta.inserted)
        return self.product.once()  # type: ignore[no-any-return]

    def rows(self, event: Event | None) -> list[dict[str, Any]]:
        """The rows of one evaluation."""
        return self.evaluation.rows(self.events(event))
