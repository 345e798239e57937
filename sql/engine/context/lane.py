"""The fast way of a batch through a context: each statement gets the events between two
changes of partitions at once.

A stream has a lane if only one context and its statements read it, and nothing else reads their effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.algebra.context.partition import Arrival, Level, Partition
from sql.algebra.event import Event
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.route import route_of
from sql.emission import Emission, joined
from sql.engine.context.bodies import Body, Member
from sql.engine.context.host import ContextHost
from sql.engine.sharing import Defect


class Run:
    """Events that wait for one statement, each with the body that it reaches; no event (None) is the end of a
    body."""

    __slots__ = ("bodies", "member", "rows")

    def __init__(self, member: Member) -> None:
        self.member = member
        self.bodies: list[Any] = []  # all of them cells, or all instances
        self.rows: list[Any] = []


class Lane:
    """Takes the events of one stream. What ends a partition waits with the events where all statements are
    in cells: nothing has to be emitted before it."""

    def __init__(self, host: ContextHost, stream: str, on_defect: Defect) -> None:
        self.host = host
        self.statements = host.statements
        self.stream = stream
        self.on_defect = on_defect
        self.all_runs = {member: Run(member) for member in host.members.values()}
        self.runs = {member: run for member, run in self.all_runs.items() if stream in member.streams}
        """The runs of the statements that read the stream."""
        self.ends_wait = all(member.fits_cells for member in self.all_runs)
        """True if the end of a partition waits with the events."""
        self.names = [member.name for member in host.members.values()]
        """The statements that may emit rows when partitions end, whichever streams they read."""
        self.level: Level | None = None
        self.act: Callable[[Arrival], None] = lambda arrival: None
        """The action of the outermost level on an event."""
        self.now_ms = 0
        self.arrival = Arrival(stream, Event(None, 0, 0), 0)
        """The present event."""
        self.touched: list[Run] = []
        """The runs in which the present event waits, once for each body, if it starts or ends partitions or
        belongs to several."""
        self.mark: int | None = None
        """The start of the present event's emissions, once it has changed partitions."""
        self.route = self._compiled()
        """The loop that is made for the context and its statements."""

    def _compiled(self) -> Callable[[Lane, Sequence[Any]], None] | None:
        plans = {member.name: member.inner for member in self.runs}
        if not all(member.fits_cells for member in self.runs):
            return None
        host = self.host
        found = route_of(host.context, self.stream, plans, host.catalog, host.clock)
        return None if found is None else found["route"]

    @property
    def waits(self) -> list[tuple[Callable[[Any], None], Callable[[Any], None]]]:
        """The form in which an event waits for each statement: its body, its row."""
        return [(run.bodies.append, run.rows.append) for run in self.runs.values()]

    @property
    def found(self) -> list[dict[Any, Any]]:
        """The bodies of each statement by what its filter is correlated with."""
        return [{} if member.index is None else member.index.found for member in self.runs]

    def push(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive; everything due by then has been done."""
        host = self.host
        self.now_ms = host.clock.now_ms = now_ms
        for run in self.runs.values():
            run.member.counts["events_in"] += len(rows)
        level = host.life.root
        if level is None:
            return []
        found = level.unmoved(self.stream)
        if found is None or len(found) > 1:
            self._route(level, rows)
        else:
            for run in self.runs.values():
                bodies = [
                    body for partition in found for body in partition.bodies if body.member is run.member
                ]
                if bodies:
                    run.rows += rows
                    run.bodies += bodies * len(rows)
            self.flush()
        return self.statements.take()

    # --- one event after the other --------------------------------------------------------------------------

    def _route(self, level: Level, rows: Sequence[Any]) -> None:
        """The context acts on each event, which then waits for the statements of the partitions it belongs
        to."""
        self.level, self.act, self.statements.lane = level, level.act, self
        self.arrival = Arrival(self.stream, Event(None, self.now_ms, 0), self.now_ms)
        try:
            if self.route is not None:
                self.route(self, rows)
            else:
                for row in rows:
                    self.change(row)
            self.flush()
        finally:
            self.statements.lane = None

    def change(self, row: object) -> None:
        """An event that may start and end partitions, and belong to several."""
        arrival, touched = self.arrival, self.touched
        targets, whole = arrival.targets, arrival.whole
        arrival.event.row = row
        try:
            self.act(arrival)
        except DATA_ERRORS as error:
            self.settle()
            self.host.fail(arrival.event, error, self.now_ms)
            arrival.clear()
        if whole or len(targets) > 1:
            self._spread()
            arrival.clear()
        elif targets:
            self.reach(targets.pop(), row)
        if arrival.first:
            arrival.first.clear()
        if touched or self.mark is not None:
            if len(touched) > 1 or self.mark is not None:
                self._end_event()
            touched.clear()

    def reach(self, partition: Partition, row: object) -> None:
        """An event waits for the statements of the only partition it belongs to."""
        for body in partition.bodies:
            run = self.runs.get(body.member)
            if run is not None:
                run.bodies.append(body)
                run.rows.append(row)

    def takes_first(self, partition: Partition, stream: str, event: Event) -> bool:
        """An event starts a partition; whether it waits with the others."""
        if event is not self.arrival.event or stream != self.stream:
            return False
        for body in partition.bodies:
            run = self.runs.get(body.member)
            if run is not None:
                self._add(run, body, event.row)
        return True

    def takes_last(self, bodies: Sequence[Body]) -> bool:
        """A partition ends; whether that waits with the events."""
        if self.ends_wait:
            for body in bodies:
                if body.member.inner.output is not None:  # its cell has to be called
                    self._add(self.all_runs[body.member], body, None)
        return self.ends_wait

    def _spread(self) -> None:
        """The present event belongs to any number of partitions."""
        arrival = self.arrival
        event = arrival.event
        for member, run in self.runs.items():
            index = member.index
            if index is not None and index.find(event, index.found) is None:
                continue
            for body in member.reached(event, arrival):
                self._add(run, body, event.row)

    def _add(self, run: Run, body: Body, row: object) -> None:
        """The present event, or an end that it causes, waits for a body."""
        run.bodies.append(body)
        run.rows.append(row)
        self.touched.append(run)

    # --- changes of partitions ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Partitions are about to change: what came before is done first."""
        if self.mark is None:
            self._flush_before()
        else:
            self.flush()

    def _flush_before(self) -> None:
        """Emit the results of earlier events; those of the present event begin here."""
        later = []
        for run in self.all_runs.values():
            if run not in self.touched:
                continue
            first = len(run.rows) - self.touched.count(run)
            later.append((run, run.bodies[first:], run.rows[first:]))
            del run.bodies[first:], run.rows[first:]
        self.flush()
        self.mark = len(self.statements.out)
        for run, bodies, rows in later:
            run.bodies += bodies
            run.rows += rows

    def _end_event(self) -> None:
        """Finish an event that has changed partitions, or belongs to several.

        Rows that a statement emits in several partitions are one post.
        """
        if self.mark is None:
            if len(self.touched) == len(set(self.touched)):
                return
            self._flush_before()
        self.flush()
        out, mark = self.statements.out, self.mark
        if mark is not None and len(out) > mark + 1:
            out[mark:] = joined(out[mark:], self.names)
        self.mark = None

    def flush(self) -> None:
        """Give each statement the events that wait for it."""
        for run in self.all_runs.values():
            if run.rows:
                self._give(run.member, run.bodies, run.rows)
                run.bodies.clear()
                run.rows.clear()

    def _give(self, member: Member, bodies: list[Any], rows: list[Any]) -> None:
        try:
            if member.cells is not None:
                self.statements.give_cells(member, bodies, rows, self.now_ms)
                return
            for body, row in zip(bodies, rows, strict=True):
                self.statements.out += self.statements.give(body, self.stream, row, self.now_ms)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            self.statements.out += self.on_defect(member.name, rows, self.now_ms, error)
