"""A context in the engine: it acts on events before its statements see them, and owns the time of all
partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sql.algebra.context.level import Arrival
from sql.algebra.context.level_builder import definitions_of
from sql.algebra.context.lifecycle import Lifecycle
from sql.algebra.context.partition import Partition
from sql.algebra.context.selectors import EVERY, Selector, properties_of
from sql.algebra.event import Delta, Event
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.support import Warnings
from sql.emission import Emission
from sql.engine.context.bodies import Body, Cell
from sql.engine.context.body_timers import BodyTimers
from sql.engine.context.context_member import ContextMember
from sql.engine.context.lane import Lane
from sql.engine.context.new_body import new_body
from sql.engine.context.spread import SpreadRelation
from sql.engine.relations.declaring import TableStatement, WindowStatement
from sql.engine.relations.hosted import Hosted
from sql.engine.steps import moved
from sql.errors import CorruptState
from sql.functions.registry import Context
from sql.plan.context_plan import ContextPlan, OverlappingPlan
from sql.plan.logical import Plan
from sql.plan.relation_plan import TableDeclaration, WindowDeclaration
from sql.rows import as_dict

VERSION = 2
READS = 1, 2
"""The versions whose snapshots can be restored."""


class ContextHost(Hosted):
    """One context with its life cycle and its statements (`Bodies` of the life cycle)."""

    def __init__(self, name: str, context: ContextPlan, catalog: Catalog) -> None:
        super().__init__(name, Plan(context.text, "delta", (), (), context.options, reads=dict(context.reads),
                                    priority=context.priority))  # fmt: skip
        self.context = context
        self.catalog = catalog
        self.clock = Context(zone=context.options.zone_info())
        """The present instant, as the context's conditions read it."""
        self.functions = FunctionSet(catalog, self.clock, Warnings(), text=context.text)
        self.life = Lifecycle(
            definitions_of(context, self.functions, catalog),
            self,
            context.max_partitions,
            oldest_first=context.oldest_first,
        )
        self.overlaps = any(isinstance(level.kind, OverlappingPlan) for level in context.levels)
        self.members: dict[str, ContextMember] = {}
        self.joined = 0
        self.arrival: Arrival | None = None
        """The event the context acted on last: its statements read its partitions."""
        self.out: list[Emission] = []
        self.ended: dict[ContextMember, list[Any]] = {}
        """The cells of partitions that have ended, by statement: their reports are made together."""
        self.timers = BodyTimers()
        self.restoring = False
        self.errors = 0
        self.wake: Callable[[], None] = lambda: None
        """Called when the next deadline has changed while a statement got an event."""
        self.lane: Lane | None = None
        """The batch that is being taken, where statements get the events between two changes of partitions
        together."""
        self.announced: int | None = None
        self.is_passing = False
        """True if it goes with the last statement: it was not declared by one that stays."""

    # --- statements -----------------------------------------------------------------------------------------

    def join(self, name: str, plan: Plan, now_ms: int) -> tuple[ContextMember, list[Emission]]:
        """A statement starts, in every live partition, or takes the place of its earlier version; the first
        one activates the context.
        """
        self.joined += 1
        self.clock.now_ms = now_ms
        known = self.members.get(name)
        if known is not None:
            self._drop(known)
        member = self.members[name] = ContextMember(name, plan, self, known.order if known else self.joined)
        if self.life.is_active:
            for partition in self.life.live:
                self._begin(member, partition, now_ms, is_late=True)
        else:
            self.life.activate(now_ms)
        return member, self.taken()

    def leave(self, name: str) -> None:
        """A statement goes without a word; with the last one all partitions do."""
        member = self.members.pop(name)
        if not self.members:
            self.life.deactivate()
            self.timers.clear()
            return
        self._drop(member)

    def _drop(self, member: ContextMember) -> None:
        """Forget the instances of a statement."""
        for partition in self.life.live:
            partition.bodies = tuple(body for body in partition.bodies if body.member is not member)
        self.timers.drop(member)

    def _begin(
        self, member: ContextMember, partition: Partition, now_ms: int, *, is_late: bool = False
    ) -> None:
        """Start an instance; `is_late`: the partition has been there before, and its earlier rows
        are not posted."""
        body = new_body(member, partition, now_ms)
        partition.bodies += (body,)
        if member.index is not None:
            member.index.add(body)
        if not isinstance(body, Cell):
            self._fill(body, now_ms, is_late=is_late)

    def _fill(self, body: Body, now_ms: int, *, is_late: bool) -> None:
        """An instance starts from what relations hold, and does what is due at once."""
        member = body.member
        acts = member.inner.acts
        declares = isinstance(acts, WindowDeclaration | TableDeclaration)
        seen = self.catalog.relations.get(body.instance.relation.name) if declares else None
        if isinstance(seen, SpreadRelation):
            seen.indexed(body.instance.relation)
        if isinstance(body.instance, TableStatement | WindowStatement):
            body.instance.relation.wake = lambda: self.schedule(body)
        if self.restoring:
            return
        if member.inner.relations:
            self._emit(body, body.instance.fill(posts=not is_late))
        due_ms = body.instance.next_deadline()
        if due_ms is not None and due_ms <= now_ms:
            self._emit(body, body.instance.advance(now_ms))
        self.schedule(body)

    # --- relations ------------------------------------------------------------------------------------------

    def spread(self, name: str, declaration: WindowDeclaration | TableDeclaration) -> SpreadRelation:
        """The relation that a statement declares in each partition, as seen from outside."""
        like = declaration.like if isinstance(declaration, WindowDeclaration) else None

        def parts(selector: Selector) -> list[Any]:
            return [body.instance.relation for body in self.members[name].bodies(selector)]

        def owners(row: object, now_ms: int) -> list[Any]:
            if name not in self.members:
                return []
            if like is None:
                return parts(EVERY)
            arrival = self.route(like, Event(row, now_ms, 0), now_ms)
            reached = [] if arrival is None else arrival.rest()
            return [
                body.instance.relation
                for partition in reached
                for body in partition.bodies
                if body.member.name == name
            ]

        return SpreadRelation(declaration, parts, owners)

    # --- called by the life cycle ---------------------------------------------------------------------------

    def settle(self) -> None:
        """Events that statements have still to get, and reports still to make, come before what changes
        partitions now, or is given out now."""
        if self.lane is not None:
            self.lane.settle()
        ended, self.ended = self.ended, {}
        for member, cells in ended.items():
            assert member.cells is not None
            given = member.cells.report(cells, self.clock.now_ms)
            self._count(cells[0], given)
            self.out += given

    def start(self, partition: Partition, now_ms: int) -> None:
        """A partition has been allocated: each statement begins in it, in order of creation."""
        for member in self.members.values():
            self._begin(member, partition, now_ms)

    def stop(self, partitions: Sequence[Partition], now_ms: int) -> None:
        """Stop the statements of partitions that end, in reverse order; each emits what is due at the end."""
        for partition in partitions:
            bodies, partition.bodies = partition.bodies, ()
            for body in bodies:
                if body.member.index is not None:
                    body.member.index.discard(body)
            if self.lane is not None:
                if self.lane.takes_last(bodies):
                    continue
                self.settle()
            for body in reversed(bodies):
                body.due_ms = None
                if self.lane is None and body.reports_later:
                    self.ended.setdefault(body.member, []).append(body)
                elif given := body.terminate(now_ms):
                    self._emit(body, given)

    def stop_together(self) -> bool:
        return all(member.stops_together() for member in self.members.values())

    # --- driving --------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Act on events; the statements get them afterwards, one event at a time."""
        self.clock.now_ms = now_ms
        for row in rows:
            event = Event(row, now_ms, 0)
            self.arrival = None
            try:
                self.arrival = self.life.arrive(stream, event, now_ms)
            except DATA_ERRORS as error:
                self.fail(event, error, now_ms)
        return self.taken()

    def fail(self, event: Event | None, error: BaseException, now_ms: int) -> None:
        """A condition could not be evaluated, or there are too many partitions: an error of the context,
        and of each of its statements, which the event does not reach."""
        self.errors += 1
        rows = [] if event is None else [dict(as_dict(event.row))]
        why = f"context '{self.context.name}': {self.functions.failure(error)}"
        for member in self.members.values():
            member.counts["errors"] += 1
        own = f"context {self.context.name}" if self.is_passing else self.name
        for name in dict.fromkeys((own, *self.members)):
            self.out.append(Emission(name, now_ms, "error", rows, (), why))

    def route(self, stream: str, event: Event, now_ms: int) -> Arrival | None:
        """The partitions of an event before the context acts on it; None if its evaluation fails
        (reported when the context acts)."""
        self.clock.now_ms = now_ms
        try:
            return self.life.route(stream, event, now_ms)
        except DATA_ERRORS:
            return None

    def give(self, body: Body, stream: str, row: object, now_ms: int) -> list[Emission]:
        """Pass an event to one instance; the emissions."""
        out = body.push(stream, (row,), now_ms)
        if out:
            self._count(body, out)
        self.schedule(body)
        return out

    def feed_body(self, body: Body, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Pass changes of relations to one instance; the emissions."""
        out: list[Emission] = body.instance.feed(changes, now_ms)
        if out:
            self._count(body, out)
        self.schedule(body)
        return out

    def give_first(self, partition: Partition, stream: str, event: Event, now_ms: int) -> None:
        if self.lane is not None and self.lane.takes_first(partition, stream, event):
            return
        self.settle()
        for body in partition.bodies:
            if stream in body.member.streams:
                self.out += self.give(body, stream, event.row, now_ms)

    def give_cells(
        self, member: ContextMember, cells: Sequence[Cell], rows: Sequence[Any], now_ms: int
    ) -> None:
        """Events for a statement with the cells of their partitions."""
        assert member.cells is not None
        out = member.cells.push_cells(cells, rows, now_ms)
        if out:
            self._count(cells[0], out)
            self.out += out

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due: the statements' own timers first, then ends, then starts; by
        due time before that."""
        self.clock.now_ms = now_ms
        while True:
            body_due, life_due = self.timers.next_ms(), self.life.timers.next_ms()
            if body_due is not None and body_due <= now_ms and (life_due is None or body_due <= life_due):
                body = self.timers.pop()
                # Windows that go through instants by themselves do not go beyond the end of the partition.
                until_ms = life_due if body.instance.steps_itself and life_due is not None else now_ms
                self._emit(body, body.instance.advance(min(now_ms, until_ms)))
                self.schedule(body)
            elif life_due is not None and life_due <= now_ms:
                try:
                    self.life.fire(now_ms)
                except DATA_ERRORS as error:
                    self.fail(None, error, now_ms)
            else:
                return self.taken()

    def next_deadline(self) -> int | None:
        due = [due for due in (self.timers.next_ms(), self.life.timers.next_ms()) if due is not None]
        return min(due, default=None)

    def schedule(self, body: Body) -> None:
        """Note when an instance has something to do next."""
        due_ms = body.next_deadline()
        if due_ms == body.due_ms:
            return
        self.timers.move(body, due_ms)
        next_ms = self.next_deadline()
        if next_ms != self.announced:
            self.announced = next_ms
            self.wake()

    def _emit(self, body: Body, emissions: list[Emission]) -> None:
        if emissions:
            self.settle()
            self._count(body, emissions)
            self.out += emissions

    def _count(self, body: Body, emissions: list[Emission]) -> None:
        """Count the emissions of an instance; rows for a relation of its partition are queued for it.

        In a context of overlapping partitions they belong to all of these.
        """
        member = body.member
        for emission in emissions:
            if emission.kind == "error":
                member.counts["errors"] += 1
                continue
            member.counts["rows_out"] += len(emission.inserted)
            if member.fills_own and emission.kind == "rows":
                assert member.inner.insert is not None
                loop = self.catalog.loop if self.overlaps else body.catalog.loop
                loop.forward(member.inner.insert.stream, moved(member.inner, emission), member.name)

    def taken(self) -> list[Emission]:
        """The emissions since the last call."""
        if self.ended:
            self.settle()
        out, self.out = self.out, []
        return out

    # --- looking --------------------------------------------------------------------------------------------

    def partitions(self, selector: Selector = EVERY) -> list[dict[str, Any]]:
        """The live partitions with their built-in properties."""
        found = (item for item in self.life.live if selector.takes(item))
        return [{**properties_of(item), "name": self.context.name} for item in found]

    def counters(self) -> dict[str, int]:
        return {**self.life.counts, "partitions": len(self.life.live), "errors": self.errors}

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        return {"version": VERSION, "now": self.clock.now_ms, "life": self.life.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put the life cycle back; each statement's state is restored after it, by its own name."""
        if snapshot.get("version") not in READS:
            raise CorruptState(f"snapshot version {snapshot.get('version')!r} is none of {READS}")
        self.timers.clear()
        self.restoring = True
        try:
            self.clock.now_ms = snapshot["now"]
            self.life.restore(snapshot["life"], self.clock.now_ms)
        finally:
            self.restoring = False
        for partition in self.life.live:
            for body in partition.bodies:
                self.schedule(body)
