"""The statements of a context in its partitions: how they start and end there, get their events, and when
they have something to do: one heap for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

from sql.algebra.context.partition import Partition
from sql.algebra.event import Delta, Event
from sql.catalog.streams import Catalog
from sql.emission import Emission
from sql.engine.context.bodies import Body, Cell, Member
from sql.engine.context.new_body import new_body
from sql.engine.context.spread import SpreadRelation
from sql.engine.relations.declaring import DeclaringStatement
from sql.engine.steps import moved
from sql.functions.definition import Context


class BodyTimers:
    """The deadlines of all bodies: by time, then in order of the statements, then of the partitions."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int, int, Body]] = []
        """(due, order of the statement, id of the partition, number, body); what no
        longer holds goes on top."""
        self.scheduled = 0

    def clear(self) -> None:
        """Forget all deadlines."""
        self.heap.clear()

    def drop(self, member: Member) -> None:
        """Forget the deadlines of a statement."""
        self.heap = sorted(entry for entry in self.heap if entry[4].member is not member)

    def move(self, body: Body, due_ms: int | None) -> None:
        """A body has another deadline; None: none."""
        body.due_ms = due_ms
        if due_ms is not None:
            self.scheduled += 1
            heappush(self.heap, (due_ms, body.member.order, body.partition.id, self.scheduled, body))

    def next_ms(self) -> int | None:
        """The earliest deadline."""
        while self.heap:
            due, _, _, _, body = self.heap[0]
            if body.due_ms == due:
                return due
            heappop(self.heap)
        return None

    def pop(self) -> Body:
        """The body with the earliest deadline, which it has no longer."""
        body = heappop(self.heap)[4]
        body.due_ms = None
        return body


class WaitingEvents(Protocol):
    """The events of a batch that wait for statements, between two changes of partitions."""

    def settle(self) -> None:
        """Partitions are about to change: what came before is done first."""

    def takes_first(self, partition: Partition, stream: str, event: Event) -> bool:
        """An event starts a partition; whether it waits with the others."""

    def takes_last(self, bodies: Sequence[Body]) -> bool:
        """A partition ends; whether that waits with the events."""


class ContextOwner(Protocol):
    """The context that has the statements."""

    def fail(self, event: Event | None, error: BaseException, now_ms: int) -> None:
        """A condition could not be evaluated, or there are too many partitions."""

    def next_deadline(self) -> int | None:
        """The earliest instant at which the context or a statement has something to do."""


