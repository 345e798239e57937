"""From what a window shows to output rows: HAVING, row_number, SELECT, ORDER BY; and views that evaluate a look anew.

`RowMaker` is the end of every look. `Fresh` is the view of windows whose look cannot be kept up incrementally: joins,
and a WHERE with hit counters, which depends on what was shown before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from sql.aggregates.base import Removal
from sql.codegen.functions import DATA_ERRORS, EventFunction
from sql.errors import DataError
from sql.runtime.emission import Out
from sql.runtime.groups import AggregateSet, Group
from sql.windows.event import Event

if TYPE_CHECKING:
    from sql.runtime.sample_query import SampleQuery

Bounds = tuple[int, int, int]
Candidate = tuple[Event, list[Any]]
"""A row to be: the event its columns are read from, and the values of the aggregates beside it."""


class RowMaker:
    """Makes the rows of one look of its candidates, in their order."""

    def __init__(self, query: SampleQuery) -> None:
        plan, functions = query.plan, query.functions
        self.query = query
        self.having = None if plan.having is None else functions.true(plan.having)
        self.project = functions.row(plan.items, [source.columns for source in plan.sources])
        self.order = functions.criteria(plan.order_by, nulls_lowest=False) if plan.order_by else None
        self.numberings = [
            (functions.key(numbering.partition_by),
             functions.criteria(numbering.order_by, nulls_lowest=False) if numbering.order_by else None)
            for numbering in plan.numberings
        ]  # fmt: skip

    def rows(self, candidates: Iterable[Candidate], bounds: Bounds) -> list[Out]:
        """The rows HAVING lets through, numbered, with their places in ORDER BY."""
        kept = candidates if self.having is None else self._passing(candidates, bounds)
        if self.numberings:
            kept = self._numbered(list(kept), bounds)
        selected = self.query.hits.by_clause.get("SELECT")
        out = []
        for event, values in kept:
            try:
                order = None if self.order is None else self.order(event, values, bounds)
                out.append(Out(self.project(event, values, bounds), None, order))
            except DATA_ERRORS as error:
                self.query.on_error(event, error, bounds[2])
                continue
            if selected is not None:
                selected.note(bounds[2])
        return out

    def _passing(self, candidates: Iterable[Candidate], bounds: Bounds) -> Iterable[Candidate]:
        assert self.having is not None
        met = self.query.hits.by_clause.get("HAVING")
        for event, values in candidates:
            try:
                if not self.having(event, values, bounds):
                    continue
            except DATA_ERRORS as error:
                self.query.on_error(event, error, bounds[2])
                continue
            if met is not None:
                met.note(bounds[2])
            yield event, values

    def _numbered(self, candidates: list[Candidate], bounds: Bounds) -> list[Candidate]:
        """The candidates with their numbers behind the other values; their order stays."""
        first = self.query.functions.reader.offsets["row_number"]
        rows = [(event, [*values, *[None] * (first - len(values))]) for event, values in candidates]
        for place, (key, order) in enumerate(self.numberings, start=first):
            ordered: list[tuple[Any, Hashable, Candidate]] = []
            for event, values in rows:
                try:
                    rank = () if order is None else order(event, values, bounds)
                    ordered.append((rank, key(event, values, bounds), (event, values)))
                except DATA_ERRORS as error:
                    self.query.on_error(event, error, bounds[2])
            ordered.sort(key=lambda item: item[0])
            counts: dict[Hashable, int] = {}
            numbers: dict[Event, int] = {}
            for _, part, (event, _) in ordered:
                numbers[event] = counts[part] = counts.get(part, 0) + 1
            rows = [(event, [*values[:place], numbers[event]]) for event, values in rows if event in numbers]
        return rows


class Fresh:
    """The view of one window instance that keeps its events and evaluates each look from the beginning.

    relation   what the events stand for: themselves, or their join
    """

    def __init__(self, query: SampleQuery, relation: Callable[[Iterable[Event]], Iterable[Event]]) -> None:
        self.query = query
        self.relation = relation
        self.aggregates = AggregateSet(query.plan.aggregates, query.functions, Removal.NEVER)
        self.events: deque[Event] = deque()

    def add(self, event: Event) -> bool:
        self.events.append(event)
        return True

    def remove(self, event: Event) -> None:
        self.events.popleft()

    def clear(self) -> None:
        self.events.clear()

    def skip(self, windows: int) -> None:
        self.query.counts["windows_empty_skipped"] += windows

    def sample(self, start_ms: int, end_ms: int, trigger_ms: int) -> None:
        self.query.context.now_ms = trigger_ms
        passing = self._passing(self.relation(self.events), trigger_ms)
        candidates: Iterable[Candidate] = self._groups(passing) if self.query.grouped else ((e, []) for e in passing)
        rows = self.query.maker.rows(candidates, (start_ms, end_ms, trigger_ms))
        self.query.emit(rows, trigger_ms)

    def _passing(self, events: Iterable[Event], trigger_ms: int) -> Iterable[Event]:
        where: EventFunction | None = self.query.where
        met = self.query.hits.by_clause.get("WHERE")
        for event in events:
            try:
                if where is not None and not where(event):
                    continue
            except DATA_ERRORS as error:
                self.query.on_error(event, error, trigger_ms)
                continue
            if met is not None:
                met.note(event.time_ms)
            yield event

    def _groups(self, events: Iterable[Event]) -> Iterable[Candidate]:
        query, limit = self.query, self.query.plan.options.max_groups
        groups: dict[Any, Group] = {}
        for event in events:
            try:
                key, values = query.key(event), self.aggregates.values_of(event)
                group = groups.get(key)
                if group is None:
                    if len(groups) >= limit:
                        raise DataError(f"more than {limit} groups; raise maxGroups or group coarser")
                    group = Group(key, self.aggregates.fresh(), event)
                group.add(values, event)
                groups[key] = group
            except DATA_ERRORS as error:
                query.on_error(event, error)
        if not groups and query.emit_empty and not query.plan.group_by:
            groups[()] = Group((), self.aggregates.fresh(), query.empty_event())
        return [(group.first, group.results(group.first)) for group in groups.values()]
