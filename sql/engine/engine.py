"""The engine: hosts running queries, routes events to them and their results to each other. Deterministic; knows no
clock."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from sql.algebra.event import Delta
from sql.catalog.streams import Catalog, Variable
from sql.emission import Emission, joined
from sql.engine.context.host import ContextHost
from sql.engine.context.member import Member
from sql.engine.context.own import OwnContext
from sql.engine.event_time.query import EventTime
from sql.engine.event_time.shared import stage_parties
from sql.engine.filter_index import FilterIndex
from sql.engine.interplay import meet
from sql.engine.relations.declared import TableStatement, WindowStatement
from sql.engine.relations.view import RelationView
from sql.engine.running.sampled import SampledQuery
from sql.engine.sharing import parties
from sql.engine.start import Running, start
from sql.engine.steps import Consumer, Steps, looks
from sql.engine.validation import Validators
from sql.errors import DataError
from sql.plan.logical import Plan
from sql.plan.options import CatchUp
from sql.plan.relations import TableDeclaration, VariableDeclaration, WindowDeclaration
from sql.rows import Shape, as_dict

if TYPE_CHECKING:
    from sql.algebra.context.selectors import Selector
    from sql.engine.relations.demand import Answer
    from sql.plan.contexts import ContextPlan


Change = Callable[[Any], Any]
"""What `update istream` makes of an event: the same one, another one, or None for one that is dropped."""

OVERDUE_MS = 1000
"""A timer later than this has been missed (a pause, a restore, a jump of the clock) and is subject to `catchUp`."""


class Engine:
    """All running rules. Rules see events in order of deployment; results of `insert into` follow when all have seen
    them."""

    def __init__(self, catalog: Catalog, *, by_instants: bool = False) -> None:
        """`by_instants`: events come with the instants of their arrival (`push_instants`), many at a time."""
        self.catalog = catalog
        self.by_instants = by_instants
        catalog.watchers.append(self._variable_changed)
        self.queries: dict[str, Running] = {}
        self.readers: dict[str, list[str]] = {}
        self.contexts: dict[str, ContextHost] = {}
        self.order: dict[str, int] = {}
        self.deployed = 0
        self.defects = 0
        """Exceptions that no rule should raise."""
        self.on_defect: Callable[[str, Exception], None] = lambda rule, error: None
        """Told of each, with its traceback: who owns the engine can log it."""
        self.suspended: set[str] = set()
        """Rules whose timers rest after a defect."""
        self.timers: list[tuple[int, int, str]] = []
        """A heap of (deadline, order of deployment, rule); what no longer holds is dropped when it surfaces."""
        self.now_ms: int | None = None
        self.steps = Steps(self)
        self.lookers: set[str] = set()
        """Statements whose filters read relations: they are evaluated before any statement has acted on the event."""
        self.indexes: dict[str, FilterIndex] = {}
        """By stream, made when events come and gone when rules change."""
        self.order_matters: dict[str, bool] = {}
        """By stream, whether its events must be done one by one; gone when rules change."""
        self.moves_rows: bool | None = None
        """Whether some rule inserts its results into a stream; None: not known since rules have changed."""
        self.validators = Validators(catalog)
        """Of the streams with STRICT_VALIDATION, made at their first event."""
        self.before: dict[str, list[tuple[int, Change]]] = {}
        """`update istream`: what changes, or drops, the events of a stream before anybody sees them, by priority."""

    # --- rules --------------------------------------------------------------------------------------------------------

    def deploy(self, name: str, plan: Plan, now_ms: int, state: dict[str, Any] | None = None, *, shape: Shape = "dict",
               make_row: Callable[[dict[str, Any]], Any] | None = None) -> None:  # fmt: skip
        """Start a rule, or replace it atomically. `state`, a snapshot, is kept where its plan computes the same."""
        kept = state if state is not None and state.get("fingerprint") == plan.fingerprint else None
        if plan.context is not None and plan.timestamp is None:
            self.deploy_in_context(name, plan, now_ms, state=kept)
            return
        if plan.context is not None:
            query: Running = EventTime(OwnContext(name, plan, self.catalog, now_ms), now_ms)  # type: ignore[arg-type]
            if kept is not None:
                query.restore(kept)
            self.host(name, query, plan.streams)
            return
        query = start(name, plan, self.catalog, now_ms, shape=shape, make_row=make_row, by_instants=self.by_instants)
        if kept is not None:
            query.restore(kept)
        elif plan.relations:
            query.fill()
        self.host(name, query, plan.streams)
        if isinstance(query, WindowStatement | TableStatement):
            self.catalog.relations[query.relation.name] = query.relation
        if isinstance(query, TableStatement):
            query.relation.wake = lambda: self._schedule(name)
        self.now_ms = now_ms if self.now_ms is None else max(self.now_ms, now_ms)
        if plan.insert_into is not None:
            self.catalog.derive(plan.insert_into, plan.output_columns)

    def declare(self, name: str, context: ContextPlan) -> None:
        """Declare a context; it does nothing until a statement uses it."""
        self._hosted(name, context)

    def _hosted(self, name: str, context: ContextPlan) -> ContextHost:
        host = self.contexts[context.name] = ContextHost(name, context, self.catalog)
        self.catalog.contexts[context.name] = context
        self.host(name, host, context.reads)
        host.wake = lambda: self._schedule(name)
        return host

    def deploy_in_context(self, name: str, plan: Plan, now_ms: int, state: dict[str, Any] | None = None) -> None:
        """Start a statement in the partitions of its context. What it gives out meanwhile is heard by nobody."""
        assert plan.context is not None
        host = self._host_of(plan.context)
        known = self.queries.get(name)
        if known is not None and (not isinstance(known, Member) or known.host is not host):
            self.remove(name)
        begins = not host.life.is_active
        member, emissions = host.join(name, plan, now_ms)
        if isinstance(known, Member) and known.host is host:
            self._forget_indexes()
            self.queries[name] = member
        else:
            self.host(name, member, ())
        for stream in member.streams:
            self._read(name, stream)
            if stream not in self.catalog.relations:
                self._read(host.name, stream)
        self.now_ms = now_ms if self.now_ms is None else max(self.now_ms, now_ms)
        if plan.insert_into is not None:
            self.catalog.derive(plan.insert_into, plan.output_columns)
        if isinstance(plan.acts, WindowDeclaration | TableDeclaration):
            self.catalog.relations[plan.acts.name] = host.spread(name, plan.acts)
        if isinstance(plan.acts, VariableDeclaration):
            declared = Variable(plan.acts.name, plan.acts.type, plan.acts.value, plan.acts.constant)
            self.catalog.context_variables.setdefault(plan.context.name, {})[plan.acts.name] = declared
        if state is not None:
            if begins and state.get("context") is not None:
                host.restore(state["context"])
            member.restore(state)
        self.steps.finish(self._collect(emissions), now_ms)
        self._schedule(host.name)

    def _host_of(self, context: ContextPlan) -> ContextHost:
        """The host of a context; one made here goes with the last rule that uses it."""
        host = self.contexts.get(context.name)
        if host is None or host.context != context:
            host = self._hosted(f"context {context.name} {self.deployed + 1}", context)
            host.is_passing = True
        return host

    def _read(self, name: str, stream: str) -> None:
        """Make a rule a reader of a stream: those of higher `@Priority` first, then in order of deployment."""
        relation = self.catalog.relations.get(stream)
        if relation is not None and relation.kind == "table" and not isinstance(self.queries[name], TableStatement):
            return  # a table tells nobody; what its source gives is the table's
        names = self.readers.setdefault(stream, [])
        if name not in names:
            insort(names, name, key=self.place)

    def host(self, name: str, query: Running, streams: Iterable[str]) -> None:
        """Run something that behaves like a query."""
        self.remove(name)
        self._forget_indexes()
        self.queries[name] = query
        self.deployed += 1
        self.order[name] = self.deployed
        self._schedule(name)
        if looks(query.plan):
            self.lookers.add(name)
        for stream in streams:
            self._read(name, stream)

    def remove(self, name: str) -> None:
        """Stop a rule; its state is gone. SqlError for a context that rules still use."""
        if name in self.queries:
            self._forget_relation(self.queries[name].plan.acts)
            self._leave_context(name)
            self._forget_indexes()
            del self.queries[name], self.order[name]
            self.suspended.discard(name)
            self.lookers.discard(name)
            for names in self.readers.values():
                if name in names:
                    names.remove(name)

    def _forget_relation(self, acts: Any) -> None:
        if isinstance(acts, WindowDeclaration | TableDeclaration):
            self.catalog.relations.pop(acts.name, None)

    def _leave_context(self, name: str) -> None:
        query = self.queries[name]
        if isinstance(query, Member):
            query.host.leave(name)
            self._schedule(query.host.name)
            if query.host.is_passing and not query.host.members:
                self.remove(query.host.name)
        if isinstance(query, ContextHost):
            query.check_unused()
            if self.contexts.get(query.context.name) is query:
                del self.contexts[query.context.name], self.catalog.contexts[query.context.name]

    def _forget_indexes(self) -> None:
        for index in self.indexes.values():
            index.settle()
        self.indexes.clear()
        self.order_matters.clear()
        self.moves_rows = None

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one stream arrive at `now_ms`, in order; what is due before is done before."""
        out = self.advance(now_ms) if self.now_ms is None or now_ms > self.now_ms else []
        if stream in self.before:
            rows = self._changed(stream, rows)
        names = self.readers.get(stream, ())
        rows = self._checked(stream, rows, names, now_ms, out)
        if len(rows) > 1 and not self._order_matters(stream):
            self._give_all(stream, rows, now_ms, out)
            return out if self.steps.is_idle else out + self.steps.finish([], now_ms)
        for row in rows:
            if self.lookers:
                self._look(stream, row, now_ms)
            posted: list[Emission] = []
            self._give_all(stream, [row], now_ms, posted)
            self._join_posts(posted, 0)
            out += self.steps.finish(posted, now_ms)
        return out

    def push_table(self, name: str, table: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows of a table for one rule alone: each rule reads the files of its tables when it begins."""
        out = self.advance(now_ms) if self.now_ms is None or now_ms > self.now_ms else []
        rows = self._checked(table, rows, [name], now_ms, out)
        return out + self.steps.finish(self._give(name, table, rows, now_ms), now_ms)

    def push_instants(self, stream: str, rows: Sequence[Any], instants: Sequence[int]) -> list[Emission]:
        """Events with the instants of their arrival, which never decrease: as if each were pushed at its own."""
        whole = self._only_reader(stream)
        if whole is not None:
            return self._give_instants(whole, rows, instants)
        if self._hears_no_clock():
            return self.push(stream, rows, instants[-1])
        out: list[Emission] = []
        first = 0
        while first < len(rows):
            now_ms = instants[first]
            last = bisect_right(instants, now_ms, first)
            out += self.advance(now_ms, "step")
            out += self.push(stream, rows[first:last], now_ms)
            first = last
        return out

    def _only_reader(self, stream: str) -> SampledQuery | None:
        """The only rule of the engine, if it takes events with their instants and nothing changes these before."""
        query = next(iter(self.queries.values())) if len(self.queries) == 1 else None
        if not isinstance(query, SampledQuery) or not query.takes_times or query.plan.insert is not None:
            return None
        declared = self.catalog.streams.get(stream)
        is_changed = stream in self.before or (declared is not None and declared.is_strict)
        is_read = query.plan.streams == (stream,) and self.by_instants and not self.catalog.variables
        return query if is_read and not is_changed else None

    def _hears_no_clock(self) -> bool:
        """Whether the only rule is in event time and its stage does not ask the clock."""
        query = next(iter(self.queries.values())) if len(self.queries) == 1 else None
        if not isinstance(query, EventTime) or query.plan.insert is not None or query.plan.context is not None:
            return False
        return query.plan.options.idle_timeout_ms is None and query.plan.options.max_future_ms is None

    def _give_instants(self, query: SampledQuery, rows: Sequence[Any], instants: Sequence[int]) -> list[Emission]:
        try:
            out = query.push_timed(rows, instants)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            return self._defect(query.name, rows, instants[-1], error)
        self.now_ms = instants[-1]
        self._schedule(query.name)
        return out

    def _look(self, stream: str, row: Any, now_ms: int) -> None:
        """Filters that read relations see them as they are when the event arrives."""
        for name in self.readers.get(stream, ()):
            if name in self.lookers:
                self.queries[name].arriving(stream, row, now_ms)

    def _join_posts(self, out: list[Emission], since: int) -> None:
        """What a statement gives out in several partitions in one step is one post."""
        if self.contexts and len(out) > since + 1:
            members = {name for name, query in self.queries.items() if isinstance(query, Member)}
            out[since:] = joined(out[since:], members)

    def _give_all(self, stream: str, rows: Sequence[Any], now_ms: int, out: list[Emission]) -> None:
        """Events for the rules of their stream that can match them."""
        for entry, mine in self._index(stream).route(rows, now_ms, out):
            if entry.pour is None:
                out += self._give(entry.name, stream, mine, now_ms)
                continue
            rested = self.suspended.intersection(entry.names) if self.suspended else ()
            self.suspended.difference_update(rested)
            try:
                woken = entry.pour(mine, now_ms, out) or ()
            except Exception as error:  # noqa: BLE001 - the rule boundary
                for name in entry.names:
                    out += self._defect(name, mine, now_ms, error)
                continue
            for name in (*woken, *rested):
                self._schedule(name)

    def _checked(self, name: str, rows: Sequence[Any], readers: Iterable[str], now_ms: int, out: list[Emission]
                 ) -> Sequence[Any]:  # fmt: skip
        """The rows that fit the stream's declaration; each rule that reads it reports the others."""
        good, bad = self.validators.split(name, rows)
        for row, why in bad:
            for reader in readers:
                out += self.queries[reader].reject(row, why, now_ms)
        return good

    def _give(self, name: str, stream: str, rows: Sequence[Any], now_ms: int, *,
              as_lot: bool = False) -> list[Emission]:  # fmt: skip
        """Events for one rule, one after the other or as one lot."""
        query = self.queries[name]
        try:
            out = query.push_lot(stream, rows, now_ms) if as_lot else query.push(stream, rows, now_ms)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            return self._defect(name, rows, now_ms, error)
        self.suspended.discard(name)
        self._schedule(name)
        return self._collect(out)

    def _defect(self, name: str, rows: Sequence[Any], now_ms: int, error: Exception) -> list[Emission]:
        """The rule boundary: what no rule should raise costs that rule its rows, and no other rule anything.

        Its timers rest until events come again, for one that fails would be due again at once.
        """
        self.defects += 1
        self.on_defect(name, error)
        self.suspended.add(name)
        why = f"defect in the engine: {type(error).__name__}: {error}"
        shown = [dict(as_dict(row)) for row in rows]
        return [Emission(name, now_ms, "error", shown, (), why)]

    def _schedule(self, name: str) -> None:
        """Note when a rule has something to do next."""
        deadline = None if name in self.suspended else self.queries[name].next_deadline()
        if deadline is not None:
            entry = (deadline, self.order[name], name)
            if not self.timers or self.timers[0] != entry:
                heappush(self.timers, entry)

    def _order_matters(self, stream: str) -> bool:
        """Whether the stream's rules can see each other's effects, so that each event must be done before the next."""
        found = self.order_matters.get(stream)
        if found is None:
            queries = [self.queries[name] for name in self.readers.get(stream, ())]
            in_context = any(isinstance(query, ContextHost | Member) for query in queries)
            found = self.order_matters[stream] = in_context or meet([item.plan for item in queries], self.catalog)
        return found

    def _index(self, stream: str) -> FilterIndex:
        """The filter index of a stream, made anew after rules have changed."""
        index = self.indexes.get(stream)
        if index is None:
            rules = [(name, self.queries[name]) for name in self.readers.get(stream, ())]
            index = self.indexes[stream] = FilterIndex(
                rules, [*parties(rules, self._defect), *stage_parties(rules, self._defect)]
            )
        return index

    def change_before(self, stream: str, priority: int, change: Change) -> None:
        """Change the events of a stream before anybody sees them; the change of the highest priority comes last."""
        changes = self.before.setdefault(stream, [])
        changes.append((priority, change))
        changes.sort(key=lambda entry: entry[0])

    def _changed(self, stream: str, rows: Iterable[Any]) -> list[Any]:
        """Events as `update istream` leaves them; those it drops are left out."""
        out = []
        for row in rows:
            changed = row
            for _, change in self.before[stream]:
                changed = None if changed is None else change(changed)
            if changed is not None:
                out.append(changed)
        return out

    # --- what the step loop asks for ----------------------------------------------------------------------------------

    def consumers(self, relation: str) -> Sequence[str]:
        """The statements that a relation tells of its changes."""
        return self.readers.get(relation, ())

    def place(self, name: str) -> tuple[int, int]:
        """Where a statement stands in the order in which statements run: by priority, then by deployment."""
        return -self.queries[name].plan.priority, self.order[name]

    def plan_of(self, name: str) -> Plan | None:
        """The plan of a statement."""
        query = self.queries.get(name)
        return None if query is None else query.plan

    def give_changes(self, consumer: Consumer, changes: dict[str, Delta], now_ms: int) -> list[Emission]:
        """What named windows have changed, for one of their consumers."""
        name, partition = consumer
        query = self.queries.get(name)
        if query is None:
            return []
        try:
            if partition is not None and isinstance(query, Member):
                out = query.feed_in(partition, changes, now_ms)
            else:
                out = query.feed(changes, now_ms)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            return self._defect(name, (), now_ms, error)
        self._schedule(name)
        return self._collect(out)

    def give_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows of one insert, for the stream queries that take them as one step."""
        rows = self._changed(stream, rows) if stream in self.before else rows
        out: list[Emission] = []
        for name in tuple(self.readers.get(stream, ())):
            if self.queries[name].takes_lots:
                out += self._give(name, stream, rows, now_ms, as_lot=True)
        return out

    def give_row(self, stream: str, row: Any, now_ms: int) -> list[Emission]:
        """A row of `insert into`, for the statements of its stream."""
        out: list[Emission] = []
        for changed in self._changed(stream, [row]) if stream in self.before else [row]:
            if self.lookers:
                self._look(stream, changed, now_ms)
            for name in tuple(self.readers.get(stream, ())):
                if not self.queries[name].takes_lots:
                    out += self._give(name, stream, [changed], now_ms)
        return out

    def _collect(self, emissions: list[Emission]) -> list[Emission]:
        """Rows of `insert into` are queued for their stream."""
        if self.moves_rows is None:
            self.moves_rows = any(query.plan.insert is not None for query in self.queries.values())
        return self.steps.collect(emissions) if self.moves_rows else emissions

    def advance(self, now_ms: int, catch_up: CatchUp | None = None) -> list[Emission]:
        """Time moves to `now_ms`. step: through every due instant; once: what is due fires once, now; skip: unseen.

        Without `catch_up` each rule does what its options say about timers overdue by more than `OVERDUE_MS`; what is a
        little late is always stepped through.
        """
        out: list[Emission] = []
        while (deadline := self.next_deadline_ms()) is not None and deadline <= now_ms:
            out += self._fire(deadline, now_ms, catch_up)
        self.now_ms = now_ms if self.now_ms is None else max(self.now_ms, now_ms)
        return out

    def _fire(self, instant: int, now_ms: int, catch_up: CatchUp | None) -> list[Emission]:
        """Every rule with something due at or before `instant`, in order of deployment."""
        out: list[Emission] = []
        # What named windows let go of reaches their consumers when all that was due is done.
        at = until = now_ms if self.catalog.relations and catch_up == "once" else instant
        for name in self._due(until):
            query = self.queries[name]
            deadline = query.next_deadline()
            if deadline is None:
                continue  # it was done together with what another rule had to do
            how = catch_up or self._how_late(query, now_ms - deadline)
            # Rows that move on enter the next stream at their window's own instant, so each has a turn.
            at_once = how == "skip" or query.plan.insert is None if query.steps_itself else how != "step"
            try:
                emissions = query.advance(now_ms if at_once else instant)
            except Exception as error:  # noqa: BLE001 - the rule boundary
                emissions = self._defect(name, (), now_ms, error)
            out += self._collect(query.unseen(emissions) if how == "skip" else emissions)
            self._schedule(name)
        self._join_posts(out, 0)
        return out if self.steps.is_idle else self.steps.finish(out, at)

    @staticmethod
    def _how_late(query: Running, late_ms: int) -> CatchUp:
        """What a rule wants of a timer that is late: in event time no window is, whatever the clock says."""
        missed = late_ms > OVERDUE_MS and query.plan.timestamp is None
        return query.plan.options.catch_up if missed else "step"

    def _due(self, instant: int) -> list[str]:
        """The rules due at or before `instant`, taken from the timers; several instants' in their order."""
        found: dict[str, tuple[int, int]] = {}
        while (deadline := self.next_deadline_ms()) is not None and deadline <= instant:
            first, order, name = heappop(self.timers)
            found.setdefault(name, (first, order))
        return sorted(found, key=found.__getitem__)

    def next_deadline_ms(self) -> int | None:
        """The earliest instant of the processing clock at which a rule has something to do."""
        while self.timers:
            deadline, order, name = self.timers[0]
            if self.order.get(name) == order and self.queries[name].next_deadline() == deadline:
                return deadline
            heappop(self.timers)
        return None

    def flush(self, now_ms: int) -> list[Emission]:
        """Bounded sources have ended: open windows close at their nominal instants."""
        out: list[Emission] = []
        self._forget_indexes()
        for name, query in list(self.queries.items()):
            out += self._collect(query.flush(now_ms))
            self._schedule(name)
        return self.steps.finish(out, now_ms)

    def set_variable(self, name: str, value: Any) -> None:
        """Give a variable a new value; rules that depend on it are told."""
        self.catalog.assign(name, value)
        self.catalog.settle()

    def _variable_changed(self, name: str) -> None:
        for rule, query in self.queries.items():
            query.variable_changed(name)
            self._schedule(rule)

    # --- on demand ----------------------------------------------------------------------------------------------------

    def query(self, text: str, now_ms: int | None = None, *, read_only: bool = False,
              selector: Selector | None = None) -> Answer:  # fmt: skip
        """Answer a question on demand, between two events: SELECT, INSERT, UPDATE or DELETE over relations.

        `selector`: the partitions whose rows are meant, of relations that belong to a context; None means all.
        Raises SqlError where it cannot be asked, DataError where it cannot be done; then nothing has changed.
        """
        from sql.engine.relations.demand import Answer, ask, chosen

        now_ms = self.now_ms or 0 if now_ms is None else now_ms
        catalog = self.catalog if selector is None else chosen(self.catalog, selector)
        rows = ask(text, catalog, now_ms, lambda stream, row: self.steps.forward(stream, [row], "question"),
                   read_only=read_only)  # fmt: skip
        emissions = [] if self.steps.is_idle else self.steps.finish([], now_ms)
        self.reschedule()
        return Answer(rows, emissions)

    def reschedule(self) -> None:
        """Named windows may have other deadlines after a change that no statement made."""
        for name in self.queries:
            self._schedule(name)

    def relation(self, name: str) -> RelationView:
        """A named window or table, to read. KeyError where there is none."""
        return RelationView(self.catalog.relations[name])

    # --- looking ------------------------------------------------------------------------------------------------------

    def read(self, name: str, selector: Selector | None = None) -> list[dict[str, Any]]:
        """The rows of a rule's present content; of a rule in a context those of the chosen partitions, or of all."""
        if selector is None:
            return self.queries[name].read(self.now_ms or 0)
        query = self.queries[name]
        if not isinstance(query, Member):
            raise DataError(f"rule '{name}' is in no context, so it has no partitions to choose from")
        return query.read(self.now_ms or 0, selector)

    def partitions(self, context: str, selector: Selector | None = None) -> list[dict[str, Any]]:
        """The live partitions of a context with their built-in properties."""
        host = self.contexts[context]
        return host.partitions() if selector is None else host.partitions(selector)

    def gathering_with(self, name: str) -> list[str]:
        """The rules whose windows are gathered together with this rule's, at this moment."""
        found = [index.gathering_with(name) for index in self.indexes.values()]
        return sorted({other for names in found for other in names})

    def counters(self, name: str) -> dict[str, int]:
        """What a rule has counted."""
        self._settle()
        return self.queries[name].counters()

    def _settle(self) -> None:
        """Events that the filter index kept away from a rule count as come."""
        for index in self.indexes.values():
            index.settle()

    def snapshot(self, name: str) -> dict[str, Any]:
        """A rule's state as plain JSON-able data."""
        self._settle()
        return self.queries[name].snapshot()

    def restore(self, name: str, state: dict[str, Any]) -> None:
        """Put a snapshot back into a rule just deployed; CorruptState where it does not fit."""
        self._forget_indexes()
        self.queries[name].restore(state)
        self._schedule(name)
