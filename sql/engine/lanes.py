"""Which streams have a lane through a context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sql.engine.roster import Roster

if TYPE_CHECKING:
    from sql.engine.context.lane import Lane, OnDefect


class Lanes:
    """The lanes of the streams that have one."""

    def __init__(self, roster: Roster, on_defect: OnDefect) -> None:
        self.roster = roster
        self.on_defect = on_defect
        self.known: dict[str, Lane | None] = {}
        """By stream, made at the first event after rules have changed."""
        roster.on_change = self.known.clear

    def of(self, stream: str) -> Lane | None:
        """The lane of a stream that only one context and its statements read, if nothing else
        reads their effects."""
        catalog = self.roster.catalog
        if not catalog.contexts or catalog.variables or catalog.relations:
            return None
        if stream not in self.known:
            self.known[stream] = self._new(stream)
        return self.known[stream]

    def _new(self, stream: str) -> Lane | None:
        readers = self.roster.readers_of(stream)
        hosts = [self.roster.hosts[name] for name in readers if name in self.roster.hosts]
        if len(hosts) != 1 or self.roster.arrival_readers or self.roster.moves_rows:
            return None
        from sql.engine.context.lane import Lane

        members = hosts[0].members.values()
        queries = [self.roster.queries[name] for name in readers]
        heard_alone = all(query is hosts[0] or query in members for query in queries)
        is_plain = all(member.inner.acts is None and not member.outranks for member in members)
        return Lane(hosts[0], stream, self.on_defect) if heard_alone and is_plain else None
