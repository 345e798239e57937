"""The way of events to queries, and of their emissions: the boundary of each rule, the step
loop behind all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sql.algebra.event import Delta
from sql.catalog.streams import Catalog
from sql.catalog.validation import Validators
from sql.emission import Emission, Row, joined
from sql.engine.boundary import Boundary
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.filter_index import FilterIndex
from sql.engine.roster import Roster
from sql.engine.steps import Consumer, Steps
from sql.engine.timers import Timers
from sql.rows import as_dict

if TYPE_CHECKING:
    from sql.engine.context.lane import Lane

Change = Callable[[Any, int, list[Emission]], Any]
"""The result of `update istream` for an event at an instant: the same one, another one, or None for one that
is dropped. What the statement emits is added to the list."""


class EventChanges:
    """The changes of `update istream`, by stream, before any query reads its events."""

    def __init__(self, types_of: Callable[[str], Sequence[str]]) -> None:
        """`types_of`: the types of the events of a stream."""
        self.types_of = types_of
        self.by_stream: dict[str, list[tuple[int, str, Change]]] = {}
        """Each with its priority and the name of its statement."""

    def __contains__(self, stream: str) -> bool:
        return any(known in self.by_stream for known in self.types_of(stream)) if self.by_stream else False

    def add(self, stream: str, priority: int, name: str, change: Change) -> None:
        """A statement changes the events of a stream from now on."""
        self.by_stream.setdefault(stream, []).append((priority, name, change))

    def remove(self, statement: str) -> None:
        """A statement changes events no longer."""
        left = {
            stream: [change for change in changes if change[1] != statement]
            for stream, changes in self.by_stream.items()
        }
        self.by_stream = {stream: changes for stream, changes in left.items() if changes}

    def applied(self, stream: str, rows: Sequence[Any], now_ms: int, out: list[Emission]) -> Sequence[Any]:
        """Events as they leave these changes, without those that are dropped."""
        if stream not in self:
            return rows
        found = [change for known in self.types_of(stream) for change in self.by_stream.get(known, ())]
        changes = sorted(found, key=itemgetter(0))  # the highest priority comes last
        left = []
        for row in rows:
            changed = row
            for _, _, change in changes:
                changed = None if changed is None else change(changed, now_ms, out)
            if changed is not None:
                left.append(changed)
        return left


class Dispatch:
    """Feeds the queries of a roster, and names the consumers of each step's changes to the step loop."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.roster = Roster(catalog, self.defect)
        self.timers = Timers(self.roster.queries, self.roster.order)
        self.steps = Steps(self.roster, self)
        self.boundary = Boundary(self.timers, self.defect)
        self.defects = 0
        """Exceptions that no rule should raise."""
        self.on_defect: Callable[[str, Exception], None] = lambda rule, error: None
        """Called for each defect, with its traceback: the owner of the engine can log it."""
        self.validators = Validators(catalog)
        """Validators of the streams whose declared types hold, made at their first event."""
        self.before = EventChanges(catalog.lineage)

    # --- before the queries ---------------------------------------------------------------------------------

    def alters(self, stream: str) -> bool:
        """True if events of a stream are changed or checked before any query reads them."""
        return stream in self.before or self.validators.is_due(stream)

    def changed(self, stream: str, rows: Sequence[Any], now_ms: int, out: list[Emission]) -> Sequence[Any]:
        """Events as `update istream` leaves them."""
        return self.before.applied(stream, rows, now_ms, out)

    def checked(
        self, name: str, rows: Sequence[Any], readers: Iterable[str], now_ms: int, out: list[Emission]
    ) -> Sequence[Any]:
        """The rows that fit the declaration of a stream or table that is to be checked; each rule that reads
        it reports the others."""
        plans = (self.roster.queries[reader].plan for reader in readers)
        good, bad = self.validators.split(name, rows, plans)
        for row, why in bad:
            for reader in readers:
                out += self.roster.queries[reader].reject(row, why, now_ms)
        return good

    def note_arrival(self, stream: str, row: object, now_ms: int) -> None:
        """Filters that read relations see them as they are when the event arrives."""
        if self.roster.arrival_readers:
            for name in self.roster.readers_of(stream):
                if name in self.roster.arrival_readers:
                    for type_ in self.roster.types_read(name, stream):
                        self.roster.queries[name].arriving(type_, row, now_ms)

    def needs_no_instants(self, stream: str, rows: Sequence[Any]) -> bool:
        """True if all rules are in event time and none can report when these events of a stream arrived."""
        queries = self.roster.queries.values()
        if not all(isinstance(query, EventTime) and not _reads_clock(query) for query in queries):
            return False
        if self.alters(stream):
            return False
        readers = (self.roster.queries[name] for name in self.roster.readers_of(stream))
        return all(isinstance(query, EventTime) and query.stage.is_stamped(stream, rows) for query in readers)

    # --- to the queries -------------------------------------------------------------------------------------

    def give_all(self, index: FilterIndex, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events for the rules of their stream that can match them."""
        collect = self.steps.collect if self.roster.moves_rows else None
        return self.boundary.feed(index, stream, rows, now_ms, collect)

    def give_lane(self, lane: Lane, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events for a context and its statements."""
        out = self.boundary.call(lane.host.name, rows, now_ms, lambda: lane.push(rows, now_ms))
        self.timers.suspended.difference_update(lane.names)
        return out

    def give(
        self, name: str, stream: str, rows: Sequence[Any], now_ms: int, *, as_lot: bool = False
    ) -> list[Emission]:
        """Events for one rule, one after the other or as one lot."""
        query = self.roster.queries[name]
        push = query.push_lot if as_lot else query.push
        return self.bounded(name, rows, now_ms, lambda: push(stream, rows, now_ms))

    def bounded(
        self, name: str, rows: Sequence[Any], now_ms: int, act: Callable[[], list[Emission]]
    ) -> list[Emission]:
        """The emissions of a rule that takes events."""
        return self.collect(self.boundary.call(name, rows, now_ms, act))

    def defect(self, name: str, rows: Sequence[Any], now_ms: int, error: Exception) -> list[Emission]:
        """A rule has raised what none should. Its timers rest until events come again, for one that fails
        would be due again at once."""
        self.defects += 1
        self.on_defect(name, error)
        self.timers.suspended.add(name)
        why = f"defect in the engine: {type(error).__name__}: {error}"
        shown = [dict(as_dict(row)) for row in rows]
        return [Emission(name, now_ms, "error", shown, (), why)]

    # --- called by the step loop ----------------------------------------------------------------------------

    def give_changes(self, consumer: Consumer, changes: dict[str, Delta], now_ms: int) -> list[Emission]:
        """The changes of named windows for one of their consumers."""
        name, partition = consumer
        query = self.roster.queries.get(name)
        if query is None:
            return []
        member = self.roster.members.get(name)
        if partition is not None and member is not None:
            return self.bounded(name, (), now_ms, lambda: member.feed_in(partition, changes, now_ms))
        return self.bounded(name, (), now_ms, lambda: query.feed(changes, now_ms))

    def give_entered(
        self, relation: str, row: Row, readers: Iterable[Consumer], now_ms: int
    ) -> list[Emission]:
        """A row inserted into a named window, for the statements whose patterns take it."""
        out: list[Emission] = []
        for name, partition in readers:
            if partition is None:
                out += self.give(name, relation, [row], now_ms)
            else:
                push = partial(self.roster.members[name].push_in, partition, relation, row, now_ms)
                out += self.bounded(name, (row,), now_ms, push)
        self.join_posts(out)
        return out

    def takes_lots(self, stream: str) -> bool:
        """True if rows of one insert into a stream enter some query as one step."""
        return any(self.roster.queries[name].takes_lots for name in self.roster.readers_of(stream))

    def give_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows of one insert, for the stream queries that take them as one step."""
        return self._give_readers(stream, rows, now_ms, as_lot=True)

    def give_row(self, stream: str, row: object, now_ms: int) -> list[Emission]:
        """A row of `insert into`, for the statements of its stream that take rows one by one."""
        self.note_arrival(stream, row, now_ms)
        return self._give_readers(stream, [row], now_ms, as_lot=False)

    def _give_readers(self, stream: str, rows: Sequence[Any], now_ms: int, *, as_lot: bool) -> list[Emission]:
        out: list[Emission] = []
        for name in tuple(self.roster.readers_of(stream)):
            if self.roster.queries[name].takes_lots == as_lot:
                for type_ in self.roster.types_read(name, stream):
                    out += self.give(name, type_, rows, now_ms, as_lot=as_lot)
        return out

    # --- from the queries -----------------------------------------------------------------------------------

    def collect(self, emissions: list[Emission]) -> list[Emission]:
        """Rows of `insert into` are queued for their stream; columns for actions leave the rows."""
        return self.steps.collect(emissions) if self.roster.moves_rows else emissions

    def join_posts(self, out: list[Emission]) -> None:
        """Merge the emissions of a statement in several partitions in one step into one post."""
        if self.catalog.contexts and len(out) > 1:
            out[:] = joined(out, self.roster.members.keys())


def _reads_clock(query: EventTime) -> bool:
    """True if a rule in event time reads the clock, or feeds other rules."""
    if query.plan.insert is not None or query.plan.context is not None:
        return True
    return query.plan.options.idle_timeout_ms is not None or query.plan.options.max_future_ms is not None
