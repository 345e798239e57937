"""Windows that overlap, with aggregates that look at more than numbers: what panes hold of them is merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.aggregates.base import Removal
from sql.aggregates.extremes import Extreme
from sql.codegen.fast.feeding import FedTable, FedWindowQuery, is_numeric
from sql.codegen.fast.panes import CountQuery, HoppingQuery, PaneQuery, PaneTable
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.totals import AtLook, Queue, Running, Stacks, Total
from sql.plan.bound import AggregateCall
from sql.runtime.groups import maker_of


def why_not_merged(call: AggregateCall) -> str | None:
    """Why a call that is fed cannot be put together from the panes of a window."""
    name = call.definition.name
    if not call.definition.mergeable:
        return f"aggregate {name} cannot be put together from parts of a window"
    if call.distinct and name != "count":
        return f"aggregate {name} of DISTINCT values may depend on the first of them, which has left"
    if isinstance(call.definition.make(Removal.NEVER, *call.constants), Extreme):
        return f"aggregate {name} may refuse a value because of those before"
    if call.definition.cost.startswith("O(√n)"):
        return f"aggregate {name} would put its values in order again for each window"
    return None


class FedPaneTable(PaneTable, FedTable):
    """The fed groups of the open pane."""

    def __init__(self, query: PaneQuery) -> None:
        super().__init__(query)
        self.fed = [call for call in query.plan.aggregates if not is_numeric(call)]

    def queues(self) -> list[Queue]:
        return super().queues() + [_queue_of(call) for call in self.fed]

    def check_one(self, group: Any, place: int, value: Any) -> None:
        # What is fed refuses by the value alone; numbers may be refused because of text in an earlier pane.
        if place < self.numeric:
            self.check_in_all(group, place, value)
        else:
            super().check_one(group, place, value)


def _queue_of(call: AggregateCall) -> Queue:
    make = maker_of(call, Removal.NEVER)
    if call.distinct or call.definition.cost != "O(1)":
        return AtLook(make)
    return Running(make) if call.definition.invertible else Stacks(make)


class FedPanesQuery(FedWindowQuery, PaneQuery):
    """What hopping and count windows have in common."""

    table: FedPaneTable

    def new_table(self) -> FedPaneTable:
        return FedPaneTable(self)

    def cut(self, end: int, first_ms: int = 0, size: int = 0) -> None:
        super().cut(end, first_ms, size or self.table.size)

    def look(self, total: Total) -> tuple[Any, Sequence[Any]]:
        row, values = total.look()
        return row, [values[place] for place in self.table.order]

    def retained(self) -> int:
        return super().retained() + sum(pane.size + pane.dropped for pane in self.panes)


class FedHoppingQuery(FedPanesQuery, HoppingQuery):
    """HOPPINGWINDOW."""


class FedCountQuery(FedPanesQuery, CountQuery):
    """COUNTWINDOW(n, k)."""

    def retained(self) -> int:
        return min(self.in_panes + self.count, self.window.size)


OVERLAPPING: dict[type[FastQuery], type[FastQuery]] = {HoppingQuery: FedHoppingQuery, CountQuery: FedCountQuery}
"""The query whose groups are fed, by the one of the same window whose groups hold numbers."""
