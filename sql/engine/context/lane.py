"""A batch of events on its way through a context: the context acts on each, and each statement takes those
between two changes of partitions at once.

A stream has a lane if only one context and its statements read it, and nothing else reads their effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.algebra.context.partition import Arrival, Level, Partition
from sql.algebra.event import Event
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.route import route_of
from sql.emission import Emission
from sql.engine.context.host import ContextHost
from sql.engine.sharing import Defect


class Lane:
    """Takes the events of one stream."""

    def __init__(self, host: ContextHost, stream: str, on_defect: Defect | None = None) -> None:
        """`on_defect` takes what a statement raises; without it the push raises it."""
        self.host = host
        self.queue = host.statements.queue
        self.stream = stream
        self.on_defect = on_defect
        self.readers = [member for member in host.members.values() if stream in member.streams]
        self.names = list(host.members)
        """The statements that may emit rows when partitions end, whichever streams they read."""
        self.level: Level | None = None
        self.act: Callable[[Arrival], None] = lambda arrival: None
        """The action of the outermost level on an event."""
        self.arrival = Arrival(stream, Event(None, 0, 0), 0)
        """The present event."""
        self.route = self._compiled()
        """The loop that is made for the context and its statements."""

    def _compiled(self) -> Callable[[Lane, Sequence[Any]], None] | None:
        if not all(member.fits_cells for member in self.readers):
            return None
        host, plans = self.host, {member.name: member.inner for member in self.readers}
        is_single = len(host.members) == 1
        found = route_of(host.context, self.stream, plans, host.catalog, host.clock, is_single=is_single)
        return None if found is None else found["route"]

    @property
    def waits(self) -> list[tuple[Callable[[Any], None], Callable[[Any], None]]]:
        """The form in which an event waits for each statement: its body, its row."""
        return [(member.waiting.append, member.rows.append) for member in self.readers]

    @property
    def found(self) -> list[dict[Any, Any]]:
        """The bodies of each statement by what its filter is correlated with."""
        return [{} if member.index is None else member.index.found for member in self.readers]

    def push(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive; everything due by then has been done."""
        host = self.host
        host.clock.now_ms = now_ms
        for member in self.readers:
            member.counts["events_in"] += len(rows)
        level = host.life.root
        if level is None:
            return []
        queue = self.queue
        queue.begin_batch(self.stream, self.on_defect)
        try:
            found = level.unmoved(self.stream)
            if found is None or len(found) > 1:
                self._route(level, rows, now_ms)
            else:
                self._pass_on(found, rows)
            queue.flush()
        finally:
            queue.end_batch()
        return queue.take()

    def _pass_on(self, found: Sequence[Partition], rows: Sequence[Any]) -> None:
        """All events belong to one partition, or to none."""
        for partition in found:
            for body in partition.bodies:
                if body.member in self.readers:
                    body.member.waiting += [body] * len(rows)
                    body.member.rows += rows

    def _route(self, level: Level, rows: Sequence[Any], now_ms: int) -> None:
        """The context acts on each event, which then waits for the statements of the partitions it belongs
        to."""
        self.level, self.act = level, level.act
        self.arrival = Arrival(self.stream, Event(None, now_ms, 0), now_ms)
        if self.route is not None:
            self.route(self, rows)
        else:
            for row in rows:
                self.change(row)

    def change(self, row: object) -> None:
        """An event that may start and end partitions, and belong to several."""
        arrival, queue = self.arrival, self.queue
        targets, whole = arrival.targets, arrival.whole
        arrival.event.row = row
        try:
            self.act(arrival)
        except DATA_ERRORS as error:
            queue.settle()
            self.host.fail(arrival.event, error, arrival.now_ms)
            arrival.clear()
        if whole or len(targets) > 1 or (targets and queue.touched):
            self._spread()
            arrival.clear()
        elif targets:
            self.reach(targets.pop(), row)
        if arrival.first:
            arrival.first.clear()
        if len(queue.touched) > 1 or queue.mark is not None:
            queue.end_event()
        elif queue.touched:
            queue.touched.clear()

    def reach(self, partition: Partition, row: object) -> None:
        """An event waits for the statements of the only partition it belongs to."""
        for body in partition.bodies:
            member = body.member
            if self.stream in member.streams:
                member.waiting.append(body)
                member.rows.append(row)

    def _spread(self) -> None:
        """The present event belongs to any number of partitions."""
        arrival = self.arrival
        event = arrival.event
        for member in self.readers:
            index = member.index
            if index is not None and index.find(event, index.found) is None:
                continue
            for body in member.reached(event, arrival):
                self.queue.wait(body, event.row)
