"""A statement of a context and its running part in one partition: an instance of its own, or a cell of the
statement that serves all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.context.by_property import ByProperty
from sql.algebra.context.partition import Arrival, Partition
from sql.algebra.event import NOTHING, Event
from sql.algebra.row_blocks import plain
from sql.catalog.streams import Catalog
from sql.compiler.program import Program
from sql.compiler.shared_code import Environment
from sql.emission import Emission, Out
from sql.engine.query import MakeInstance, Running, RunningQuery
from sql.engine.statement.running_statement import RunningStatement
from sql.errors import CorruptState
from sql.plan.context_plan import ContextPlan
from sql.plan.declared import TableDeclaration, VariableDeclaration, WindowDeclaration
from sql.plan.logical import Plan


class Member(RunningQuery, Running):
    """One statement of a context, as its bodies read it. `outranks`: by `@Priority` it sees an event before
    the context acts on it."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: ContextPlan,
        catalog: Catalog,
        order: int,
        schedule: Callable[[Body], None],
    ) -> None:
        """`schedule` notes when a body has something to do next."""
        target = None if plan.insert is None else catalog.streams.get(plan.insert.stream)
        self.fills_own = target is not None and target.context == context.name
        """True if its rows enter a relation of their partition."""
        # The parts of the plan that the engine reads; filters are in the instances.
        super().__init__(name, Plan(plan.text, plan.mode, (), (), plan.options,
                                    insert=None if self.fills_own else plan.insert,
                                    selector=plan.selector, posts=plan.posts, reads=plan.reads,
                                    priority=plan.priority, relations=plan.relations,
                                    acts=plan.acts), 0)  # fmt: skip
        self.inner = plan
        self.catalog = catalog
        self.order = order
        self.schedule = schedule
        self.code: MakeInstance | None = None
        """The compiled statement, made with the first instance."""
        self.cells: CellStatement | None = None
        """The statement that runs in all partitions, made with the first, if their state fits in cells."""
        self.fits_cells = False
        self.saved: dict[int, Mapping[str, Any]] | None = None
        """While a state is put back: the values with which windows began, by partition that the state has."""
        self.index: ByProperty[Body] | None = None
        """The index of a statement over one stream whose filter is correlated with the partition."""
        self.reads = streams_of(plan)
        """The streams and relations that it reads itself."""
        self.streams = frozenset(
            name for name in self.reads if name in plan.pattern_streams or name not in catalog.relations
        )
        """Those of them whose events it takes, also where these are the rows of a named window."""
        self.waiting: list[Any] = []
        """The bodies that events wait for, all of them cells or all instances."""
        self.rows: list[Any] = []
        """The events that wait, one for each of these; None is the end of a cell's partition."""
        self.declares = isinstance(plan.acts, WindowDeclaration | TableDeclaration | VariableDeclaration)
        self.outranks = plan.priority > context.priority

    def reached(self, event: Event, arrival: Arrival) -> Sequence[Body]:
        """The bodies that an event has to reach, in order of allocation of their partitions."""
        if self.index is not None:
            return [body for body in self.index.fitting(event) if arrival.reaches(body.partition)]
        return [body for partition in arrival.rest() for body in partition.bodies if body.member is self]


def streams_of(plan: Plan) -> set[str]:
    """The streams a statement itself reads, subqueries included; its context's conditions may read others."""
    found = {stream for source in plan.sources for stream in source.streams}
    for subquery in plan.subqueries:
        found |= streams_of(subquery.plan)
    return found


class Body(ABC):
    """One statement in one partition. `due_ms`: the deadline that is in the heap of the host."""

    __slots__ = ("due_ms", "member", "partition")

    def __init__(self, member: Member, partition: Partition) -> None:
        self.member = member
        self.partition = partition
        self.due_ms: int | None = None

    @property
    @abstractmethod
    def instance(self) -> Running:
        """An instance with the state of the partition: of a statement, or of a declared relation."""

    @property
    def catalog(self) -> Catalog:
        """The catalog as the statement sees it in the partition."""
        return self.member.catalog

    def next_deadline(self) -> int | None:
        """When the statement has something to do next in this partition."""
        return self.instance.next_deadline()


class InstanceBody(Body):
    """A running instance of its own."""

    __slots__ = ("catalog", "instance")

    catalog: Catalog
    instance: Running

    def __init__(self, member: Member, partition: Partition, instance: Running, catalog: Catalog) -> None:
        super().__init__(member, partition)
        self.instance = instance
        self.catalog = catalog


class Cell(Body):
    """The state of a statement in one partition, a few hundred bytes.

    folded    the group of all events, or the groups by key
    counted   how many events `output every n events` has counted
    period    the state of `output every 10 sec`: since when, and when next; None before the first event
    """

    __slots__ = ("counted", "folded", "period")

    def __init__(self, member: Member, partition: Partition, folded: Any) -> None:
        self.member = member
        self.partition = partition
        self.due_ms = None
        self.folded = folded
        self.counted = 0
        self.period: tuple[int, int] | None = None

    @property
    def instance(self) -> CellStatement:
        assert self.member.cells is not None
        return self.member.cells.at(self)

    def next_deadline(self) -> int | None:
        cells = self.member.cells
        if cells is not None and cells.cell is self:
            cells.rest()
        return None if self.period is None else self.period[1]


