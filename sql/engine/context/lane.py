"""The fast way of a batch through a context: each statement gets the events between two
changes of partitions at once.

A stream has a lane where only one context and its statements hear it, and nothing else can see what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from sql.algebra.context.level import Arrival, Level
from sql.algebra.context.partition import Partition
from sql.algebra.event import Event
from sql.codegen.functions import DATA_ERRORS
from sql.emission import Emission, joined

if TYPE_CHECKING:
    from sql.engine.context.host import ContextHost
    from sql.engine.context.member import Member

OnDefect = Callable[[str, Sequence[Any], int, Exception], list[Emission]]
"""What becomes of what a rule should not raise."""


class Run:
    """Events that wait for one statement, each with the body that it reaches. `reached`: how many bodies the
    present event does, where it starts partitions or belongs to several."""

    __slots__ = ("bodies", "member", "reached", "rows")

    def __init__(self, member: Member) -> None:
        self.member = member
        self.bodies: list[Any] = []  # all of them cells, or all instances
        self.rows: list[Any] = []
        self.reached = 0

    def add(self, bodies: Sequence[Any], row: Any) -> None:
        """The present event waits for some bodies more."""
        self.bodies += bodies
        self.rows += repeat(row, len(bodies))
        self.reached += len(bodies)


class Lane:
    """Takes the events of one stream."""

    def __init__(self, host: ContextHost, stream: str, on_defect: OnDefect) -> None:
        self.host = host
        self.stream = stream
        self.on_defect = on_defect
        self.runs = {member: Run(member) for member in host.members.values() if stream in member.streams}
        self.names = [member.name for member in host.members.values()]
        """Those that may give out something when partitions end, whatever they hear."""
        self.now_ms = 0
        self.event: Event | None = None
        """The present event."""
        self.is_spread = False
        """Whether the present event starts partitions or belongs to several."""
        self.mark: int | None = None
        """Where the emissions of the present event begin, once it has changed partitions."""

    def push(self, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive; everything due by then has been done."""
        host = self.host
        self.now_ms = host.now_ms = now_ms
        for run in self.runs.values():
            run.member.counts["events_in"] += len(rows)
        root = host.life.root
        if root is None:
            return []
        found = root.unmoved(self.stream)
        if found is None or len(found) > 1:
            self._route(root, rows)
        else:
            for run in self.runs.values():
                run.bodies = [
                    body for partition in found for body in partition.bodies if body.member is run.member
                ]
                run.rows = list(rows) if run.bodies else []
                run.bodies *= len(run.rows)
            self.flush()
        return host.taken()

    # --- one event after the other --------------------------------------------------------------------------

    def _route(self, root: Level, rows: Sequence[Any]) -> None:
        """The context acts on each event, which then waits for the statements of the
        partitions it belongs to."""
        arrival = Arrival(self.stream, Event(None, self.now_ms, 0), self.now_ms)
        targets, whole, act = arrival.targets, arrival.whole, root.act
        self.event, self.host.lane = arrival.event, self
        try:
            for row in rows:
                arrival.event.row = row
                try:
                    act(arrival)
                except DATA_ERRORS as error:
                    self.settle()
                    self.host.fail(arrival.event, error, self.now_ms)
                    arrival.clear()
                if whole or len(targets) > 1:
                    self._spread(arrival)
                elif targets:
                    self._reach(targets.pop(), row)
                if self.is_spread or self.mark is not None:
                    self._end_event()
                    arrival.clear()
            self.flush()
        finally:
            self.event = self.host.lane = None

    def _reach(self, partition: Partition, row: Any) -> None:
        for body in partition.bodies:
            run = self.runs.get(body.member)
            if run is not None:
                run.bodies.append(body)
                run.rows.append(row)

    def takes_first(self, partition: Partition, stream: str, event: Event) -> bool:
        """An event starts a partition; whether it waits with the others."""
        if event is not self.event or stream != self.stream:
            return False
        self.is_spread = True
        for body in partition.bodies:
            run = self.runs.get(body.member)
            if run is not None:
                run.add((body,), event.row)
        return True

    def _spread(self, arrival: Arrival) -> None:
        """An event belongs to any number of partitions."""
        self.is_spread = True
        for run in self.runs.values():
            run.add(run.member.reached(arrival.event, arrival), arrival.event.row)

    # --- changes of partitions ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Partitions are about to change: what came before is done first."""
        if self.mark is None:
            self._flush_before()
        else:
            self.flush()

    def _flush_before(self) -> None:
        """Give out what came before the present event; what it gives out itself begins here."""
        later = []
        for run in self.runs.values():
            if not run.reached:
                continue
            first = len(run.rows) - run.reached
            later.append((run, run.bodies[first:], run.rows[first:]))
            del run.bodies[first:], run.rows[first:]
        self.flush()
        self.mark = len(self.host.out)
        for run, bodies, rows in later:
            run.bodies, run.rows = bodies, rows

    def _end_event(self) -> None:
        """The event that has changed partitions, or belongs to several, is done.

        What a statement gives out in several partitions is one post.
        """
        if self.mark is None and any(run.reached > 1 for run in self.runs.values()):
            self._flush_before()
        for run in self.runs.values():
            run.reached = 0
        self.is_spread = False
        if self.mark is None:
            return
        self.flush()
        out, mark = self.host.out, self.mark
        if len(out) > mark + 1:
            out[mark:] = joined(out[mark:], self.names)
        self.mark = None

    def flush(self) -> None:
        """Give each statement the events that wait for it."""
        for run in self.runs.values():
            if run.rows:
                bodies, rows, run.bodies, run.rows = run.bodies, run.rows, [], []
                self._give(run.member, bodies, rows)

    def _give(self, member: Member, bodies: list[Any], rows: list[Any]) -> None:
        host = self.host
        try:
            if member.cells is not None:
                host.give_cells(member, bodies, rows, self.now_ms)
                return
            for body, row in zip(bodies, rows, strict=True):
                host.out += host.give(body, self.stream, row, self.now_ms)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            host.out += self.on_defect(member.name, rows, self.now_ms, error)
