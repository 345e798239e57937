"""Windows that overlap: hopping and count. Events are folded once per pane, not once per window.

    HOPPINGWINDOW(ss, 5, 2)    ends at 2, 4, 6, 8 …   a window [end - 5, end) begins in the middle of a hop
                               panes  |-|--|-|--|-|--     cut at each end and `length % hop` before it

A pane is what tumbling windows are made of: groups with pending values. When it is cut, each of its groups joins the
`Total` of its key, which can say the aggregate over all its panes at a cost that does not depend on how many there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import repeat
from typing import Any

from sql.aggregates.extremes import Extreme
from sql.calendar.grid import Grid
from sql.codegen.fast.grouped import GroupedQuery
from sql.codegen.fast.groups import Group, GroupTable, MixedGroup
from sql.codegen.fast.query import runs
from sql.codegen.fast.shared import Gatherer, SharedWindow
from sql.codegen.fast.source import SourceWriter
from sql.codegen.fast.totals import Queue, Total, queue_of
from sql.errors import DataError


class PaneTable(GroupTable):
    """The groups of the open pane; what a key may take also depends on its groups in the panes before."""

    def __init__(self, query: PaneQuery) -> None:
        super().__init__(query.plan.aggregates, query.plan.options.max_groups)
        self.totals = query.totals
        # Text in an earlier pane makes a group mixed from its first event; and the bound is that of the whole window.
        mixed = any(total.mixed for total in self.totals.values())
        self.spare = 0 if mixed else self.max_groups - len(self.totals)

    def open(self, key: Hashable, row: Any, values: tuple[Any, ...]) -> None:
        total = self.totals.get(key)
        if total is not None and total.mixed:
            self.admit(key, row, values)
        else:
            super().open(key, row, values)

    def queues(self) -> list[Queue]:
        """For the total of one more key."""
        return [queue_of(definition) for definition in self.definitions]

    def make_room(self, key: Hashable) -> None:
        if key not in self.totals and len(self.groups.keys() | self.totals.keys()) >= self.max_groups:
            raise DataError(f"more than {self.max_groups} groups; raise maxGroups or group coarser")

    def make(self, key: Hashable, row: Any) -> Group:
        group = super().make(key, row)
        total = self.totals.get(key)
        if total is not None and total.mixed:
            group.__class__ = MixedGroup
        return group

    def check(self, group: Group, by_call: list[Any]) -> None:
        for place, value in enumerate(by_call):
            self.check_in_all(group, place, value)

    def check_in_all(self, group: Group, place: int, value: Any) -> None:
        """Raise the DataError of an accumulator over all panes: of one that holds values, where there is one."""
        total = self.totals.get(group.key)
        refused: DataError | None = None
        for part in (item.accumulators[place] for item in (*(total.groups if total else ()), group)):
            try:
                part.check(value)
            except DataError as error:
                if refused is None or (isinstance(part, Extreme) and (part.count or part.nan)):
                    refused = error
        if refused is not None:
            raise refused


class Pane:
    """A cut pane."""

    __slots__ = ("dropped", "end", "first_ms", "groups", "size")

    def __init__(self, end: int, first_ms: int, size: int, table: GroupTable) -> None:
        self.end = end
        self.first_ms = first_ms
        self.size = size
        self.groups = table.groups
        self.dropped = table.dropped


class PaneQuery(GroupedQuery):
    """Base: the open pane is the table; `cut` closes it, `drop` takes the oldest away, `show` looks at all."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.totals: dict[Hashable, Total] = {}
        self.panes: deque[Pane] = deque()
        self.joined = 0
        """How many groups have joined totals so far."""
        super().__init__(*args, **keywords)

    table: PaneTable

    def new_table(self) -> PaneTable:
        return PaneTable(self)

    def cut(self, end: int, first_ms: int = 0, size: int = 0) -> None:
        """Close the open pane; its groups join their totals."""
        self.since_settled = 0
        self._join(Pane(end, first_ms, size, self.table))
        self.table = self.new_table()

    def _join(self, pane: Pane) -> None:
        """A pane whose groups are those of the table."""
        table = self.table
        table.settle_all()
        self.panes.append(pane)
        for key, group in table.groups.items():
            total = self.totals.get(key)
            if total is None:
                total = self.totals[key] = Total(table.queues())
            self.joined += 1
            total.push(table.upgraded(key, group), self.joined)

    def drop(self) -> Pane:
        """The oldest pane leaves."""
        pane = self.panes.popleft()
        for key in pane.groups:
            total = self.totals[key]
            if len(total.groups) == 1:
                del self.totals[key]
            else:
                total.pop()
        return pane

    def show(self, start_ms: int, end_ms: int) -> None:
        """Give out the rows of the window, groups in order of their first row in it."""
        if self.totals:
            totals = sorted(self.totals.values(), key=lambda total: total.numbers[0])
            self.emit(map(self.look, totals), start_ms, end_ms)

    def look(self, total: Total) -> tuple[Any, Sequence[Any]]:
        """The oldest row of a key and its aggregates' values."""
        return total.look()

    def retained(self) -> int:
        return super().retained() + sum(len(total.groups) for total in self.totals.values())

    def _state(self) -> Any:
        panes = [[pane.end, pane.first_ms, pane.size, self._packed(pane)] for pane in self.panes]
        return {"panes": panes, "open": self.table.snapshot(), **self.marks()}

    def _packed(self, pane: Pane) -> Any:
        table = self.new_table()
        table.groups, table.dropped = pane.groups, pane.dropped
        return table.snapshot()

    def marks(self) -> dict[str, Any]:
        """The state beside panes and groups."""
        return {}

    def _put_back(self, state: Any, store: Any) -> None:
        for end, first_ms, size, packed in state["panes"]:
            self.table = self.new_table()
            self.table.restore(packed, self.row_of)
            self._join(Pane(end, first_ms, size, self.table))
        self.table = self.new_table()
        self.table.restore(state["open"], self.row_of)