class CellStatement(RunningStatement):
    """The statement that serves all cells: whatever it does, it does `at` one of them.

    The compiled loop takes the events of many cells and reads these itself; everything else happens as in a
    statement with a partition of its own.
    """

    def __init__(self, program: Program, env: Environment) -> None:
        super().__init__(program, env)
        self.cell: Cell | None = None
        """The cell whose state is here; the state in the cell itself is out of date meanwhile."""
        output = program.plan.output
        self.counts_events = output is not None and output.every_events is not None
        self.has_timers = output is not None and output.every is not None
        self.reports_end = output is not None and output.terminated is not None
        self.hears_end = self.reports_end or self.has_timers
        """True if a cell has something to do when its partition ends."""
        show = program.text.show
        self.shows_one = (
            show.defers is not None and output is not None and output.mode == "last" and not show.is_ordered
        )
        """True if an output is the present row, as it is."""
        self.packs_cells = not program.text.fold.may_hold
        """True if the state of a cell stands by itself: no events are shared between cells."""
        self.show_row: Callable[..., None] = program.text.reader["show"]

    # --- whose state is here --------------------------------------------------------------------------------

    def at(self, cell: Cell) -> CellStatement:
        """This statement with the state of a cell."""
        if cell is not self.cell:
            self.rest()
            self.cell = cell
            self.instance_data.partition = cell.partition.row
            if self.groups.whole is None:
                self.groups.by_key = cell.folded
            else:
                self.groups.whole = cell.folded
            limit = self.output.limit
            if limit is not None and self.counts_events:
                limit.condition.restore((cell.counted, 0))
            elif limit is not None and self.has_timers:
                limit.condition.restore(cell.period or (None, None))
        return self

    def rest(self) -> None:
        """The state goes back into its cell."""
        cell, self.cell = self.cell, None
        if cell is None:
            return
        groups = self.groups
        cell.folded = groups.by_key if groups.whole is None else groups.whole
        limit = self.output.limit
        if limit is not None and self.counts_events:
            cell.counted = limit.condition.snapshot()[0]
        elif limit is not None and self.has_timers:
            origin_ms, due_ms = limit.condition.snapshot()
            cell.period = None if origin_ms is None else (origin_ms, due_ms)

    # --- events ---------------------------------------------------------------------------------------------

    def push_cells(self, cells: Sequence[Cell], rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events with the cells of their partitions, in order; None is the end of a partition."""
        self.rest()
        self.now_ms = self.context.now_ms = now_ms
        self.counts["events_in"] += len(rows)
        self.code["push"](self, cells, rows, now_ms)
        return self.take()

    def end(self, cell: Cell, now_ms: int) -> None:
        """The partition of a cell ends."""
        if self.shows_one and self.reports_end:
            self.out += self._shown([cell], now_ms)
        elif self.reports_end:
            self.at(cell).begin(now_ms)
            self.output.terminate(now_ms)
            self.rest()
        _rest_for_ever(cell)

    def end_all(self, cells: Sequence[Cell], now_ms: int) -> list[Emission]:
        """The partitions of cells end at one instant."""
        if self.shows_one and self.reports_end:
            self.out += self._shown(cells, now_ms)
            for cell in cells:
                _rest_for_ever(cell)
        else:
            for cell in cells:
                self.end(cell, now_ms)
        return self.take()

    def start(self, cell: Cell, now_ms: int) -> None:
        """The first event of a cell: its output limit counts from now."""
        self.at(cell).output.start(now_ms)
        self.rest()
        cell.member.schedule(cell)

    def reached(self, cell: Cell, now_ms: int) -> None:
        """Emit: as many events have come as the output limit counts."""
        if self.shows_one:
            self.out += self._shown([cell], now_ms)
            cell.counted = 0
            return
        self.at(cell).begin(now_ms)
        self.output.reached(now_ms)
        self.rest()

    def _shown(self, cells: Sequence[Cell], now_ms: int) -> list[Emission]:
        """The present rows of cells."""
        if self.cell is not None:
            self.rest()
        self.now_ms = self.context.now_ms = now_ms
        show, partition = self.show_row, self.program.partition
        outs: list[Out] = []
        for cell in cells:
            partition[:] = cell.partition.row
            show(self, NOTHING, cell.folded, outs, True)
        return [Emission(self.name, now_ms, "rows", [out.row for out in outs])] if outs else []

    # --- state ----------------------------------------------------------------------------------------------

    def packed(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """The state that all cells share, once, and that of each."""
        self.rest()
        self.groups.reset()
        return {"shared": plain(self.snapshot()), "cells": [self._pack(cell) for cell in cells]}

    def unpacked(self, state: dict[str, Any], cells: Iterable[Cell]) -> None:
        """Put what `packed` gave back into cells just made."""
        self.rest()
        self.restore(state["shared"])
        known = {cell.partition.id: cell for cell in cells}
        for number, groups, counted, period in state["cells"]:
            cell = known[number]
            found = [self.groups.unpack(group, _no_event) for group in groups]
            cell.folded = {group.key: group for group in found} if self.groups.whole is None else found[0]
            cell.counted = counted
            cell.period = None if period is None else tuple(period)

    def _pack(self, cell: Cell) -> list[Any]:
        """The partition of a cell, its groups, how far its output limit is."""
        pack = self.groups.pack
        is_whole = self.groups.whole is not None
        groups = [pack(cell.folded)] if is_whole else [pack(group) for group in cell.folded.values()]
        period = None if cell.period is None else list(cell.period)
        return [cell.partition.id, groups, cell.counted, period]


def _rest_for_ever(cell: Cell) -> None:
    """Nothing is due in a cell whose partition has ended."""
    if cell.due_ms is not None:
        cell.period = None
        cell.member.schedule(cell)


def _no_event(number: int) -> Event:
    """Cells that are packed refer to no events."""
    raise CorruptState(f"there is no event {number} in a cell")
