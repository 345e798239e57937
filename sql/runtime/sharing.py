"""Shared windows: rules that gather the same events into the same groups do it once.

Tumbling rules of one stream with equal filter, keys, window and aggregates differ in what they make of a group: HAVING,
SELECT, ORDER BY. While their windows began with the same event, one of them gathers for all, into a table that all of
them look at when the window closes. A rule that is deployed in the middle of a window gathers for itself until its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

SHARING_MIN = 2


class Party:
    """Rules that share. Has the `pour` of an entry of the filter index, and tells which rules have new deadlines."""

    def __init__(self, members: Sequence[tuple[str, Any]]) -> None:
        self.members = members
        self.leader = members[0][1]

    def pour(self, rows: Sequence[Any], now_ms: int, out: list[Any]) -> list[str]:
        """Events for all members; the rules whose deadline has changed."""
        leader, stream = self.leader, self.leader.plan.sources[0].stream
        apart = self._join()
        end_ms = leader.end_ms
        leader.failed = []
        out += leader.push(stream, rows, now_ms)
        failed, leader.failed = leader.failed, None
        woken = [self.members[0][0]] if leader.end_ms != end_ms else []
        for name, query in self.members[1:]:
            end_ms = query.end_ms
            if query in apart:
                out += query.push(stream, rows, now_ms)
            else:
                query.follow(leader, len(rows), now_ms)
                if failed:
                    out += query.told(failed, leader)
            if query.end_ms != end_ms:
                woken.append(name)
        return woken

    def _join(self) -> list[Any]:
        """Let every member whose window is as empty as the leader's look at the leader's table; the others."""
        table = self.leader.table
        apart = []
        for _, query in self.members:
            if query.table is not table:
                if query.table.groups or table.groups:
                    apart.append(query)
                else:
                    query.table = table
        return apart


def parties(queries: Iterable[tuple[str, Any]]) -> list[Party]:
    """The parties among the rules of a stream, in order; rules left over are no longer tied to a table of others."""
    alike: dict[Any, list[tuple[str, Any]]] = {}
    alone = []
    for name, query in queries:
        signature = getattr(query, "signature", None)
        if signature is not None and query.plan.insert is None:
            alike.setdefault(signature, []).append((name, query))
        elif signature is not None:
            alone.append([(name, query)])
    found = [Party(members) for members in alike.values() if len(members) >= SHARING_MIN]
    _untie(found, [*alike.values(), *alone])
    return found


def _untie(found: Sequence[Party], alike: Iterable[Sequence[tuple[str, Any]]]) -> None:
    """Give a rule that shares a table with rules outside its party a copy of its own."""
    party_of = {query: party for party in found for _, query in party.members}
    owners: dict[int, Any] = {}
    for members in alike:
        for _, query in members:
            party = party_of.get(query, query)
            if owners.setdefault(id(query.table), party) is not party:
                query.table = query.copied_table()
