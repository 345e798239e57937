"""The running queries of an engine, the streams each reads, and the order in which they take events."""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from sql.catalog.streams import Catalog
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.event_time.shared_stage import StageCohort
from sql.engine.filter_index import FilterIndex
from sql.engine.interplay import interact
from sql.engine.query import Running
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.sampled.shared_groups import GroupCohort
from sql.engine.sharing import Defect, cohorts
from sql.plan.arrival import reads_on_arrival
from sql.plan.declared import LookupDeclaration, TableDeclaration, WindowDeclaration
from sql.plan.logical import Plan
from sql.plan.walk import read_on_change

if TYPE_CHECKING:
    from sql.engine.context.context_member import ContextMember
    from sql.engine.context.host import ContextHost
    from sql.engine.context.lane import Lane


class Roster:
    """The running queries by name, and what follows from which ones run."""

    def __init__(self, catalog: Catalog, on_defect: Defect) -> None:
        """`on_defect` takes what a rule raised while several rules were fed together."""
        self.catalog = catalog
        self.on_defect = on_defect
        self.queries: dict[str, Running] = {}
        self.hosts: dict[str, ContextHost] = {}
        """Those of them that are contexts."""
        self.members: dict[str, ContextMember] = {}
        """Those that run in the partitions of a context."""
        self.readers: dict[str, list[str]] = {}
        """By stream those that take its events, of higher `@Priority` first, then in order of deployment; by
        named window those whose patterns take the rows inserted into it."""
        self.consumers: dict[str, list[str]] = {}
        """By named window those that take its changes, in the same order."""
        self.reads: dict[str, set[str]] = {}
        """By query the streams that it reads."""
        self.order: dict[str, int] = {}
        self.deployed = 0
        self.arrival_readers: set[str] = set()
        """Statements whose filters read relations: they are evaluated before any statement
        has acted on the event."""
        self.indexes: dict[str, FilterIndex] = {}
        """By stream, made when events come and gone when rules change."""
        self.lanes: dict[str, Lane | None] = {}
        """By stream, made at the first event after rules have changed."""
        self._moves_rows: bool | None = None
        self._waiting: dict[str, list[str]] | None = None
        """By variable the queries that wait for a new value of it."""

    def add(
        self,
        name: str,
        query: Running,
        streams: Iterable[str],
        pattern_streams: Container[str] = (),
        place: int | None = None,
    ) -> None:
        """A query starts to run; none of its name does. Its patterns read `pattern_streams`. `place`: that
        in the order of deployment of an earlier version; None: behind all others."""
        self.forget_indexes()
        self.queries[name] = query
        self.reads[name] = set()
        self.deployed += 1
        self.order[name] = place or self.deployed
        if reads_on_arrival(query.plan):
            self.arrival_readers.add(name)
        for stream in streams:
            self.read(name, stream, in_pattern=stream in pattern_streams)

    def replace(self, name: str, query: Running) -> None:
        """A query takes the place of another, with the streams and in the order of that one."""
        self.forget_indexes()
        self.queries[name] = query

    def drop(self, name: str) -> None:
        """A query runs no more."""
        self.forget_indexes()
        del self.queries[name], self.order[name]
        self.hosts.pop(name, None)
        self.members.pop(name, None)
        self.arrival_readers.discard(name)
        for stream in self.reads.pop(name):
            for readers in (self.readers.get(stream, []), self.consumers.get(stream, [])):
                if name in readers:
                    readers.remove(name)

    def read(self, name: str, stream: str, *, in_pattern: bool) -> None:
        """Make a query a reader of a stream, or a consumer of a named window, or both where a pattern is
        beside other sources. `in_pattern`: a pattern reads it."""
        plan = self.queries[name].plan
        acts = plan.acts
        if stream in self.catalog.lookup_tables and not isinstance(acts, LookupDeclaration):
            return  # a table of a store is queried, not read
        relation = self.catalog.relations.get(stream)
        fills = isinstance(acts, TableDeclaration) and name not in self.members
        if relation is not None and relation.kind == "table" and not fills:
            return  # a table posts nothing; the rows of its source enter the table
        if stream in self.reads[name]:
            return
        self.reads[name].add(stream)
        declares = isinstance(acts, WindowDeclaration) and acts.name == stream
        is_window = declares or (relation is not None and relation.kind == "window")
        if in_pattern or not is_window:
            insort(self.readers.setdefault(stream, []), name, key=self.place)
        if is_window and (not in_pattern or stream in plan.relations):
            insort(self.consumers.setdefault(stream, []), name, key=self.place)

    def place(self, name: str) -> tuple[int, int]:
        """The place of a statement in the order in which statements run: by priority, then by deployment."""
        return -self.queries[name].plan.priority, self.order[name]

    def plan_of(self, name: str) -> Plan | None:
        """The plan of a statement."""
        query = self.queries.get(name)
        return None if query is None else query.plan

    def readers_of(self, stream: str) -> Sequence[str]:
        """The queries that take the events of a stream, or the rows inserted into a named window."""
        types = self.catalog.lineage(stream)
        if len(types) == 1:
            return self.readers.get(stream, ())
        found = {name for known in types for name in self.readers.get(known, ())}
        return sorted(found, key=self.place)

    def types_read(self, name: str, stream: str) -> Sequence[str]:
        """The types under which a query takes the events of a stream, which may be of several."""
        types = self.catalog.lineage(stream)
        return types if len(types) == 1 else [known for known in types if known in self.reads[name]]

    def _types_read(self, stream: str) -> dict[str, Sequence[str]]:
        """The types as which queries take the events of a stream that inherits types, by query."""
        inherits = len(self.catalog.lineage(stream)) > 1
        return {name: self.types_read(name, stream) for name in self.readers_of(stream) if inherits}

    def consumers_of(self, relation: str) -> Sequence[str]:
        """The queries that take the changes of a named window."""
        return self.consumers.get(relation, ())

    def waiting_for(self, variable: str) -> Sequence[str]:
        """The queries that a new value of a variable may make do something."""
        if self._waiting is None:
            self._waiting = {}
            for name, query in self.queries.items():
                plan = self.members[name].inner if name in self.members else query.plan
                for read in read_on_change(plan):
                    self._waiting.setdefault(read, []).append(name)
        return self._waiting.get(variable, ())

    @property
    def only(self) -> Running | None:
        """The only query, if there is one."""
        return next(iter(self.queries.values())) if len(self.queries) == 1 else None

    # --- what follows ---------------------------------------------------------------------------------------

    @property
    def moves_rows(self) -> bool:
        """True if the emissions of some query do not leave as they are made."""
        if self._moves_rows is None:
            self._moves_rows = not all(query.plan.emits_as_made for query in self.queries.values())
        return self._moves_rows

    def index(self, stream: str) -> FilterIndex:
        """The filter index of a stream, made anew after queries have changed."""
        index = self.indexes.get(stream)
        if index is None:
            rules, defect = [self.queries[name] for name in self.readers_of(stream)], self.on_defect
            groups = cohorts(rules, SampledQuery, GroupCohort, defect)
            stages = cohorts(rules, EventTime, StageCohort, defect)
            # In event time each rule has a context of its own, which is neither a member nor a host.
            used = {name for name, host in self.hosts.items() if host.members}
            in_context = any(name in self.members or name in used for name in self.readers_of(stream))
            order_matters = in_context or interact([rule.plan for rule in rules], self.catalog)
            types = self._types_read(stream)
            index = FilterIndex(rules, [*groups, *stages], types, order_matters=order_matters)
            self.indexes[stream] = index
        return index

    def lane(self, stream: str) -> Lane | None:
        """The lane of a stream that only one context and its statements read, if nothing else
        reads their effects."""
        if self.catalog.variables or self.catalog.relations:
            return None
        if stream not in self.lanes:
            self.lanes[stream] = self._lane(stream)
        return self.lanes[stream]

    def _lane(self, stream: str) -> Lane | None:
        readers = self.readers_of(stream)
        hosts = [self.hosts[name] for name in readers if name in self.hosts]
        if len(hosts) != 1 or self.arrival_readers or self.moves_rows or self._types_read(stream):
            return None
        from sql.engine.context.lane import Lane

        members = hosts[0].members.values()
        queries = [self.queries[name] for name in readers]
        are_alone = all(query is hosts[0] or query in members for query in queries)
        is_plain = all(member.inner.acts is None and not member.outranks for member in members)
        return Lane(hosts[0], stream, self.on_defect) if are_alone and is_plain else None

    def reconcile(self) -> None:
        """Events that the filter index kept away from a query count as come."""
        for index in self.indexes.values():
            index.reconcile()

    def forget_indexes(self) -> None:
        """Derive again what follows from the queries."""
        self.reconcile()
        self.indexes.clear()
        self.lanes.clear()
        self._moves_rows = self._waiting = None

    def shares_with(self, name: str) -> list[str]:
        """The rules that share groups with this one, at this moment."""
        found = [index.shares_with(name) for index in self.indexes.values()]
        return sorted({other for names in found for other in names})
