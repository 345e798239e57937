"""Shared windows: rules that would find the same groups for the same events share one set of them.

Tumbling and hopping rules of one stream with equal filter, keys and window are a **cohort**.
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

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from json import dumps
from math import inf
from typing import Any

from sql.algebra.event_store import EventStore
from sql.algebra.sample.content import Sample
from sql.algebra.sample.core import Core, CoreCode
from sql.algebra.sample.folding.folded import Folded
from sql.emission import Emission
from sql.engine.families import At
from sql.engine.sampled.sampled_query import Closing, Failure, News, SampledQuery
from sql.engine.sharing import SHARING_MIN, Cohort, Defect
from sql.plan.bound import AggregateCall
from sql.record import replace

Calls = tuple[AggregateCall, ...]


CLOCK_CHANGE_MS = 1_800_000
"""Zones change their clocks by multiples of half an hour."""


class Unsupported(Exception):
    """An event that some rules of the sharing ones cannot take, and others can."""

    def __init__(self, row: object) -> None:
        super().__init__(row)
        self.row = row


class SharedGroups:
    """Rules, and the core that holds their groups."""

    def __init__(self, members: list[SampledQuery], calls: Calls, state: dict[str, Any]) -> None:
        self.members = members
        self.calls = calls
        self.now_ms = members[0].now_ms
        self.is_timed = members[0].code.is_timed
        self.is_uniform = all(member.plan.aggregates == calls for member in members)
        """True if all rules have the same aggregates, so that they cannot disagree about an event."""
        self.core = self._core()
        self.core.unpack(state, EventStore())
        self.events = 0
        """Events since the last settling."""
        self.has_news = False
        self.leavers: list[SampledQuery] = []
        place_of = {call: place for place, call in enumerate(calls)}
        for member in members:
            member.enlist(self, tuple(place_of[call] for call in member.plan.aggregates))

    def _core(self) -> Core:
        """A core that keeps the groups with the aggregates of all."""
        first = self.members[0]
        plan = replace(first.plan, aggregates=self.calls)
        code = CoreCode(first.code.composed(plan))
        return Core(code, self, self.now_ms, see=None, join=None)

    def _publish(self, item: News) -> None:
        self.has_news = True
        for member in self.members:
            member.inbox.append(item)

    # --- called by the core ---------------------------------------------------------------------------------

    def shown(self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int) -> Sequence[Any]:
        """A window has closed; each rule makes its own rows of it."""
        self._publish(Closing(start_ms, end_ms, list(sample)))
        return ()

    def failed(self, row: object, error: BaseException, at_ms: int) -> None:
        """An event failed: for all in filter or key; Unsupported if an aggregate did not take it."""
        code, content = self.core.code, self.core.content
        assert isinstance(content, Folded)
        line = code.line_of(error)
        if not self.is_uniform and (line is None or line > content.common_lines):
            raise Unsupported(row)
        self._publish(Failure(row, error, at_ms, code))

    def done(self) -> None:
        """Whatever was due up to an instant is done."""
        if self.has_news:
            self._publish(None)
            self.has_news = False

    def skipped(self, windows: int) -> None:
        raise AssertionError("rules that show empty windows work alone")

    def take(self, rows: Sequence[Any], at: At) -> int:
        """Gather events; how many, if one of them is not the same to all members. What was due before that
        one is done."""
        if isinstance(at, int) and self.is_timed:
            at = (at,) * len(rows)
        self.now_ms = at if isinstance(at, int) else max(self.now_ms, at[0])
        done = len(rows)
        try:
            self.core.enter(rows, at)
        except Unsupported as unsupported:
            done = next(place for place, row in enumerate(rows) if row is unsupported.row)
        if not isinstance(at, int):
            self.now_ms = max(self.now_ms, at[min(done, len(rows) - 1)])
        self.events += done
        return done

    def reconcile(self) -> None:
        """Let the members' own counts and instants include what the shared query has taken for them."""
        for query in self.members:
            query.counts["events_in"] += self.events
            query.now_ms = query.context.now_ms = max(query.now_ms, self.now_ms)
        self.events = 0

    def shares_with(self, name: str) -> list[str]:
        names = [member.name for member in self.members]
        return [other for other in names if other != name] if name in names else []

    # --- parting --------------------------------------------------------------------------------------------

    def leave(self, member: SampledQuery) -> None:
        """A rule goes on alone, with a copy of its groups."""
        self.reconcile()
        state = self.state_of(member)
        self.members.remove(member)
        self.leavers.append(member)
        member.shared = None
        member.core.unpack(state, EventStore())

    def take_leavers(self) -> list[SampledQuery]:
        leavers, self.leavers = self.leavers, []
        return leavers

    def parted(self) -> tuple[list[SharedGroups], list[SampledQuery]]:
        """Smaller sets of rules with equal aggregates, and the rules that have none like them."""
        alike: dict[Calls, list[SampledQuery]] = {}
        for member in self.members:
            alike.setdefault(member.plan.aggregates, []).append(member)
        self.reconcile()
        alone = [member for members in alike.values() if len(members) < SHARING_MIN for member in members]
        for member in alone:
            self.leave(member)
        return [
            SharedGroups(members, calls, self.state_of(members[0]))
            for calls, members in alike.items()
            if len(members) >= SHARING_MIN
        ], alone

    def state_of(self, member: SampledQuery) -> dict[str, Any]:
        """The state a member would have if it ran alone."""
        frame, columns = columns_of(self.core.pack(), len(self.calls))
        return filled(frame, [columns[place] for place in member.places])


