"""Queries that look at their window: eKuiper rules. FILTER, window, WHERE, groups, HAVING, ORDER BY, LIMIT per look."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from sql.aggregates.base import Removal
from sql.binder.kuiper import AGGREGATE_HITS, conjuncts, sources_read
from sql.calendar.grid import Grid
from sql.codegen.functions import DATA_ERRORS, EventFunction
from sql.errors import DataError
from sql.plan.bound import Op
from sql.plan.logical import GroupWindowPlan
from sql.runtime.emission import Emission, Out
from sql.runtime.groups import AggregateSet, Group
from sql.runtime.look_join import LookJoin
from sql.runtime.looks import Candidate, Fresh, RowMaker
from sql.runtime.query import Query, in_order, row_limit
from sql.runtime.state import EventStore
from sql.types import Type
from sql.windows import sample
from sql.windows.event import Event
from sql.windows.sample import View


class Rows:
    """The view of one window instance: its rows after WHERE, grouped, with incremental aggregates.

    Groups come out in the order of their first row that is still in the window; plain columns are read from that row.
    """

    def __init__(self, query: SampleQuery, removal: Removal) -> None:
        self.query = query
        self.keeps_order = removal is not Removal.NEVER
        self.groups: dict[Any, Group] = {}
        self.members: dict[Any, deque[Event]] = {}
        self.events: deque[Event] = deque()

    def _passes(self, event: Event) -> bool:
        where = self.query.where
        return where is None or bool(where(event))

    def add(self, event: Event) -> bool:
        try:
            if not self._passes(event):
                return True
            if self.query.grouped:
                self._join_group(event)
            else:
                self.events.append(event)
        except DATA_ERRORS as error:
            self.query.on_error(event, error)
            return False
        return True

    def _join_group(self, event: Event) -> None:
        query = self.query
        key = query.key(event)
        values = query.aggregates.values_of(event)
        group = self.groups.get(key)
        if group is None:
            limit = query.plan.options.max_groups
            if len(self.groups) >= limit:
                raise DataError(f"more than {limit} groups; raise maxGroups or group coarser")
            group = Group(key, query.aggregates.fresh(), event)
        group.add(values, event)
        self.groups[key] = group
        if self.keeps_order:
            self.members.setdefault(key, deque()).append(event)

    def remove(self, event: Event) -> None:
        if not self._passes(event):
            return
        if not self.query.grouped:
            self.events.popleft()
            return
        key = self.query.key(event)
        group = self.groups[key]
        if group.count == 1:
            del self.groups[key], self.members[key]
            return
        group.remove(self.query.aggregates.values_of(event), event)
        members = self.members[key]
        members.popleft()
        group.first = members[0]

    def clear(self) -> None:
        self.groups = {}
        self.members = {}
        self.events = deque()

    def skip(self, windows: int) -> None:
        self.query.counts["windows_empty_skipped"] += windows

    def sample(self, start_ms: int, end_ms: int, trigger_ms: int) -> None:
        bounds = (start_ms, end_ms, trigger_ms)
        self.query.context.now_ms = trigger_ms
        candidates: Iterable[Candidate]
        if not self.query.grouped:
            candidates = [(event, []) for event in self.events]
        else:
            groups = list(self.groups.values())
            if self.keeps_order:
                groups.sort(key=lambda group: group.first.seq)
            if not groups and self.query.emit_empty and not self.query.plan.group_by:
                groups = [Group((), self.query.aggregates.fresh(), self.query.empty_event())]
            candidates = [(group.first, group.results(group.first)) for group in groups]
        self.query.emit(self.query.maker.rows(candidates, bounds), trigger_ms)


class SampleQuery(Query):
    """A rule with a window in GROUP BY. Its windows go through due instants by themselves: their bounds are nominal."""

    steps_itself = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan, functions = self.plan, self.functions
        assert plan.window is not None
        window = plan.window
        self.filters = self._filters(window)
        self.where = None if plan.where is None else functions.true(plan.where)
        self.key = functions.key(plan.group_by)
        self.maker = RowMaker(self)
        self.join = LookJoin(plan, functions, self.on_error) if plan.joins else None
        self.grouped = bool(plan.aggregates or plan.group_by or any(hit.name in AGGREGATE_HITS for hit in plan.hits))
        self.is_fresh = self.join is not None or "WHERE" in self.hits.by_clause
        """Whether each look is evaluated from the beginning."""
        self.emit_empty = plan.options.emit_empty
        self.row_limit = row_limit(plan, functions)
        self.pending: list[Emission] = []
        self.counts["windows_empty_skipped"] = 0
        self.removal = Removal.NEVER if window.kind in ("tumbling", "session", "state") else Removal.FIFO
        self.aggregates = AggregateSet(plan.aggregates, functions, self.removal)
        self.window = self._window(window)

    def _window(self, window: GroupWindowPlan) -> sample.SampleWindow:
        if not window.partition_by:
            return self._instance(window, self.now_ms if self.emit_empty else None)
        return sample.KeyedWindow(self.functions.key(window.partition_by), lambda: self._instance(window, None))

    def _instance(self, window: GroupWindowPlan, empty_from_ms: int | None) -> sample.SampleWindow:
        zone, functions = self.context.zone, self.functions
        rows: View = Fresh(self, self.join or iter) if self.is_fresh else Rows(self, self.removal)
        empty_max = self.plan.options.max_empty_windows
        if window.kind == "tumbling":
            return sample.Tumbling(rows, Grid(window.length_ms, zone), empty_from_ms, empty_max)
        if window.kind == "hopping":
            return sample.Hopping(rows, window.length_ms, Grid(window.hop_ms, zone), empty_from_ms, empty_max)
        if window.kind == "sliding":
            triggers = self._trigger(functions.true(window.when)) if window.when is not None else lambda event: True
            return sample.Sliding(rows, window.length_ms, window.delay_ms, triggers)
        if window.kind == "session":
            return sample.Session(rows, window.length_ms, Grid(window.length_ms, zone), window.timeout_ms)
        if window.kind == "count":
            return sample.Counting(rows, window.size, window.interval)
        assert window.begin is not None
        emit = None if window.emit is None else self._condition(functions.true(window.emit))
        return sample.Between(rows, self._condition(functions.true(window.begin)), emit)

    def _condition(self, test: Any) -> Any:
        """A condition of the window itself: one that cannot be evaluated is an error event and does not hold."""

        def holds(event: Event) -> bool:
            try:
                return bool(test(event))
            except DATA_ERRORS as error:
                self.on_error(event, error)
                return False

        return holds

    def _trigger(self, test: Any) -> Any:
        """OVER(WHEN …): what holds is a hit."""
        holds, met = self._condition(test), self.hits.by_clause.get("WHEN")
        if met is None:
            return holds

        def triggers(event: Event) -> bool:
            found = bool(holds(event))
            if found:
                met.note(event.time_ms)
            return found

        return triggers

    def _filters(self, window: GroupWindowPlan) -> list[EventFunction | None]:
        """What keeps events of each source out of the window: of a join those parts of FILTER that read it alone."""
        if not self.plan.joins:
            return [None if window.filter is None else self.functions.true(window.filter)]
        out: list[EventFunction | None] = []
        for index in range(len(self.plan.sources)):
            parts = tuple(part for part in conjuncts(window.filter) if sources_read(part) <= {index})
            whole = Op("and", parts, type=Type.BOOLEAN, span=parts[0].span) if parts else None
            out.append(None if whole is None else self.functions.true(whole))
        return out

    def empty_event(self) -> Event:
        """What the columns of an empty window's row are read from."""
        return Event({} if self.join is None else (None,) * self.join.width, self.context.now_ms, 0)

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = now_ms
        places = [index for index, source in enumerate(self.plan.sources) if source.stream == stream]
        for row in rows:
            for index in places:
                self._enter(index, row, now_ms)
        return self._take()

    def _enter(self, index: int, row: Any, now_ms: int) -> None:
        """An event of one source enters the window, a row of a table its table."""
        self.counts["events_in"] += 1
        event = self.arrive(row if self.join is None else self.join.one_sided(row, index), now_ms)
        if event is None:
            return
        if self.join is not None and index in self.join.tables:
            self.join.tables[index].append(event)
            return
        try:
            passes = self.filters[index]
            if passes is None or passes(event):
                self.budget.admit(self)
                self.window.push(event, now_ms)
        except DATA_ERRORS as error:
            self.on_error(event, error)

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = max(self.now_ms, now_ms)
        self.window.advance(now_ms)
        return self._take()

    def next_deadline(self) -> int | None:
        return self.window.next_deadline()

    def flush(self, now_ms: int) -> list[Emission]:
        self.window.flush()
        return self._take()

    def _take(self) -> list[Emission]:
        out, self.pending = self.pending, []
        return out + self.take_errors()

    def emit(self, rows: list[Out], at_ms: int) -> None:
        """Called by the windows at each look."""
        inserted = in_order(rows, self.plan, self.row_limit, self.spreads)
        if inserted:
            self.counts["rows_out"] += len(inserted)
            self.pending.append(Emission(self.name, at_ms, "rows", inserted))

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return []

    # --- state --------------------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        """The events in the window."""
        return self.window.content()

    def held(self) -> Iterable[Event]:
        yield from self.content()
        if self.join is not None:
            for table in self.join.tables.values():
                yield from table

    def _state(self) -> Any:
        if self.join is None:
            return self.window.snapshot()
        tables = {str(index): [event.seq for event in table] for index, table in self.join.tables.items()}
        return {"window": self.window.snapshot(), "tables": tables}

    def _put_back(self, state: Any, store: EventStore) -> None:
        if self.join is None:
            self.window.restore(state, store.find)
            return
        for index, seqs in state["tables"].items():
            self.join.tables[int(index)].extend(store.find(seq) for seq in seqs)
        self.window.restore(state["window"], store.find)
