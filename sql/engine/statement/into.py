"""`into table`: the groups of a statement are rows of a table, whose aggregates
several statements may feed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.accumulators import SKIP, argument_of, check_at
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent
from sql.algebra.table.row import TableRow
from sql.algebra.table.table import Table, key_for
from sql.codegen.functions import DATA_ERRORS
from sql.emission import Update
from sql.engine.statement.groups import pack_values, unpack_values
from sql.engine.statement.statement_core import StatementCore
from sql.types import key_of

Counted = tuple[list[tuple[TableRow, Event]], list[Any], Sequence[Any]]
"""The rows an event was counted in, each with the event as the table numbers it; what it contributed to each
aggregate, and the keys of its groups."""

CountedState = list[tuple[int, list[tuple[int, int]], list[Any]]]
"""By event the rows that it is counted in, with its numbers there, and what it contributed."""

NOWHERE: Counted = ([], [], ())
"""What is remembered of an event that no row counts."""


class TableFold:
    """Folds changes into the rows of a table. A row stays when its events have left."""

    def __init__(self, statement: StatementCore) -> None:
        plan, functions = statement.plan, statement.program.functions
        assert plan.into_table is not None
        self.statement = statement
        self.plan = plan
        self.into = plan.into_table
        self.table: Table = statement.catalog.relations[self.into.table]
        self.where = None if plan.where is None else functions.true(plan.where)
        self.key = functions.key(plan.group_by)
        self.keys = [functions.value(key) for key in plan.group_by]
        self.arguments = [argument_of(call, functions) for call in plan.aggregates]
        self.places = [self.table.places[name] for name in self.into.columns]
        """For each aggregate the place of its accumulator in a row."""
        self.sets = plan.grouping_sets
        self.source = next((call.shows for call in plan.aggregates if isinstance(call.shows, int)), None)
        """The source of a join whose events the rows hold; None where it reads one."""
        self.leaves = bool(plan.joins) or plan.sources[0].keeps
        self.counted: dict[Event, Counted] = {}
        """The row that counts each event: an event counted in a deleted row leaves no other row."""

    # --- groups ---------------------------------------------------------------------------------------------

    def group_at(self, key: Any, event: Event) -> Any:
        """The row of a key as a group of the compiled text; an empty group where the table has none."""
        if self.sets:
            row = self.table.rows.by_key.get(key_for(self._row_keys(event)[key[0]]))
        else:
            row = self.table.rows.by_key.get(key)
        if row is None:
            return self.statement.groups.empty(key, event)
        return self.statement.groups.around(key, event, [row.accumulators[place] for place in self.places])

    def _rows_of(self, key: object, event: Event) -> list[TableRow]:
        """The rows an event is counted in: that of its key, or one for each grouping set."""
        row = None if self.sets else self.table.rows.by_key.get(key)
        if row is not None:
            return [row]
        return [self.table.row_for(values, event.time_ms) for values in self._row_keys(event)]

    def _row_keys(self, event: Event) -> list[list[Any]]:
        """The keys of these rows, where those that the set lacks are NULL."""
        values = [value(event) for value in self.keys]
        sets = self.into.sets
        return [[item if i in chosen else None for i, item in enumerate(values)] for chosen in sets]

    # --- changes --------------------------------------------------------------------------------------------

    def change(self, delta: Delta, new: list[Any], old: list[Any]) -> Update | None:
        """One update of the windows or the join: rows of the table change, and the
        statement's rows are made; the update where something has changed."""
        statement, show = self.statement, self.statement.program.text.show
        came = [(event, keys) for event in delta.inserted if (keys := self._keys_of(event))]
        gone = self._keyed_counted(delta.removed, dict(came))
        if not came and not gone and (delta.inserted or delta.removed):
            return None
        changed: dict[Any, Event] = {}
        for event, keys in (*came, *gone):
            for key in keys:
                changed.setdefault(key, event)
        by_key = show.kind in ("group", "aggregate")
        if by_key and show.has_old:
            self._show(changed.items(), old, is_new=False)
        folded = [(event, keys) for event, keys in came if self._folded(event, keys[0])]
        for event, _ in gone:
            self._leave(event)
        if by_key:
            if len(folded) < len(came):
                touched = {key for _, keys in (*folded, *gone) for key in keys}
                changed = {key: event for key, event in changed.items() if key in touched}
            self._show(changed.items(), new, is_new=True)
        else:
            self._show([(key, event) for event, (key,) in folded], new, is_new=True)
            if show.has_old:
                self._show([(key, event) for event, (key,) in gone], old, is_new=False)
        if statement.groups.shows_all:
            statement.groups.representatives.update(
                changed if by_key else {key: event for event, (key,) in folded}
            )
        update = Update(new, old, len(folded), len(gone), tuple(changed))
        if not show.counts_groups:
            return update
        came, left = ([key for _, keys in events for key in keys] for events in (folded, gone))
        return update._replace(came=came, left=left)

    def _keyed_counted(
        self, events: Iterable[Event], came: Mapping[Event, Sequence[Any]]
    ) -> list[tuple[Event, Sequence[Any]]]:
        """The events that are counted, with their keys; some may only come with this update."""
        keyed = (
            (event, self.counted[event][2] if event in self.counted else came.get(event, ()))
            for event in events
        )
        return [(event, keys) for event, keys in keyed if keys]

    def _keys_of(self, event: Event) -> Sequence[Any]:
        """The keys of an event's groups, with grouping sets each behind the place of its set; none where
        WHERE does not hold, or where it cannot be evaluated."""
        try:
            if self.where is not None:
                before = self.statement.earlier.beside(event, True) if self.plan.prevs else []
                if not self.where(event, before, True):
                    return ()
            return self._keys(event)
        except DATA_ERRORS as error:
            self.statement.fail(event.row, error)
            return ()

    def _keys(self, event: Event) -> Sequence[Any]:
        if not self.sets:
            return (self.key(event),)
        parts = [key_of(value(event)) for value in self.keys]
        return [(place, *(parts[i] for i in chosen)) for place, chosen in enumerate(self.sets)]

    def _folded(self, event: Event, key: object) -> bool:
        """True if the event could be counted."""
        try:
            values = [argument(event) for argument in self.arguments]
            rows = self._rows_of(key, event)
            for row in rows:
                for place, value, call in zip(self.places, values, self.plan.aggregates, strict=True):
                    if value is not SKIP:
                        check_at(row.accumulators[place], value, call)
        except DATA_ERRORS as error:
            self.statement.fail(event.row, error)
            return False
        counted = [(row, self.table.rows.numbered(self._held(event))) for row in rows]
        for row, numbered in counted:
            for place, value in zip(self.places, values, strict=True):
                if value is not SKIP:
                    row.accumulators[place].add(value, numbered)
            row.stale = True
            row.stamp = next(self.table.rows.stamps)
            self.table.bounded.wrote(row, event.time_ms)
        self.table.version += 1
        if self.leaves:
            self.counted[event] = counted, values, self._keys(event)
        return True

    def _held(self, event: Event, seq: int = 0) -> Event:
        """The event as rows of the table hold it, under this number."""
        row = event.row if self.source is None else event.row[self.source]
        return Event(row, event.time_ms, seq)

    def _leave(self, event: Event) -> None:
        """Take an event out of its rows, unless it could not be counted."""
        counted, values, _ = self.counted.pop(event, NOWHERE)
        for row, numbered in counted:
            for place, value in zip(self.places, values, strict=True):
                if value is not SKIP:
                    row.accumulators[place].remove(value, numbered)
            row.stale = True
            row.stamp = next(self.table.rows.stamps)
        self.table.version += 1

    def _show(self, keyed: Iterable[tuple[Any, Event]], rows: list[Any], *, is_new: bool) -> None:
        show = self.statement.code["show"]
        for key, event in keyed:
            show(self.statement, event, self.group_at(key, event), rows, is_new)

    # --- state ----------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        return self.counted

    def snapshot(self) -> CountedState:
        """Which rows each event is counted in, and what it contributed."""
        return [
            (
                event.seq,
                [(row.seq, own.seq) for row, own in counted],
                [pack_values(value) for value in values],
            )
            for event, (counted, values, _) in self.counted.items()
        ]

    def restore(self, state: CountedState, find: FindEvent) -> None:
        """Put a snapshot back; the table has its rows already."""
        rows = {row.seq: row for row in self.table.rows.by_key.values()}
        for seq, places, values in state:
            event = find(seq)
            pairs = [
                (place, seq) if isinstance(place, int) else place for place in places
            ]  # an earlier version
            kept = [(rows[row], self._held(event, own)) for row, own in pairs if row in rows]
            self.counted[event] = kept, [unpack_values(value) for value in values], self._keys(event)
