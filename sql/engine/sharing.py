"""Shared windows: rules that would find the same groups for the same events share one set of them.

Tumbling and hopping rules of one stream with equal filter, keys and window are a **party**.
They differ in HAVING, SELECT and ORDER BY, and in their aggregates.
Those of them with the same events in their groups, whatever their aggregates, share groups:
one query holds the groups with the aggregates of all, and each rule shows its own.

    rules       avg(temp)  count(*)  |  max(hum)  |  count(*)
    shared      avg(temp)  count(*)     max(hum)               one group table, one list per argument

The state of a rule is its snapshot, so joining and leaving work on snapshots:

    join    states with the same groups and the same values of common aggregates become
            one that has all aggregates
    leave   a rule goes on with a copy of its part

Rules join when they are deployed, and once per window after that; most often both hold nothing. They part
when an event comes that some of them count and others call an error: those with equal aggregates stay
together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from json import dumps
from math import inf
from typing import Any

from sql.emission import Emission
from sql.engine.query import Running
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.sampled.shared_groups import (
    SHARING_MIN,
    Batch,
    Calls,
    SharedGroups,
    SharingMember,
    columns_of,
    filled,
)
from sql.types import Saved

Defect = Callable[[str, Sequence[Any], int, Exception], list[Emission]]
"""Takes a rule, the events it loses, the instant and what was raised; gives what is said about it."""


class Unit:
    """The state of some rules: the groups, and beside them the values of each aggregate."""

    def __init__(self, members: list[SharingMember], calls: Calls, state: Saved) -> None:
        self.members = members
        frame, columns = columns_of(state, len(calls))
        self.frame = frame
        self.columns = dict(zip(calls, columns, strict=True))
        self.before = members[0].shared

    def took_in(self, other: Unit) -> bool:
        """Add the rules of another unit, if they hold the same. As JSON: 1 is not 1.0."""
        if dumps(self.frame) != dumps(other.frame):
            return False
        common = self.columns.keys() & other.columns.keys()
        if any(dumps(self.columns[call]) != dumps(other.columns[call]) for call in common):
            return False
        self.members += other.members
        self.columns |= other.columns
        self.before = None
        return True

    def shared(self) -> Iterator[SharedGroups]:
        """The rules' shared groups, if there are several rules."""
        if self.before is not None:
            yield self.before
        elif len(self.members) >= SHARING_MIN:
            calls = tuple(self.columns)
            yield SharedGroups(self.members, calls, filled(self.frame, list(self.columns.values())))


class Several(ABC):
    """Rules that share work on one stream: one entry of the filter index."""

    def __init__(self, members: Sequence[tuple[str, Any]], defect: Defect) -> None:
        self.names = tuple(name for name, _ in members)
        self.queries = tuple(query for _, query in members)
        self.plan = self.queries[0].plan
        self.defect = defect

    @abstractmethod
    def pour(self, rows: Sequence[Any], now_ms: int, out: list[Emission]) -> list[str]:
        """Events of one instant for all members; the rules whose deadline has changed."""

    @abstractmethod
    def reconcile(self) -> None:
        """Let the members' own counts include what was done for them."""

    @abstractmethod
    def shares_with(self, name: str) -> list[str]:
        """The rules that share groups with a rule."""


