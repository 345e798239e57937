"""Starting and stopping rules: alone, or in the partitions of a context."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from sql.catalog.streams import Catalog, declare_in_context
from sql.compiler.shared_code import Environment
from sql.engine.dispatch import Dispatch
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.query import QueryDecorator, Running, put_back
from sql.engine.start import load, start
from sql.errors import NOWHERE, CorruptState, SqlError
from sql.plan.declared import LookupDeclaration, TableDeclaration, VariableDeclaration, WindowDeclaration
from sql.plan.logical import Plan, UpdateStreamPlan
from sql.plan.lookup_plan import ready_stream

if TYPE_CHECKING:
    from sql.engine.context.host import ContextHost
    from sql.plan.context_plan import ContextPlan


def prepare(plan: Plan) -> None:
    """Import what `Deployment.deploy` needs for a plan; may be called from any thread."""
    if plan.context is not None:
        from sql.engine.context import context_member, host, own_context  # noqa: F401
    load(plan)


class Deployment:
    """Starts and stops what a dispatch feeds."""

    def __init__(self, catalog: Catalog, dispatch: Dispatch, *, by_instants: bool) -> None:
        self.catalog = catalog
        self.dispatch = dispatch
        self.roster = dispatch.roster
        self.timers = dispatch.timers
        self.by_instants = by_instants
        self.contexts: dict[str, ContextHost] = {}

    # --- one rule -------------------------------------------------------------------------------------------

    def deploy(self, plan: Plan, env: Environment, state: dict[str, Any] | None) -> None:
        """Start a rule, or replace it atomically. `state` is a snapshot of a plan that computes the same."""
        if plan.context is not None and plan.timestamp is None:
            self._deploy_in_context(env.name, plan, env.now_ms, state)
        else:
            self._deploy_alone(plan, env, state)
        if plan.insert_into is not None:
            self.catalog.derive(plan.insert_into, plan.output_columns, plan.output_fields)

    def _deploy_alone(self, plan: Plan, env: Environment, state: dict[str, Any] | None) -> None:
        """In event time a rule in a context has the context for itself."""
        with self.catalog.holding({} if state is None else state.get("began", {})):
            if plan.context is None:
                query = start(plan, env, by_instants=self.by_instants)
            else:
                from sql.engine.context.own_context import OwnContext

                query = EventTime(OwnContext(plan, env), env)
        if state is not None:
            put_back(query, state)
        elif plan.relations:
            query.fill()
        self.host(env.name, query, streams_of(env.name, plan), plan.pattern_streams)
        if plan.acts is not None:
            self._declare(env.name, query)

    def begin_again(self, query: Running, state: dict[str, Any]) -> Running:
        """A rule just deployed begins with the values that variables had when that of the saved state did."""
        from sql.engine.statement.statement_core import StatementCore

        inner = query.query if isinstance(query, QueryDecorator) else query
        if not isinstance(inner, StatementCore):
            raise CorruptState(f"the windows of '{query.name}' began with other values of variables")
        with self.catalog.holding(state["began"]):
            found = start(query.plan, inner.env, by_instants=self.by_instants)
        self.roster.replace(query.name, found)
        return found

    def _declare(self, name: str, query: Running) -> None:
        """Make known what a statement declares, or changes before others."""
        acts = query.plan.acts
        if isinstance(acts, WindowDeclaration | TableDeclaration):
            from sql.engine.relations.declaring import DeclaringStatement

            assert isinstance(query, DeclaringStatement)
            self.catalog.relations[acts.name] = query.relation
            query.relation.bounded.wake = lambda: self.timers.schedule(name)
        elif isinstance(acts, LookupDeclaration):
            from sql.engine.lookups.lookup_table import LookupStatement

            assert isinstance(query, LookupStatement)
            self.catalog.lookup_tables[acts.name] = query.table
        elif isinstance(acts, UpdateStreamPlan):
            from sql.engine.relations.update_stream import UpdateStreamStatement

            assert isinstance(query, UpdateStreamStatement)
            self.dispatch.before.add(acts.trigger.stream, query.plan.priority, name, query.change)

    def host(
        self, name: str, query: Running, streams: Iterable[str], pattern_streams: Container[str] = ()
    ) -> None:
        """Run something that behaves like a query, at the place of an earlier version. `pattern_streams`: the
        streams that its patterns read."""
        place = self.roster.order.get(name)
        self.remove(name)
        self.roster.add(name, query, streams, pattern_streams, place)
        self.timers.schedule(name)

    def remove(self, name: str) -> None:
        """Stop a rule; its state is gone. SqlError for a context that rules still use."""
        query = self.roster.queries.get(name)
        if query is None:
            return
        acts = query.plan.acts
        if isinstance(acts, WindowDeclaration | TableDeclaration):
            self.catalog.relations.pop(acts.name, None)
        if isinstance(acts, LookupDeclaration):
            self.catalog.lookup_tables.pop(acts.name, None)
        if isinstance(acts, UpdateStreamPlan):
            self.dispatch.before.remove(name)
        if (member := self.roster.members.get(name)) is not None:
            self._leave(name, member.host)
        if (host := self.roster.hosts.get(name)) is not None:
            _check_unused(host)
            if self.contexts.get(host.context.name) is host:
                del self.contexts[host.context.name], self.catalog.contexts[host.context.name]
        self.roster.drop(name)
        self.timers.remove(name)

    # --- in a context ---------------------------------------------------------------------------------------

    def declare(self, name: str, context: ContextPlan) -> ContextHost:
        """Declare a context; it does nothing until a statement uses it."""
        from sql.engine.context.host import ContextHost

        host = self.contexts[context.name] = ContextHost(name, context, self.catalog)
        self.catalog.contexts[context.name] = context
        self.host(name, host, context.reads, context.reads)
        self.roster.hosts[name] = host
        host.wake = lambda: self.timers.schedule(name)
        return host

    def _deploy_in_context(self, name: str, plan: Plan, now_ms: int, state: dict[str, Any] | None) -> None:
        """Start a statement in the partitions of its context. Rows emitted meanwhile are dropped; with a
        state, which has caused what it inserts already, those too."""
        from sql.engine.context.context_member import join

        assert plan.context is not None
        host = self._host_of(plan.context)
        known = self.roster.members.get(name)
        stays = known is not None and known.host is host
        if not stays:
            self.remove(name)
        begins = not host.life.is_active
        member, emissions = join(host, name, plan, now_ms, state)
        if stays:
            self.roster.replace(name, member)
        else:
            self.host(name, member, ())
        self.roster.members[name] = member
        for stream in member.reads:
            self.roster.read(name, stream, in_pattern=stream in plan.pattern_streams)
        for stream in member.streams:
            if not self._is_own(stream, host):
                self.roster.read(host.name, stream, in_pattern=True)
        self._declare_relations(name, plan, host)
        if state is not None:
            if begins and state.get("context") is not None:
                host.restore(state["context"])
            put_back(member, state)
            self.dispatch.steps.forget()
        else:
            self.dispatch.steps.finish(self.dispatch.collect(emissions), now_ms)
        self.timers.schedule(host.name)

    def _is_own(self, stream: str, host: ContextHost) -> bool:
        """True for a relation of the context itself: its rows are in a partition already."""
        known = self.catalog.streams.get(stream)
        return known is not None and known.context == host.context.name

    def _declare_relations(self, name: str, plan: Plan, host: ContextHost) -> None:
        """Declare the statement's relations and variables in each partition for later statements."""
        acts = plan.acts
        if isinstance(acts, WindowDeclaration | TableDeclaration):
            self.catalog.relations[acts.name] = host.spread(name, acts)
        if isinstance(acts, VariableDeclaration):
            declare_in_context(self.catalog, host.context.name, acts)

    def _host_of(self, context: ContextPlan) -> ContextHost:
        """The host of a context; one made here goes with the last rule that uses it."""
        host = self.contexts.get(context.name)
        if host is None or host.context != context:
            host = self.declare(f"context {context.name} {self.roster.deployed + 1}", context)
            host.is_passing = True
        return host

    def _leave(self, name: str, host: ContextHost) -> None:
        host.remove_member(name)
        self.timers.schedule(host.name)
        if host.is_passing and not host.members:
            self.remove(host.name)


def streams_of(name: str, plan: Plan) -> tuple[str, ...]:
    """The streams whose events the query of a plan takes; `update istream` has those before."""
    if isinstance(plan.acts, UpdateStreamPlan):
        return ()
    waits = plan.lookups and plan.acts is not None
    return (*plan.streams, ready_stream(name)) if waits else plan.streams


def _check_unused(host: ContextHost) -> None:
    """Raise SqlError where statements use a context."""
    if host.members:
        names = ", ".join(f"'{name}'" for name in host.members)
        message = f"context '{host.context.name}' cannot go before the statements that use it: {names}"
        raise SqlError.of("B819", message, NOWHERE)
