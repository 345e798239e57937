"""The engine: hosts running queries, routes events to them and their results to each other. Deterministic;
reads no clock.

    deployment   rules start and stop                  roster   running rules, and readers of each stream
    dispatch     events reach rules, results move on   timers   the deadlines of rules
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sql.algebra.row_blocks import plain
from sql.catalog.streams import Catalog
from sql.compiler.shared_code import Environment
from sql.emission import Emission, Emissions
from sql.engine.deployment import Deployment
from sql.engine.dispatch import Dispatch
from sql.engine.query import Running, put_back
from sql.engine.relations.view import RelationView
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.steps import without
from sql.engine.time_stamps import by_instant
from sql.errors import DataError
from sql.plan.declared import LookupDeclaration, TableDeclaration, WindowDeclaration
from sql.plan.logical import Plan
from sql.plan.options import CatchUp
from sql.rows import MakeRow, Shape, as_it_is
from sql.types import describe, type_of

if TYPE_CHECKING:
    from sql.algebra.context.selectors import Selector
    from sql.engine.context.host import ContextHost
    from sql.engine.questions.demand import Answer
    from sql.engine.questions.question_parameters import Parameters

OVERDUE_MS = 1000
"""A timer later than this has been missed (a pause, a restore, a jump of the clock) and is subject to
`catchUp`."""


class Engine:
    """All running rules. Rules see events in order of deployment; results of `insert into` follow when all
    have seen them."""

    def __init__(self, catalog: Catalog, *, by_instants: bool = False) -> None:
        """`by_instants`: events come with the instants of their arrival (`push_instants`), many at a time."""
        self.catalog = catalog
        self.now_ms: int | None = None
        self.dispatch = Dispatch(catalog)
        self.deployment = Deployment(catalog, self.dispatch, by_instants=by_instants)
        self.roster = self.dispatch.roster
        self.timers = self.dispatch.timers
        self.steps = self.dispatch.steps
        self.queries: dict[str, Running] = self.roster.queries
        """The running rules, by name."""
        self.contexts: dict[str, ContextHost] = self.deployment.contexts
        """The contexts, by name."""
        parts = self.dispatch, self.deployment, self.roster, self.timers, self.steps
        self.common: tuple[object, ...] = (self, catalog, *parts)
        """Shared objects, which no rule's memory figure includes."""
        catalog.watchers.append(self._variable_changed)

    # --- rules ----------------------------------------------------------------------------------------------

    def deploy(
        self,
        name: str,
        plan: Plan,
        now_ms: int,
        state: dict[str, Any] | None = None,
        *,
        shape: Shape = "dict",
        make_row: MakeRow | None = None,
    ) -> None:
        """Start a rule, or replace it atomically. `state`, a snapshot, is kept where its
        plan computes the same."""
        kept = state if state is not None and state.get("fingerprint") == plan.fingerprint else None
        env = Environment(name, self.catalog, now_ms, shape=shape, make_row=make_row or as_it_is)
        self.deployment.deploy(plan, env, kept)
        if plan.context is None or plan.timestamp is None:
            self._reach(now_ms)

    def remove(self, name: str) -> None:
        """Stop a rule; its state and the relation that it declares are gone. SqlError for a context
        that rules still use."""
        query = self.queries.get(name)
        declared = None if query is None else query.plan.acts
        self.deployment.remove(name)
        if isinstance(declared, WindowDeclaration | TableDeclaration | LookupDeclaration):
            self.catalog.streams.pop(declared.name, None)

    # --- events ---------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> Emissions:
        """Events of one stream arrive at `now_ms`, in order; what is due before is done before."""
        dispatch, steps = self.dispatch, self.steps
        out: list[Emission] = []
        if self.now_ms is None or now_ms > self.now_ms:
            deadline = self.timers.next_ms()
            if deadline is not None and deadline <= now_ms:
                out = self.advance(now_ms).parts
            self.now_ms = now_ms
        if stream in dispatch.before:
            if len(rows) > 1 and (self.catalog.variables or self.catalog.relations):
                # The change of an event may read what the events before it have caused.
                return Emissions(
                    [*out, *(post for row in rows for post in self.push(stream, [row], now_ms).parts)]
                )
            rows = dispatch.changed(stream, rows, now_ms, out)
        if dispatch.validators.is_due(stream):
            rows = dispatch.checked(stream, rows, self.roster.readers_of(stream), now_ms, out)
        lane = self.roster.lane(stream) if self.catalog.contexts else None
        if lane is not None:
            out += dispatch.give_lane(lane, rows, now_ms)
        elif not (index := self.roster.index(stream)).order_matters:
            out += dispatch.give_all(index, stream, rows, now_ms)
        else:
            for row in rows:
                dispatch.note_arrival(stream, row, now_ms)
                posted = dispatch.give_all(self.roster.index(stream), stream, [row], now_ms)
                dispatch.join_posts(posted)
                out += steps.finish(posted, now_ms)
            return Emissions(out)
        return Emissions(out if steps.is_idle else out + steps.finish([], now_ms))

    def push_table(self, name: str, table: str, rows: Sequence[Any], now_ms: int) -> Emissions:
        """Rows of a table for one rule alone: each rule reads the files of its tables when it begins."""
        out = self.advance(now_ms).parts if self.now_ms is None or now_ms > self.now_ms else []
        if self.dispatch.validators.is_due(table):
            rows = self.dispatch.checked(table, rows, [name], now_ms, out)
        return Emissions(out + self.steps.finish(self.dispatch.give(name, table, rows, now_ms), now_ms))

    def push_instants(self, stream: str, rows: Sequence[Any], instants: Sequence[int]) -> Emissions:
        """Events with the instants of their arrival, which never decrease: as if each
        were pushed at its own."""
        query = self.roster.only
        if isinstance(query, SampledQuery) and _takes_instants(self, query, stream):
            self._reach(instants[-1])
            found = self.dispatch.bounded(
                query.name, rows, instants[-1], lambda: query.push_timed(stream, rows, instants)
            )
            return Emissions(found)
        if self.dispatch.needs_no_instants(stream, rows):
            return self.push(stream, rows, instants[-1])
        out: list[Emission] = []
        for now_ms, events in by_instant(rows, instants):
            out += self.advance(now_ms, "step").parts
            out += self.push(stream, events, now_ms).parts
        return Emissions(out)

    # --- time -----------------------------------------------------------------------------------------------

    def _reach(self, now_ms: int) -> None:
        self.now_ms = now_ms if self.now_ms is None else max(self.now_ms, now_ms)

    def next_deadline_ms(self) -> int | None:
        """The earliest instant of the processing clock at which a rule has something to do."""
        return self.timers.next_ms()

    def advance(
        self, now_ms: int, catch_up: CatchUp | None = None, *, timers_max: float = math.inf
    ) -> Emissions:
        """Time moves to `now_ms`. step: through every due instant; once: what is due fires
        once, now; skip: unseen.

        Without `catch_up` each rule does what its options say about timers overdue by more than `OVERDUE_MS`;
        what is a little late is always stepped through. Behind the instant at which `timers_max` timers have
        fired the rest stays due, for further calls: no events may come before them.
        """
        out: list[Emission] = []
        while (deadline := self.timers.next_ms()) is not None and deadline <= now_ms:
            if timers_max <= 0:
                return Emissions(out)
            # Rows that left named windows reach their consumers when all that was due is done.
            at = now_ms if self.catalog.relations and catch_up == "once" else deadline
            due = self.timers.due(at)
            timers_max -= len(due)
            out += self._fire(due, deadline, at, now_ms, catch_up)
        self._reach(now_ms)
        return Emissions(out)

    def _fire(
        self, due: Iterable[str], instant: int, at: int, now_ms: int, catch_up: CatchUp | None
    ) -> list[Emission]:
        """The rules that are due at or before `instant`, in this order; what they move on does so `at`."""
        dispatch = self.dispatch
        out: list[Emission] = []
        for name in due:
            query = self.queries[name]
            deadline = query.next_deadline()
            if deadline is None:
                continue  # it was done together with what another rule had to do
            how = catch_up or _how_late(query, now_ms - deadline)
            # Rows that move on enter the next stream at their window's own instant, so each has a turn.
            at_once = how == "skip" or query.plan.insert is None if query.steps_itself else how != "step"
            until_ms = now_ms if at_once else instant
            self._reach(until_ms)
            if query.plan.insert is not None:
                at = max(at, until_ms)
            emissions = dispatch.boundary.call(name, (), now_ms, partial(query.advance, until_ms))
            out += dispatch.collect(query.unseen(emissions) if how == "skip" else emissions)
        dispatch.join_posts(out)
        return out if self.steps.is_idle else self.steps.finish(out, at)

    def flush(self, now_ms: int) -> Emissions:
        """Bounded sources have ended: open windows close at their nominal instants."""
        out: list[Emission] = []
        self.roster.forget_indexes()
        for name, query in list(self.queries.items()):
            out += self.dispatch.collect(query.flush(now_ms))
            self.timers.schedule(name)
        return Emissions(self.steps.finish(out, now_ms))

    # --- variables and relations ----------------------------------------------------------------------------

    def set_variable(self, name: str, value: object) -> None:
        """Set a variable; rules that depend on it are updated. KeyError where there is none; DataError for a
        constant, and for a value of another type."""
        variable = self.catalog.variables[name]
        if variable.constant:
            raise DataError(f"{name} is a constant")
        if not variable.type.accepts(type_of(value)):
            raise DataError(f"variable {name} takes {variable.type.value}, not {describe(value)}")
        self.catalog.assign(name, value)
        self.catalog.end_step()

    def _variable_changed(self, name: str) -> None:
        for rule in self.roster.waiting_for(name):
            self.queries[rule].variable_changed(name, self.now_ms or 0)
            self.timers.schedule(rule)

    def query(
        self,
        text: str,
        now_ms: int | None = None,
        *,
        parameters: Parameters = (),
        read_only: bool = False,
        selector: Selector | None = None,
    ) -> Answer:
        """Answer a query on demand, between two events: SELECT, INSERT, UPDATE or DELETE over relations.

        `parameters`: a value for each `?`, or those of `:name` by name.
        `selector`: the partitions whose rows it covers, of relations that belong to a context; None means
        all. Raises SqlError for an invalid query, DataError if it cannot be carried out; then nothing has
        changed.
        """
        from sql.engine.questions.demand import Answer, ask, chosen

        now_ms = self.now_ms or 0 if now_ms is None else now_ms
        catalog = self.catalog if selector is None else chosen(self.catalog, selector)
        rows = ask(
            text,
            catalog,
            now_ms,
            lambda stream, row: self.steps.forward(stream, [row], "question"),
            parameters=parameters,
            read_only=read_only,
        )
        emissions = [] if self.steps.is_idle else self.steps.finish([], now_ms)
        self.timers.schedule_all()
        return Answer(rows, emissions)

    def relation(self, name: str) -> RelationView:
        """A named window or table, to read. KeyError where there is none."""
        return RelationView(self.catalog.relations[name])

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, name: str, selector: Selector | None = None) -> list[dict[str, Any]]:
        """The rows of a rule's present content; of a rule in a context those of the chosen
        partitions, or of all."""
        query, member = self.queries[name], self.roster.members.get(name)
        if selector is None:
            return without(query.read(self.now_ms or 0), query.plan.states)
        if member is None:
            raise DataError(f"rule '{name}' is in no context, so it has no partitions to choose from")
        return without(member.read(self.now_ms or 0, selector), member.plan.states)

    def partitions(self, context: str, selector: Selector | None = None) -> list[dict[str, Any]]:
        """The live partitions of a context with their built-in properties."""
        host = self.contexts[context]
        return list(host.partitions() if selector is None else host.partitions(selector))

    def counters(self, name: str) -> dict[str, int]:
        """The counters of a rule; `retained` is the number of events that it holds."""
        self.roster.reconcile()
        query = self.queries[name]
        retained = query.retained()
        return query.counters() if retained is None else {**query.counters(), "retained": retained}

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self, name: str) -> dict[str, Any]:
        """A rule's state as plain JSON-able data."""
        self.roster.reconcile()
        return plain(self.queries[name].snapshot())

    def restore(self, name: str, state: dict[str, Any]) -> None:
        """Put a snapshot back into a rule just deployed; CorruptState where it does not fit."""
        self.roster.forget_indexes()
        query = self.queries[name]
        if state.get("began", query.began) != query.began:
            query = self.deployment.begin_again(query, state)
        put_back(query, state)
        self.timers.schedule(name)


def _takes_instants(engine: Engine, query: SampledQuery, stream: str) -> bool:
    """True if a rule takes the events of a stream with their instants, and nothing
    changes these before."""
    dispatch = engine.dispatch
    if query.plan.joins or query.plan.insert is not None:
        return False
    is_alone = query.plan.streams == (stream,) and not engine.catalog.variables
    return is_alone and engine.deployment.by_instants and not dispatch.alters(stream)


def _how_late(query: Running, late_ms: int) -> CatchUp:
    """The handling of a late timer: that of the rule; in event time no window is late, whatever the clock."""
    missed = late_ms > OVERDUE_MS and query.plan.timestamp is None
    return query.plan.options.catch_up if missed else "step"