class Party(Several):
    """Rules that may share groups: some of them do, in one set or several, the others are alone."""

    queries: tuple[SampledQuery, ...]

    def __init__(self, members: Sequence[tuple[str, SampledQuery]], defect: Defect) -> None:
        super().__init__(members, defect)
        self.shape = self.queries[0].shape
        self.members = [query.member for query in self.queries]
        self.shared_groups: list[SharedGroups] = [
            *dict.fromkeys(member.shared for member in self.members if member.shared is not None)
        ]
        for shared in self.shared_groups:
            shared.members = [member for member in self.members if member.shared is shared]
        self.alone = [member for member in self.members if member.shared is None]
        self.join_ms: float = -inf
        """When rules that are apart are to be compared again."""
        self.woken: list[str] = []

    def pour(
        self, rows: Sequence[Any], now_ms: int, out: list[Emission], times: Sequence[int] | None = None
    ) -> list[str]:
        """Events for all members, of one instant or with their times; the rules whose
        deadline has changed."""
        batch = Batch(rows, now_ms, times)
        self.woken = []
        for shared in self.shared_groups:
            self.alone += shared.take_leavers()
        if now_ms >= self.join_ms:
            self._join()
        alone = tuple(self.alone)
        for shared in tuple(self.shared_groups):
            self._pour_together(shared, batch, out)
        for member in alone:
            self._pour_alone(member.query, batch, out)
        if self.join_ms == inf and len(self.shared_groups) + len(self.alone) > 1:
            self.join_ms = self._next_join_ms()
        return self.woken

    def reconcile(self) -> None:
        for shared in self.shared_groups:
            shared.reconcile()

    def shares_with(self, name: str) -> list[str]:
        shared = self.members[self.names.index(name)].shared
        names = [] if shared is None else [member.query.name for member in shared.members]
        return [other for other in names if other != name]

    # --- events ---------------------------------------------------------------------------------------------

    def _pour_together(self, shared: SharedGroups, batch: Batch, out: list[Emission]) -> None:
        end_ms = shared.core.next_deadline()
        done = shared.take(batch)
        parts = done < len(batch.rows)
        if shared.has_news or parts:  # those that part show what they found together first
            shared.has_news = False
            for member in shared.members:
                out += member.read_news(shared.now_ms)
        if shared.core.next_deadline() != end_ms or parts:
            self.woken += [member.query.name for member in shared.members]
        if parts:
            self._part(shared, batch.after(done), out)

    def _part(self, shared: SharedGroups, rest: Batch, out: list[Emission]) -> None:
        """The first of these events is an error of some members and none of others."""
        smaller, alone = shared.parted()
        self.shared_groups.remove(shared)
        self.shared_groups += smaller
        self.alone += alone
        self.join_ms = inf
        for part in smaller:
            self._pour_together(part, rest, out)
        for member in alone:
            self._pour_alone(member.query, rest, out)

    def _pour_alone(self, query: Running, batch: Batch, out: list[Emission]) -> None:
        end_ms = query.next_deadline()
        try:
            if batch.times is None:
                out += query.push(query.plan.sources[0].stream, batch.rows, batch.now_ms)
            else:
                out += query.push_timed(query.plan.sources[0].stream, batch.rows, batch.times)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            out += self.defect(query.name, batch.rows, batch.now_ms, error)
        if query.next_deadline() != end_ms:
            self.woken.append(query.name)

    # --- joining --------------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Let those share groups that hold the same."""
        self.reconcile()
        units: list[Unit] = []
        for unit in self._units():
            if not any(known.took_in(unit) for known in units):
                units.append(unit)
        self.shared_groups = [shared for unit in units for shared in unit.shared()]
        self.alone = [member for member in self.members if member.shared is None]
        self.join_ms = inf

    def _units(self) -> Iterator[Unit]:
        for shared in self.shared_groups:
            yield Unit(list(shared.members), shared.calls, shared.core.pack())
        for member in self.alone:
            yield Unit([member], member.calls, member.state())

    def _next_join_ms(self) -> float:
        """When what has come before a rule was deployed is in no window any more."""
        ends = (query.next_deadline() for query in self.queries)
        end_ms = next((end_ms for end_ms in ends if end_ms is not None), None)
        return inf if end_ms is None else end_ms + self.members[0].overlap_ms


def parties(rules: Iterable[tuple[str, Any]], defect: Defect) -> list[Party]:
    """The parties among the rules of a stream, in order."""
    alike: dict[Any, list[tuple[str, SampledQuery]]] = {}
    for name, query in rules:
        if isinstance(query, SampledQuery):
            signature = query.member.signature
            if signature is not None:
                alike.setdefault(signature, []).append((name, query))
    return [Party(members, defect) for members in alike.values() if len(members) >= SHARING_MIN]
