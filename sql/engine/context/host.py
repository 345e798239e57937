"""A context in the engine: it acts on events before its statements see them, and owns the time of all
partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sql.algebra.context.context_conditions import ConditionBuilder
from sql.algebra.context.levels import life_of
from sql.algebra.context.partition import Arrival, Partition
from sql.algebra.context.selectors import Selector, every, properties_of
from sql.algebra.event import Event
from sql.algebra.operator import earliest
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.support import Warnings
from sql.emission import Emission
from sql.engine.context.bodies import Member
from sql.engine.context.context_statements import Statements
from sql.engine.context.spread import Part, SpreadRelation
from sql.engine.query import Running, RunningQuery
from sql.engine.relations.declaring import DeclaringStatement
from sql.errors import CorruptState
from sql.functions.definition import Context
from sql.plan.context_plan import ContextPlan, OverlappingPlan
from sql.plan.declared import TableDeclaration, WindowDeclaration
from sql.plan.logical import Plan
from sql.rows import as_dict

VERSION = 2
READS = 1, 2
"""The versions whose snapshots can be restored."""


class ContextHost(RunningQuery, Running):
    """One context, with its life cycle and its statements."""

    def __init__(self, name: str, context: ContextPlan, catalog: Catalog) -> None:
        super().__init__(name, Plan(context.text, "delta", (), (), context.options, reads=dict(context.reads),
                                    priority=context.priority), 0)  # fmt: skip
        self.context = context
        self.catalog = catalog
        self.clock = Context(zone=context.options.zone_info())
        """The present instant, as the context's conditions read it."""
        self.functions = FunctionSet(catalog, self.clock, Warnings(), text=context.text)
        self.statements = Statements(catalog, self.clock, self._announce)
        self.members = self.statements.members
        build = ConditionBuilder(context, self.functions, catalog, self.fail)
        self.life = life_of(context, build, self.statements)
        self.overlaps = any(isinstance(level.kind, OverlappingPlan) for level in context.levels)
        self.joined = 0
        self.arrival: Arrival | None = None
        """The event the context acted on last: its statements read its partitions."""
        self.is_passing = False
        """True if it goes with its last statement: no rule declares it."""
        self.wake: Callable[[], None] = lambda: None
        """Called when the next deadline has changed while a statement got an event."""
        self.announced: int | None = None

    # --- statements -----------------------------------------------------------------------------------------

    def remove_member(self, name: str) -> None:
        """Remove a statement, which emits nothing. With the last one all partitions go."""
        member = self.members.pop(name)
        if not self.members:
            self.life.deactivate()
            self.statements.deadlines.clear()
            return
        self.drop(member)

    def drop(self, member: Member) -> None:
        """Forget the instances of a statement."""
        for partition in self.life.live:
            self.statements.withdraw(member, partition)

    def spread(self, name: str, declaration: WindowDeclaration | TableDeclaration) -> SpreadRelation:
        """The relation that a statement declares in each partition, as seen from outside."""
        like = declaration.like if isinstance(declaration, WindowDeclaration) else None

        def parts(partitions: Iterable[Partition]) -> list[Part]:
            bodies = (
                body for partition in partitions for body in partition.bodies if body.member.name == name
            )
            instances = (body.instance for body in bodies)
            return [item.relation for item in instances if isinstance(item, DeclaringStatement)]

        def chosen(selector: Selector) -> list[Part]:
            return parts(partition for partition in self.life.live if selector(partition))

        def owners(row: object, now_ms: int) -> list[Part]:
            if name not in self.members:
                return []
            if like is None:
                return parts(self.life.live)
            arrival = self.route(like, Event(row, now_ms, 0), now_ms)
            return [] if arrival is None else parts(arrival.rest())

        is_routed = isinstance(declaration, WindowDeclaration) and (like is not None or self.overlaps)
        return SpreadRelation(declaration, chosen, owners, is_routed=is_routed)

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
        return self.statements.queue.take()

    def fail(self, event: Event | None, error: BaseException, now_ms: int) -> None:
        """A condition could not be evaluated, or there are too many partitions: an error of the context,
        and of each of its statements, which the event does not reach."""
        self.counts["errors"] += 1
        rows = [] if event is None else [dict(as_dict(event.row))]
        why = f"context '{self.context.name}': {self.functions.failure(error)}"
        for member in self.members.values():
            member.counts["errors"] += 1
        own = f"context {self.context.name}" if self.is_passing else self.name
        for name in dict.fromkeys((own, *self.members)):
            self.statements.queue.out.append(Emission(name, now_ms, "error", rows, (), why))

    def route(self, stream: str, event: Event, now_ms: int) -> Arrival | None:
        """The partitions of an event before the context acts on it; None if its evaluation fails
        (reported when the context acts)."""
        self.clock.now_ms = now_ms
        try:
            return self.life.route(stream, event, now_ms)
        except DATA_ERRORS:
            return None

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due: the statements' own timers first, then ends, then starts; by
        due time before that."""
        self.clock.now_ms = now_ms
        statements = self.statements
        while True:
            body_due, life_due = statements.deadlines.next_ms(), self.life.deadlines.next_ms()
            if body_due is not None and body_due <= now_ms and (life_due is None or body_due <= life_due):
                statements.advance(now_ms, life_due)
            elif life_due is not None and life_due <= now_ms:
                try:
                    self.life.fire(now_ms)
                except DATA_ERRORS as error:
                    self.fail(None, error, now_ms)
            else:
                return statements.queue.take()

    def next_deadline(self) -> int | None:
        return earliest((self.statements.deadlines.next_ms(), self.life.deadlines.next_ms()))

    def _announce(self) -> None:
        next_ms = self.next_deadline()
        if next_ms != self.announced:
            self.announced = next_ms
            self.wake()

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        """Leave out results that come too late, and count them as skipped, each with its statement."""
        rows = [emission for emission in emissions if emission.kind == "rows"]
        for emission in rows:
            self.members[emission.rule].unseen([emission])
        return [emission for emission in emissions if emission.kind != "rows"]

    # --- looking --------------------------------------------------------------------------------------------

    def partitions(self, selector: Selector = every) -> Iterator[dict[str, Any]]:
        """The live partitions with their built-in properties, the oldest first."""
        found = (item for item in self.life.live if selector(item))
        return ({**properties_of(item), "name": self.context.name} for item in found)

    def counters(self) -> dict[str, int]:
        return {**self.life.counts, "partitions": len(self.life.live), "errors": self.counts["errors"]}

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        return {"version": VERSION, "now": self.clock.now_ms, "life": self.life.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put the life cycle back; each statement's state is restored after it, by its own name."""
        if snapshot.get("version") not in READS:
            raise CorruptState(f"snapshot version {snapshot.get('version')!r} is none of {READS}")
        self.statements.deadlines.clear()
        self.statements.restoring = True
        try:
            self.clock.now_ms = snapshot["now"]
            self.life.restore(snapshot["life"], self.clock.now_ms)
        except DATA_ERRORS as error:
            raise CorruptState(f"a partition cannot begin again: {error}") from error
        finally:
            self.statements.restoring = False
        for partition in self.life.live:
            for body in partition.bodies:
                self.statements.schedule(body)