class HoppingQuery(SharedWindow, PaneQuery):
    """HOPPINGWINDOW: at each end E of the hop grid the events of [E - length, E)."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.hops = Grid(self.window.hop_ms, self.context.zone)
        self.early_ms = self.window.length_ms % self.window.hop_ms
        self.pane_end_ms = 0

    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        first, count = 0, len(rows)
        while first < count:
            at = self.now_ms if times is None else times[first]
            if times is not None:
                self.step_to(at)
            self._open(at)
            last = count if times is None else runs(times, first, self.pane_end_ms)
            self.gather(rows if last - first == count else rows[first:last])
            first = last

    def _open(self, at_ms: int) -> None:
        """Make the open pane the one that `at_ms` falls into."""
        if self.end_ms is None:
            self.end_ms = self.hops.next(at_ms)
            self.pane_end_ms = self._pane_end(at_ms)
        elif at_ms >= self.pane_end_ms:
            self.cut(self.pane_end_ms)
            self.pane_end_ms = self._pane_end(at_ms)

    def _pane_end(self, at_ms: int) -> int:
        assert self.end_ms is not None
        early_ms = self.end_ms - self.early_ms
        return early_ms if at_ms < early_ms else self.end_ms

    def fire(self, end_ms: int) -> None:
        if self.table.groups or self.table.dropped:
            self.cut(self.pane_end_ms)
        self._drop_before(end_ms - self.window.length_ms)
        self.show(end_ms - self.window.length_ms, end_ms)
        self.end_ms = self.hops.next(end_ms)
        self.pane_end_ms = self._pane_end(end_ms)
        self._drop_before(self.end_ms - self.window.length_ms)
        if not self.panes:
            self.end_ms = None

    def _drop_before(self, edge_ms: int) -> None:
        while self.panes and self.panes[0].end <= edge_ms:
            self.drop()

    def is_empty(self) -> bool:
        return not self.panes and not self.table.groups

    def reset(self) -> None:
        self.end_ms = None
        self.totals.clear()
        self.panes.clear()
        self.table = self.new_table()

    def own_state(self) -> Any:
        return PaneQuery._state(self)

    def marks(self) -> dict[str, Any]:
        return {"end": self.end_ms, "pane_end": self.pane_end_ms}

    def _put_back(self, state: Any, store: Any) -> None:
        super()._put_back(state, store)
        self.end_ms, self.pane_end_ms = state["end"], state["pane_end"]


class HoppingGatherer(Gatherer, HoppingQuery):
    """A hopping window that several rules show."""


HoppingQuery.gatherer_class = HoppingGatherer


class CountQuery(PaneQuery):
    """COUNTWINDOW(n, k): after each k-th event, once n are there, the last n.

    Panes are cut where a window ends or begins: after k events, and `n % k` before that.
    """

    reads_times = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        size, interval = self.window.size, self.window.interval
        self.early = size if size < interval else size % interval
        self.in_panes = 0
        """Events in cut panes, WHERE or not."""
        self.count = 0
        """Events in the open pane."""
        self.since = 0
        """Events since the last look, those of the open pane not among them."""
        self.first_ms = 0
        self.room = self._room()

    def _room(self) -> int:
        """How many events the open pane takes."""
        until_early = self.window.interval - self.early - self.since
        return until_early if until_early > 0 else self.window.interval - self.since

    # --- code ---------------------------------------------------------------------------------------------------------

    def write_start(self, writer: SourceWriter) -> None:
        super().write_start(writer)
        writer.line("count = q.count")
        writer.line("room = q.room")

    def write_after(self, writer: SourceWriter) -> None:
        with writer.block("if not count:"):
            writer.line("q.first_ms = at")
        writer.line("count += 1")
        with writer.block("if count == room:"):
            writer.line("room = q.full(at)")
            writer.line("count = 0")
            super().write_start(writer)

    def write_end(self, writer: SourceWriter) -> None:
        writer.line("q.count = count")

    # --- driving ------------------------------------------------------------------------------------------------------

    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        self.gather(rows, repeat(self.now_ms) if times is None else times)

    def full(self, at_ms: int) -> int:
        """The open pane is full; how many events the next one takes."""
        size = self.window.size
        self.cut(0, self.first_ms, self.room)
        self.in_panes += self.room
        self.since += self.room
        while self.panes and self.in_panes - self.panes[0].size >= size:
            self.in_panes -= self.drop().size
        if self.since == self.window.interval:
            self.since = 0
            if self.in_panes == size:
                self.now_ms = max(self.now_ms, at_ms)
                self.show(self.panes[0].first_ms, at_ms)
                self.tell_errors()
        self.room = self._room()
        return self.room

    def flush(self, now_ms: int) -> list[Any]:
        """An unfinished count window stays unfinished."""
        return self.take()

    def marks(self) -> dict[str, Any]:
        return {"held": self.in_panes, "count": self.count, "since": self.since, "first": self.first_ms}

    def _put_back(self, state: Any, store: Any) -> None:
        super()._put_back(state, store)
        self.in_panes, self.count, self.since = state["held"], state["count"], state["since"]
        self.first_ms = state["first"]
        self.room = self._room()
