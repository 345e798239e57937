"""The statements of a context in its partitions: how they start and end there, get their events, and when
they have something to do: one heap for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sql.algebra.context.partition import Arrival, Partition
from sql.algebra.deadlines import Deadlines
from sql.algebra.event import Delta
from sql.catalog.streams import Catalog
from sql.emission import Emission
from sql.engine.context.bodies import Body, Cell, Member
from sql.engine.context.event_queue import EventQueue
from sql.engine.context.new_body import new_body
from sql.engine.context.release import release
from sql.engine.context.spread import SpreadRelation
from sql.engine.relations.declaring import DeclaringStatement
from sql.engine.steps import moved
from sql.errors import DataError, positioned
from sql.functions.definition import Context


class Statements:
    """The statements of a context, as the life cycle calls them (`Bodies`).

    members    the statements by name, in order of creation
    deadlines  when they have something to do, by time, then statement, then partition
    queue      the events that wait for them, and what they have emitted
    """

    def __init__(self, catalog: Catalog, clock: Context, announce: Callable[[], None]) -> None:
        """`clock`: the present instant of the context. `announce` is called when a deadline has moved."""
        self.catalog = catalog
        self.announce = announce
        self.members: dict[str, Member] = {}
        self.deadlines: Deadlines[Body] = Deadlines()
        self.queue = EventQueue(self.members, clock, self.give, self._end)
        self.restoring = False

    # --- partitions start and end ---------------------------------------------------------------------------

    def start(self, partition: Partition, now_ms: int) -> None:
        """A partition has been allocated: each statement begins in it, in order of creation."""
        for member in self.members.values():
            self.begin(member, partition, now_ms)

    def begin(self, member: Member, partition: Partition, now_ms: int, *, is_late: bool = False) -> None:
        """Start an instance; `is_late`: the partition has been there before, and its earlier rows
        are not posted."""
        try:
            body = new_body(member, self.members, partition, now_ms)
        except DataError as error:  # a parameter of a window that the partition's properties cannot give
            if self.restoring or member.saved is not None:
                return  # it begins with its saved state
            why = error if error.span is None else positioned(error, error.span, member.inner.text)
            raise DataError(f"{member.name}: {why}") from error
        place(body, partition)
        if member.index is not None:
            member.index.enter(body, partition.row)
        if not isinstance(body, Cell):
            self._fill(body, now_ms, is_late=is_late)

    def begin_again(self, member: Member, partition: Partition, now_ms: int) -> None:
        """An instance takes the place of one whose windows did not begin as those of its saved state."""
        self.withdraw(member, partition)
        self.begin(member, partition, now_ms)

    def withdraw(self, member: Member, partition: Partition) -> None:
        """Remove a statement from a partition; it emits nothing."""
        for body in partition.bodies:
            if body.member is member:
                self._forget(body)
        partition.bodies = tuple(body for body in partition.bodies if body.member is not member)

    def _forget(self, body: Body) -> None:
        """Take an instance out of the timers and of the index."""
        self.deadlines.move(body, None)
        if body.member.index is not None:
            body.member.index.leave(body, body.partition.row)

    def _fill(self, body: Body, now_ms: int, *, is_late: bool) -> None:
        """An instance starts from what relations hold, and does what is due at once."""
        member = body.member
        if isinstance(body.instance, DeclaringStatement):
            relation = body.instance.relation
            seen = self.catalog.relations.get(relation.name)
            if isinstance(seen, SpreadRelation):
                seen.indexed(relation)
            relation.bounded.wake = lambda: self.schedule(body)
        if self.restoring or body.partition.id in (member.saved or ()):
            return  # its saved state has seen what relations hold
        if member.inner.relations:
            self.add(body, body.instance.fill(posts=not is_late))
        due_ms = body.instance.next_deadline()
        if due_ms is not None and due_ms <= now_ms:
            self.add(body, body.instance.advance(now_ms))
        self.schedule(body)

    def abandon(self, partition: Partition) -> None:
        """Discard what has begun in a partition: one of its statements cannot."""
        bodies, partition.bodies = partition.bodies, ()
        for body in bodies:
            self._forget(body)

    def stop(self, partition: Partition, now_ms: int) -> None:
        """The statements stop in a partition, in reverse order; each emits what is due at the end."""
        bodies, partition.bodies = partition.bodies, ()
        for body in reversed(bodies):
            member = body.member
            self._forget(body)
            if member.cells is None:
                self.queue.settle()
                self.add(body, body.instance.terminate(now_ms))
                release(body.instance)
            elif member.cells.hears_end:
                self.queue.wait(body, None)

    def settle(self) -> None:
        self.queue.settle()

    # --- events ---------------------------------------------------------------------------------------------

    def give_first(self, partition: Partition, arrival: Arrival) -> None:
        """The event that started a partition, for all statements in it but those that have seen it before, by
        priority."""
        stream, row = arrival.stream, arrival.event.row
        in_batch = stream == self.queue.stream
        if not in_batch:
            self.queue.settle()
        for body in partition.bodies if in_batch else sorted(partition.bodies, key=_rank):
            member = body.member
            if stream not in member.streams or (arrival.has_ended and member.outranks):
                continue
            if in_batch:
                self.queue.wait(body, row)
            else:
                self.queue.out += self.give(member, stream, (body,), (row,), arrival.now_ms)

    def give(
        self, member: Member, stream: str, bodies: Sequence[Any], rows: Sequence[Any], now_ms: int
    ) -> list[Emission]:
        """Pass events to a statement, each with the body that it belongs to; the emissions."""
        if member.cells is not None:
            return self._counted(bodies[0], member.cells.push_cells(bodies, rows, now_ms))
        out: list[Emission] = []
        for body, row in zip(bodies, rows, strict=True):
            out += self._counted(body, body.instance.push(stream, (row,), now_ms))
            self.schedule(body)
        return out

    def _end(self, member: Member, cells: Sequence[Cell], now_ms: int) -> list[Emission]:
        """The partitions of cells end together."""
        assert member.cells is not None
        return self._counted(cells[0], member.cells.end_all(cells, now_ms))

    def feed(self, body: Body, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Pass changes of relations to one instance; the emissions."""
        out = self._counted(body, body.instance.feed(changes, now_ms))
        self.schedule(body)
        return out

    # --- emissions ------------------------------------------------------------------------------------------

    def add(self, body: Body, emissions: list[Emission]) -> None:
        """An instance has emitted something on its own: not for an event."""
        if emissions:
            self.queue.settle()
            self.queue.out += self._counted(body, emissions)

    def _counted(self, body: Body, emissions: list[Emission]) -> list[Emission]:
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
        return emissions

    # --- time -----------------------------------------------------------------------------------------------

    def schedule(self, body: Body) -> None:
        """Note when an instance has something to do next."""
        due_ms = body.next_deadline()
        if due_ms != body.due_ms:
            self.deadlines.move(body, due_ms, body.member.order, body.partition.id)
            self.announce()

    def advance(self, until_ms: int, end_ms: int | None) -> None:
        """Do what is due next of the statements, at `until_ms`; time changes partitions at `end_ms`."""
        body = self.deadlines.pop()
        instance = body.instance
        # Windows that go through instants by themselves do not go beyond the end of the partition.
        if instance.steps_itself and end_ms is not None:
            until_ms = min(until_ms, end_ms)
        self.add(body, instance.advance(until_ms))
        self.schedule(body)


def _rank(body: Body) -> int:
    """The least of the statement that runs first."""
    return -body.member.plan.priority


def place(body: Body, partition: Partition) -> None:
    """Put a body just made at its place in the order of creation, which one that replaces another keeps."""
    bodies, order = partition.bodies, body.member.order
    before = bodies
    if bodies and bodies[-1].member.order > order:
        before = tuple(other for other in bodies if other.member.order < order)
    partition.bodies = (*before, body, *bodies[len(before) :])