class Unit:
    """The state of some rules: the groups, and beside them the values of each aggregate."""

    def __init__(
        self,
        members: list[SampledQuery],
        calls: Calls,
        state: dict[str, Any],
        shared: SharedGroups | None = None,
    ) -> None:
        """`shared`: that the rules share already."""
        self.members = members
        frame, columns = columns_of(state, len(calls))
        self.frame = frame
        self.columns = dict(zip(calls, columns, strict=True))
        self.before = shared

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


class GroupCohort(Cohort[SampledQuery, SharedGroups]):
    """Rules that may share groups: some of them do, in one set or several, the others are alone."""

    def __init__(self, queries: Sequence[SampledQuery], defect: Defect) -> None:
        super().__init__(queries, defect)
        self.shape = self.queries[0].shape
        shared_now = dict.fromkeys(query.shared for query in self.queries)
        self.shared = [shared for shared in shared_now if isinstance(shared, SharedGroups)]
        for shared in self.shared:
            shared.members = [query for query in self.queries if query.shared is shared]
        self.alone = [query for query in self.queries if query.shared is None]
        self.join_ms: float = -inf
        """When rules that are apart are to be compared again."""

    def push_into(self, stream: str, rows: Sequence[Any], at: At, out: list[Emission]) -> Sequence[str]:
        woken = super().push_into(stream, rows, at, out)
        if self.join_ms == inf and len(self.shared) + len(self.alone) > 1:
            self.join_ms = self._next_join_ms()
        return woken

    def regroup(self, now_ms: int) -> None:
        for shared in self.shared:
            self.alone += shared.take_leavers()
        if now_ms >= self.join_ms:
            self._join()

    # --- events ---------------------------------------------------------------------------------------------

    def push_together(
        self, shared: SharedGroups, stream: str, rows: Sequence[Any], at: At, out: list[Emission]
    ) -> None:
        done = shared.take(rows, at)
        parts = done < len(rows)
        if shared.has_news or parts:  # those that part show what they found together first
            shared.has_news = False
            for member in shared.members:
                out += member.read_news(shared.now_ms)
        if shared.core.has_moved or parts:
            shared.core.has_moved = False
            self.woken += [member.name for member in shared.members]
        if parts:
            self._part(shared, stream, rows[done:], at if isinstance(at, int) else at[done:], out)

    def _part(
        self, shared: SharedGroups, stream: str, rows: Sequence[Any], at: At, out: list[Emission]
    ) -> None:
        """The first of these events is an error of some members and none of others."""
        smaller, alone = shared.parted()
        self.shared.remove(shared)
        self.shared += smaller
        self.alone += alone
        self.join_ms = inf
        for part in smaller:
            self.push_together(part, stream, rows, at, out)
        for query in alone:
            self.push_alone(query, stream, rows, at, out)

    # --- joining --------------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Let those share groups that hold the same."""
        self.reconcile()
        units: list[Unit] = []
        for unit in self._units():
            if not any(known.took_in(unit) for known in units):
                units.append(unit)
        self.shared = [shared for unit in units for shared in unit.shared()]
        self.alone = [query for query in self.queries if query.shared is None]
        self.join_ms = inf

    def _units(self) -> Iterator[Unit]:
        for shared in self.shared:
            yield Unit(list(shared.members), shared.calls, shared.core.pack(), shared)
        for query in self.alone:
            yield Unit([query], query.plan.aggregates, query.state())

    def _next_join_ms(self) -> float:
        """When what has come before a rule was deployed is in no window any more."""
        ends = (query.next_deadline() for query in self.queries)
        end_ms = next((end_ms for end_ms in ends if end_ms is not None), None)
        window = self.queries[0].core.window.plan
        hop_ms = window.hop_ms or window.length_ms
        if end_ms is None:
            return inf
        # Where a clock changes, hops that do not divide the change may be longer: none is taken off then.
        is_even = not window.hop_ms or CLOCK_CHANGE_MS % hop_ms == 0
        return end_ms + max(0, window.length_ms - (hop_ms if is_even else 0))


# --- states -------------------------------------------------------------------------------------------------


Frame = dict[str, Any]
"""A state whose groups have no values."""

Columns = list[list[Any]]
"""By aggregate: its values in all groups of a state, in order."""


def columns_of(state: dict[str, Any], width: int) -> tuple[Frame, Columns]:
    """A state of so many aggregates taken apart: the groups without values, and the values by aggregate."""
    taken: list[list[Any]] = []

    def without(group: Sequence[Any]) -> Sequence[Any]:
        taken.append(group[-1])
        return group[:-1]

    frame = _changed(state, without)
    return frame, [[values[place] for values in taken] for place in range(width)]


def filled(frame: Frame, columns: Columns) -> dict[str, Any]:
    """The state with these groups and values."""
    values = zip(*columns, strict=True) if columns else repeat(())
    return _changed(frame, lambda group: [*group, list(next(values))])


def _changed(state: dict[str, Any], change: Callable[[Sequence[Any]], Sequence[Any]]) -> dict[str, Any]:
    """A state with each of its groups changed, pane by pane."""
    ((key, order, marks, content),) = state["parts"]
    panes = [[*pane[:-1], list(map(change, pane[-1]))] for pane in content.get("panes", ())]
    changed = {**content, **({"panes": panes} if "panes" in content else {})}
    changed["groups"] = list(map(change, content["groups"]))
    return {**state, "parts": [[key, order, marks, changed]]}
