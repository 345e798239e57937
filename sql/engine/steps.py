"""The step loop: the order in which one event, and all that it causes, is dealt with.

An event, or one instant's timers, is a step:

1. Filters are evaluated as things are when the event arrives;
   then every statement that matches runs, those of a higher priority first.
   Triggers and assignments act at once.
2. Dispatch: what named windows have changed is given to their consumers,
   all pending changes of one consumer merged, until nothing is pending. A statement posts once for all of it.
3. Rows of `insert into` a named window, the front queue, one by one: each is a step of its own.
   The row enters the window, then patterns take it as their event, then the change is dispatched.
   What the event has changed and the first such row changes is dispatched together.
4. Rows for streams, the back queue, one by one, and after each 2 and 3 again: breadth first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Sequence
from typing import Any, Protocol

from sql.algebra.event import Delta, Event
from sql.catalog.step_loop import StepLoop
from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS
from sql.emission import Emission, Row, apart, joined
from sql.plan.logical import Plan

MOVED_MAX = 100_000
"""Rows that may move between streams in one step; more means rules that feed each other."""


Changes = dict[str, tuple[list[Event], list[Event]]]
"""By named window the rows that came and those that left."""

Consumer = tuple[str, int | None]
"""The receiver of changes: a statement; for a relation of a context, its instance in a
partition, by the partition's id."""


class Readers(Protocol):
    """The roster of running statements, as far as the step loop uses it."""

    catalog: Catalog

    def readers_of(self, stream: str) -> Sequence[str]: ...
    def consumers_of(self, relation: str) -> Sequence[str]: ...
    def place(self, name: str) -> tuple[int, int]: ...
    def plan_of(self, name: str) -> Plan | None: ...


class Host(Protocol):
    """The part of the engine that the step loop uses."""

    def give_changes(self, consumer: Consumer, changes: dict[str, Delta], now_ms: int) -> list[Emission]: ...
    def give_entered(
        self, relation: str, row: Row, readers: Iterable[Consumer], now_ms: int
    ) -> list[Emission]: ...
    def changed(
        self, stream: str, rows: Sequence[Any], now_ms: int, out: list[Emission]
    ) -> Sequence[Any]: ...
    def takes_lots(self, stream: str) -> bool: ...
    def give_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]: ...
    def give_row(self, stream: str, row: object, now_ms: int) -> list[Emission]: ...


