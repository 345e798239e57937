"""`into table`: the groups of a statement are rows of a table, whose aggregates several statements may feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sql.algebra.table.table import Table, TableRow
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet
from sql.plan.logical import Plan
from sql.runtime.changes import Changes
from sql.runtime.emission import Update
from sql.runtime.groups import Group
from sql.windows.event import Delta, Event
from sql.windows.operator import FindEvent, Operator


class TableChanges(Changes):
    """Folds deltas into the rows of a table. A row stays when its events have left."""

    def __init__(self, plan: Plan, functions: FunctionSet, window: Operator, windows: Sequence[Operator],
                 on_error: Callable[[Event, BaseException], None], catalog: Catalog) -> None:  # fmt: skip
        super().__init__(plan, functions, window, windows, on_error)
        assert plan.into_table is not None
        self.into = plan.into_table
        self.table: Table = catalog.relations[self.into.table]
        self.values = [functions.value(key) for key in plan.group_by]
        self.leaves = bool(plan.joins) or plan.sources[0].keeps
        self.counted: dict[Event, list[TableRow]] = {}
        """Into which rows each event was counted: what is counted in a row that is deleted leaves no other."""

    def _rows_of(self, event: Event) -> list[TableRow]:
        values = [value(event) for value in self.values]
        return [
            self.table.row_for([item if i in chosen else None for i, item in enumerate(values)], event.time_ms)
            for chosen in self.into.sets
        ]

    def _empty(self) -> Group:
        """The one group of a statement without keys, before its row is there."""
        return Group((), self.aggregates.fresh(), Event(None, 0, -1))

    def _group_in(self, row: TableRow, event: Event) -> Group:
        return Group(row.key, [row.accumulators[column] for column in self.into.columns], event)

    def _group(self, event: Event) -> Group:
        return self._group_in(self._rows_of(event)[0], event)

    def _at(self, key: Any, event: Event) -> Group:
        row = self.table.rows.get(key)
        return super()._at(key, event) if row is None else self._group_in(row, event)

    def _fold(self, inserted: Iterable[Event], removed: Iterable[Event]) -> tuple[list[Event], list[Event]]:
        folded, taken = super()._fold(inserted, ())
        for event in removed:
            if event in self.refused:
                self.refused.discard(event)
                continue
            values = self.aggregates.values_of(event)
            for row in self.counted.pop(event, ()):
                self._group_in(row, event).remove(values, event)
                self._touch(row)
            taken.append(event)
        self._find_whole()
        return folded, taken

    def _find_whole(self) -> None:
        if not self.plan.group_by:
            row = self.table.rows.get(())
            self.whole = self._empty() if row is None else self._group_in(row, self.whole.first)

    def update(self, delta: Delta) -> Update | None:
        self._find_whole()  # another statement may have fed or deleted the row
        return super().update(delta)

    def _add(self, values: list[Any], event: Event) -> None:
        rows = self._rows_of(event)
        for row in rows:
            self._group_in(row, event).add(values, event)
            self._touch(row)
        if self.leaves:
            self.counted[event] = rows

    def _touch(self, row: TableRow) -> None:
        row.stale = True
        self.table.version += 1

    def _drop_if_empty(self, event: Event) -> None:
        return None

    def held(self) -> Iterable[Event]:
        yield from super().held()
        yield from self.counted

    def snapshot(self) -> Any:
        counted = [[event.seq, [row.seq for row in rows]] for event, rows in self.counted.items()]
        refused = [event.seq for event in self.refused]
        representatives = [event.seq for event in self.representatives.values()]
        return {"counted": counted, "refused": refused, "representatives": representatives,
                "prior": [event.seq for event in self.prior.recent]}  # fmt: skip

    def restore(self, state: Any, find: FindEvent) -> None:
        rows = {row.seq: row for row in self.table.rows.values()}
        for seq, numbers in state["counted"]:
            self.counted[find(seq)] = [rows[number] for number in numbers if number in rows]
        self.refused = {find(seq) for seq in state["refused"]}
        self.representatives = {self.key(event): event for event in map(find, state["representatives"])}
        self.prior.recent.extend(find(seq) for seq in state["prior"])