class Statements:
    """All of them, as the life cycle calls them (`Bodies`).

    members  the statements by name, in order of creation
    timers   when they have something to do
    out      the emissions since they were last taken
    """

    def __init__(self, catalog: Catalog, clock: Context, owner: ContextOwner) -> None:
        """`clock`: the present instant of the context."""
        self.catalog = catalog
        self.clock = clock
        self.owner = owner
        self.members: dict[str, Member] = {}
        self.timers = BodyTimers()
        self.out: list[Emission] = []
        self.ended: dict[Member, list[Cell]] = {}
        """The cells of partitions that have ended, by statement: their reports are made together."""
        self.lane: WaitingEvents | None = None
        """The batch that is being taken, where statements get the events between two changes of partitions
        together."""
        self.restoring = False
        self.wake: Callable[[], None] = lambda: None
        """Called when the next deadline has changed while a statement got an event."""
        self.announced: int | None = None

    # --- partitions start and end ---------------------------------------------------------------------------

    def start(self, partition: Partition, now_ms: int) -> None:
        """A partition has been allocated: each statement begins in it, in order of creation."""
        for member in self.members.values():
            self.begin(member, partition, now_ms)

    def begin(self, member: Member, partition: Partition, now_ms: int, *, is_late: bool = False) -> None:
        """Start an instance; `is_late`: the partition has been there before, and its earlier rows
        are not posted."""
        body = new_body(member, self.members, partition, now_ms)
        partition.bodies += (body,)
        if member.index is not None:
            member.index.enter(body, partition.row)
        if not isinstance(body, Cell):
            self._fill(body, now_ms, is_late=is_late)

    def _fill(self, body: Body, now_ms: int, *, is_late: bool) -> None:
        """An instance starts from what relations hold, and does what is due at once."""
        member = body.member
        if isinstance(body.instance, DeclaringStatement):
            relation = body.instance.relation
            seen = self.catalog.relations.get(relation.name)
            if isinstance(seen, SpreadRelation):
                seen.indexed(relation)
            relation.bounded.wake = lambda: self.schedule(body)
        if self.restoring:
            return
        if member.inner.relations:
            self.add(body, body.instance.fill(posts=not is_late))
        due_ms = body.instance.next_deadline()
        if due_ms is not None and due_ms <= now_ms:
            self.add(body, body.instance.advance(now_ms))
        self.schedule(body)

    def stop(self, partitions: Sequence[Partition], now_ms: int) -> None:
        """Stop the statements of partitions that end, in reverse order; each emits what is due at the end."""
        lane = self.lane
        for partition in partitions:
            bodies, partition.bodies = partition.bodies, ()
            for body in bodies:
                if body.member.index is not None:
                    body.member.index.leave(body, partition.row)
            if lane is not None:
                if lane.takes_last(bodies):
                    continue
                self.settle()
            for body in reversed(bodies):
                body.due_ms = None
                if lane is None and isinstance(body, Cell) and body.reports_later:
                    self.ended.setdefault(body.member, []).append(body)
                elif given := body.terminate(now_ms):
                    self.add(body, given)

    def stop_together(self) -> bool:
        return all(member.stops_together() for member in self.members.values())

    def fail(self, event: Event | None, error: BaseException, now_ms: int) -> None:
        self.owner.fail(event, error, now_ms)

    # --- events ---------------------------------------------------------------------------------------------

    def give_first(self, partition: Partition, stream: str, event: Event, now_ms: int) -> None:
        if self.lane is not None and self.lane.takes_first(partition, stream, event):
            return
        self.settle()
        for body in partition.bodies:
            if stream in body.member.streams:
                self.out += self.give(body, stream, event.row, now_ms)

    def give(self, body: Body, stream: str, row: object, now_ms: int) -> list[Emission]:
        """Pass an event to one instance; the emissions."""
        return self._given(body, body.push(stream, (row,), now_ms))

    def give_cells(self, member: Member, cells: Sequence[Cell], rows: Sequence[Any], now_ms: int) -> None:
        """Events for a statement with the cells of their partitions."""
        assert member.cells is not None
        out = member.cells.push_cells(cells, rows, now_ms)
        if out:
            self.count(cells[0], out)
            self.out += out

    def feed(self, body: Body, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Pass changes of relations to one instance; the emissions."""
        return self._given(body, body.instance.feed(changes, now_ms))

    def _given(self, body: Body, emissions: list[Emission]) -> list[Emission]:
        """Count the emissions of an instance for an event or a change."""
        if emissions:
            self.count(body, emissions)
        self.schedule(body)
        return emissions

    # --- emissions ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Give statements the events that wait for them, and make the reports that wait."""
        if self.lane is not None:
            self.lane.settle()
        ended, self.ended = self.ended, {}
        for member, cells in ended.items():
            assert member.cells is not None
            given = member.cells.report(cells, self.clock.now_ms)
            self.count(cells[0], given)
            self.out += given

    def add(self, body: Body, emissions: list[Emission]) -> None:
        """An instance has emitted something on its own: not for an event."""
        if emissions:
            self.settle()
            self.count(body, emissions)
            self.out += emissions

    def count(self, body: Body, emissions: list[Emission]) -> None:
        """Count the emissions of an instance; rows for a relation of the context are queued for it."""
        member = body.member
        for emission in emissions:
            if emission.kind == "error":
                member.counts["errors"] += 1
                continue
            member.counts["rows_out"] += len(emission.inserted)
            if member.fills_own and emission.kind == "rows":
                assert member.inner.insert is not None
                rows = moved(member.inner, emission)
                body.catalog.loop.forward(member.inner.insert.stream, rows, member.name)

    def take(self) -> list[Emission]:
        """The emissions since the last call."""
        if self.ended:
            self.settle()
        out, self.out = self.out, []
        return out

    # --- time -----------------------------------------------------------------------------------------------

    def schedule(self, body: Body) -> None:
        """Note when an instance has something to do next."""
        due_ms = body.next_deadline()
        if due_ms == body.due_ms:
            return
        self.timers.move(body, due_ms)
        next_ms = self.owner.next_deadline()
        if next_ms != self.announced:
            self.announced = next_ms
            self.wake()

    def advance(self, until_ms: int, end_ms: int | None) -> None:
        """Do what is due next of the statements, at `until_ms`; time changes partitions at `end_ms`."""
        body = self.timers.pop()
        instance = body.instance
        # Windows that go through instants by themselves do not go beyond the end of the partition.
        if instance.steps_itself and end_ms is not None:
            until_ms = min(until_ms, end_ms)
        self.add(body, instance.advance(until_ms))
        self.schedule(body)