class Steps(StepLoop):
    """The queues between the statements of an engine. They are empty when a step has ended."""

    def __init__(self, roster: Readers, host: Host) -> None:
        self.roster = roster
        self.host = host
        self.front: deque[tuple[Any, Any, str]] = deque()
        """Rows for relations: the relation, the row, the statement that inserts it."""
        self.back: deque[tuple[str, Sequence[Any], bool]] = deque()
        """Rows for streams: the stream, the rows, whether `update istream` has changed them and the queries
        that take lots have had them."""
        self.pending: dict[Consumer, Changes] = {}
        """Changes by consumer and named window that are not dispatched yet."""
        self.round: dict[Consumer, Changes] = {}
        """Those that are being dispatched, of consumers whose turn has not come."""
        self.listeners: dict[Consumer, None] = {}
        """The statements whose patterns take the row that is entering a named window."""
        self.later: tuple[Consumer, Changes] = (("", None), {})
        """The present consumer, and the changes that it gets after it has computed its rows."""
        roster.catalog.loop = self

    # --- what statements cause ------------------------------------------------------------------------------

    def publish(
        self, relation: Any, delta: Delta, partition: int | None = None, within: Container[str] = ()
    ) -> None:
        """A named window has changed; that of a `partition` concerns statements `within`
        its context there only."""
        for name in self.roster.consumers_of(relation.name):
            consumer = name, partition if name in within else None
            inserted, removed = self.pending.setdefault(consumer, {}).setdefault(relation.name, ([], []))
            inserted += delta.inserted
            removed += delta.removed

    def entered(
        self, relation: Any, row: Any, partition: int | None = None, within: Container[str] = ()
    ) -> None:
        """A row was inserted into a named window, or into that of a `partition`: statements `within` its
        context take the rows of their partition, others each row once."""
        for name in self.roster.readers_of(relation.name):
            self.listeners[name, partition if name in within else None] = None

    def unseen(
        self, statement: str, relation: str, partition: int | None = None
    ) -> tuple[list[Event], list[Event]] | None:
        """The changes of a named window that a statement has not taken yet."""
        if not (self.pending or self.round or self.later[1]):
            return None
        found = [
            changes[relation] for changes in self._waiting((statement, partition)) if relation in changes
        ]
        if len(found) < 2:
            return found[0] if found else None
        return [row for part in found for row in part[0]], [row for part in found for row in part[1]]

    def _waiting(self, consumer: Consumer) -> list[Changes]:
        waiting = [self.round.get(consumer, {}), self.pending.get(consumer, {})]
        return [self.later[1], *waiting] if self.later[0] == consumer else waiting

    def forward(self, stream: str, rows: Sequence[Any], statement: str) -> None:
        """Rows are inserted into a stream or relation."""
        relation = self.roster.catalog.relations.get(stream)
        if relation is not None:
            self.enter(relation, rows, statement)
        elif rows:
            self.back.append((stream, rows, False))

    def enter(self, relation: Any, rows: Sequence[Any], statement: str) -> None:
        """Rows are inserted into a relation."""
        self.front.extend((relation, row, statement) for row in rows)

    def collect(self, emissions: list[Emission]) -> list[Emission]:
        """Queue what the statements that gave these results insert somewhere; what is emitted."""
        out: list[Emission] = []
        for emission in apart(emissions):
            plan = self.roster.plan_of(emission.rule)
            if plan is None or emission.kind != "rows":
                out.append(emission)
                continue
            if plan.states:
                out.append(parted(plan.states, emission))
                continue
            if plan.insert is not None:
                self.forward(plan.insert.stream, moved(plan, emission), emission.rule)
            out += posted(plan, emission)
        return out

    def forget(self) -> None:
        """Drop what is queued: by a statement that begins with a saved state, or by rules in a circle."""
        self.front.clear()
        self.back.clear()
        self.pending.clear()
        self.listeners.clear()

    # --- the loop -------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """True if nothing is left to do in this step."""
        return not (self.pending or self.front or self.back)

    def finish(self, posted: list[Emission], now_ms: int) -> list[Emission]:
        """Do all that the statements of an event, or of an instant's timers, have caused; with what they
        `posted`."""
        out = posted
        if not self.front:
            self._dispatch(out, now_ms)
        self.roster.catalog.end_step()
        moved = 0
        while self.front or self.back:
            moved += 1
            if self.front:
                self._enter(out, now_ms)
            else:
                self._follow(out, now_ms)
            self._dispatch(out, now_ms)
            self.roster.catalog.end_step()
            if moved > MOVED_MAX:
                return [*out, self._stopped(now_ms)]
        return out

    def _stopped(self, now_ms: int) -> Emission:
        stream = self.back[0][0] if self.back else self.front[0][0].name if self.front else "?"
        self.forget()
        why = (
            f"more than {MOVED_MAX} rows moved between streams in one step: rules feed each other in a circle"
        )
        return Emission("engine", now_ms, "error", [], (), f"{why}; the rest, for '{stream}', is dropped")

    def _dispatch(self, out: list[Emission], now_ms: int) -> None:
        """Give consumers what is pending for them, until nothing is. Each posts once."""
        rounds = 0
        posted: list[Emission] = []
        while self.pending:
            rounds += 1
            if rounds > MOVED_MAX:
                posted.append(self._stopped(now_ms))
                break
            self.round, self.pending = self.pending, {}
            for consumer in sorted(self.round, key=self._turn):
                self._give(consumer, self.round.pop(consumer), posted, now_ms)
        out += joined(posted)

    def _turn(self, consumer: Consumer) -> tuple[tuple[int, int], int]:
        """When a consumer has its turn: by priority and deployment, then by partition."""
        name, partition = consumer
        return self.roster.place(name), -1 if partition is None else partition

    def _give(self, consumer: Consumer, changes: Changes, out: list[Emission], now_ms: int) -> None:
        """Let one consumer compute its rows of the changes of its sources, whichever of them came first.

        Its subqueries have the changes before that of its first source, and those of its sources;
        they get the rest afterwards.
        """
        plan = self.roster.plan_of(consumer[0])
        sources = {source.stream for source in plan.sources} if plan is not None else set()
        mine = [relation for relation in changes if relation in sources]
        order = list(changes)
        known = order.index(mine[0]) if mine else len(order)
        self.later = (
            consumer,
            {
                relation: sides
                for place, (relation, sides) in enumerate(changes.items())
                if place > known and relation not in sources
            },
        )
        given = {relation: Delta(*sides) for relation, sides in changes.items()}
        out += self.host.give_changes(consumer, given, now_ms)
        self.later = ("", None), {}

    def _enter(self, out: list[Emission], now_ms: int) -> None:
        """One row of the front queue enters its relation, as `update istream` leaves it; then patterns take
        it."""
        relation, row, statement = self.front.popleft()
        self.listeners.clear()
        try:
            entering = self.host.changed(relation.name, [row], now_ms, out)
            for changed in entering:
                relation.insert(changed, now_ms)
        except DATA_ERRORS as error:
            out.append(Emission(statement, now_ms, "error", [dict(row)], (), str(error)))
            return
        for changed in entering if self.listeners else ():
            whole = {name: changed.get(name) for name in relation.columns}
            readers = sorted(self.listeners, key=self._turn)
            out += self.host.give_entered(relation.name, whole, readers, now_ms)

    def _follow(self, out: list[Emission], now_ms: int) -> None:
        """One row of the back queue enters its stream, as `update istream` leaves it; of a lot all rows enter
        the queries that take lots first."""
        stream, rows, is_changed = self.back.popleft()
        if not is_changed and self.host.takes_lots(stream):
            rows, is_changed = self.host.changed(stream, rows, now_ms, out), True
            out += self.host.give_lot(stream, rows, now_ms)
        if len(rows) > 1:
            self.back.extendleft((stream, (row,), is_changed) for row in reversed(rows[1:]))
        entering = rows[:1] if is_changed else self.host.changed(stream, rows[:1], now_ms, out)
        for row in entering:
            out += self.host.give_row(stream, row, now_ms)


def parted(states: Sequence[str], emission: Emission) -> Emission:
    """The emission with the columns of these names beside its rows."""
    beside = [{name: row[name] for name in states} for row in emission.inserted]
    return Emission(emission.rule, emission.at_ms, "rows", without(emission.inserted, states), states=beside)


def without(rows: Sequence[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows without the columns of these names."""
    if not names:
        return [*rows]
    return [{name: row[name] for name in row if name not in names} for row in rows]


def moved(plan: Plan, emission: Emission) -> Sequence[Any]:
    """The rows of an emission that `insert into` inserts."""
    assert plan.insert is not None
    if plan.insert.selector == "irstream":
        return [*emission.inserted, *emission.removed]
    if plan.insert.selector == "rstream" and plan.selector == "irstream":
        return emission.removed
    return emission.inserted


def posted(plan: Plan, emission: Emission) -> list[Emission]:
    """The rest of an emission once its rows are inserted: the rows that the statement selects."""
    if plan.posts is None:
        return [emission]
    rows = emission.inserted if plan.posts == "istream" else [*emission.removed]
    was_empty = not (emission.inserted or emission.removed)
    return [Emission(emission.rule, emission.at_ms, "rows", rows)] if rows or was_empty else []
