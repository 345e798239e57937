"""The fast way of a batch through a context: each statement gets the events between two changes of partitions at once.

A stream has a lane where only one context and its statements hear it, and nothing else can see what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from sql.algebra.context.level import Arrival, Level
from sql.algebra.event import Event
from sql.codegen.functions import DATA_ERRORS
from sql.emission import Emission, joined

if TYPE_CHECKING:
    from sql.engine.context.host import ContextHost
    from sql.engine.context.member import Member

OnDefect = Callable[[str, Sequence[Any], int, Exception], list[Emission]]
"""What becomes of what a rule should not raise."""


class Run:
    """Events that wait for one statement, each with the body that it reaches."""

    __slots__ = ("bodies", "member", "rows")

    def __init__(self, member: Member) -> None:
        self.member = member
        self.bodies: list[Any] = []  # all of them cells, or all instances
        self.rows: list[Any] = []


class Lane:
    """Takes the events of one stream."""

    def __init__(self, host: ContextHost, stream: str, on_defect: OnDefect) -> None:
        self.host = host
        self.stream = stream
        self.on_defect = on_defect
        self.runs = {member: Run(member) for member in host.members.values() if stream in member.streams}
        self.names = [member.name for member in self.runs]
        self.now_ms = 0
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
                run.bodies = [body for partition in found for body in partition.bodies if body.member is run.member]
                run.rows = list(rows) if run.bodies else []
                run.bodies *= len(run.rows)
            self.flush()
        return host.taken()

    # --- one event after the other ------------------------------------------------------------------------------------

    def _route(self, root: Level, rows: Sequence[Any]) -> None:
        """The context acts on each event, which then waits for the statements of the partitions it belongs to."""
        arrival = Arrival(self.stream, Event(None, self.now_ms, 0), self.now_ms)
        event, targets, act = arrival.event, arrival.targets, root.act
        self.host.lane = self
        try:
            for row in rows:
                event.row = row
                try:
                    act(arrival)
                except DATA_ERRORS as error:
                    self.settle()
                    self.host.fail(event, error, self.now_ms)
                    arrival.clear()
                if len(targets) == 1 and not arrival.whole:
                    for body in targets[0].bodies:
                        run = self.runs.get(body.member)
                        if run is not None:
                            run.bodies.append(body)
                            run.rows.append(row)
                    targets.clear()
                elif targets or arrival.whole:
                    self._spread(arrival)
                if self.mark is not None:
                    self._end_change()
                    arrival.clear()
            self.flush()
        finally:
            self.host.lane = None

    def _spread(self, arrival: Arrival) -> None:
        """An event belongs to any number of partitions; what a statement gives out in several is one post."""
        for run in self.runs.values():
            bodies = run.member.reached(arrival.event, arrival)
            if len(bodies) > 1:
                self.settle()
            run.bodies += bodies
            run.rows += repeat(arrival.event.row, len(bodies))
        arrival.clear()

    # --- changes of partitions ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Partitions are about to change: what came before this event is done first."""
        if self.mark is None:
            self.flush()
            self.mark = len(self.host.out)

    def _end_change(self) -> None:
        """The event that has changed partitions is done."""
        self.flush()
        out, mark = self.host.out, self.mark
        if mark is not None and len(out) > mark + 1:
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
