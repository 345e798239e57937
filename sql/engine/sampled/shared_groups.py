"""Groups that several rules share: one query holds them with the aggregates of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from json import dumps
from typing import Any

from sql.algebra.event_store import EventStore
from sql.algebra.sample.content import Sample
from sql.algebra.sample.core import Core, CoreCode
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.sampled.sharing_member import TOLD, Closing, Failure, News, SharingMember
from sql.plan.bound import AggregateCall
from sql.record import Record, replace
from sql.types import Saved

SHARING_MIN = 2
"""The least number of rules that share groups."""

Calls = tuple[AggregateCall, ...]


class Batch(Record):
    """Events of one instant, or with the time of each."""

    rows: Sequence[Any]
    now_ms: int
    times: Sequence[int] | None = None

    def after(self, count: int) -> Batch:
        """The batch without its first events."""
        return Batch(self.rows[count:], self.now_ms, None if self.times is None else self.times[count:])


# --- parties ------------------------------------------------------------------------------------------------


class Unsupported(Exception):
    """An event that some rules of the sharing ones cannot take, and others can."""

    def __init__(self, row: object) -> None:
        super().__init__(row)
        self.row = row


class SharedGroups:
    """Rules, and the query that holds their groups."""

    def __init__(self, members: list[SampledQuery], calls: Calls, state: Saved) -> None:
        self.members = members
        self.calls = calls
        self.now_ms = members[0].now_ms
        self.is_timed = members[0].is_timed
        self.is_uniform = all(query.plan.aggregates == calls for query in members)
        """True if all rules have the same aggregates, so that they cannot disagree about an event."""
        self.core = self._core()
        self.core.unpack(state, EventStore())
        self.events = 0
        """Events since the last settling."""
        self.has_news = False
        self.leavers: list[SampledQuery] = []
        place_of = {call: place for place, call in enumerate(calls)}
        for query in members:
            query.member.join(self, tuple(place_of[call] for call in query.plan.aggregates))

    def _core(self) -> Core:
        """A core that keeps the groups with the aggregates of all."""
        first = self.members[0]
        plan = replace(first.plan, aggregates=self.calls)
        made = first.of_plan.composed(plan)
        return Core(CoreCode(made, first.of_plan.text_functions()), self, self.now_ms, see=None, join=None)

    def _publish(self, item: News) -> None:
        self.has_news = True
        for query in self.members:
            query.member.inbox.append(item)

    # --- called by the core ---------------------------------------------------------------------------------

    def shown(self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int) -> Sequence[Any]:
        """A window has closed; each rule makes its own rows of it."""
        self._publish(Closing(start_ms, end_ms, list(sample)))
        return ()

    def failed(self, row: object, error: BaseException, at_ms: int) -> None:
        """An event failed: for all in filter or key; Unsupported if an aggregate did not take it."""
        code = self.core.code
        line = code.line_of(error)
        if not self.is_uniform and (line is None or line > self.core.composition.common_lines):
            raise Unsupported(row)
        self._publish(Failure(row, error, at_ms, code))

    def done(self) -> None:
        """Whatever was due up to an instant is done."""
        if self.has_news:
            self._publish(TOLD)
            self.has_news = False

    def skipped(self, windows: int) -> None:
        raise AssertionError("rules that show empty windows work alone")

    def admit(self) -> None:
        raise AssertionError("rules that keep their events work alone")

    def is_tight(self, count: int) -> bool:
        return False

    def take(self, batch: Batch) -> int:
        """Gather events; how many, if one of them is not the same to all members. What was due before that
        one is done."""
        rows, times = batch.rows, batch.times
        if times is None and self.is_timed:
            times = (batch.now_ms,) * len(rows)
        self.now_ms = batch.now_ms if times is None else max(self.now_ms, times[0])
        done = len(rows)
        try:
            self.core.enter(rows, batch.now_ms if times is None else times)
        except Unsupported as unsupported:
            done = next(place for place, row in enumerate(rows) if row is unsupported.row)
        if times is not None:
            self.now_ms = max(self.now_ms, times[min(done, len(rows) - 1)])
        self.events += done
        return done

    def reconcile(self) -> None:
        """Let the members' own counts and instants include what the shared query has taken for them."""
        for query in self.members:
            query.counts["events_in"] += self.events
            query.now_ms = query.context.now_ms = max(query.now_ms, self.now_ms)
        self.events = 0

    # --- parting --------------------------------------------------------------------------------------------

    def leave(self, member: SharingMember) -> None:
        """A rule goes on alone, with a copy of its groups."""
        self.reconcile()
        state = self.state_of(member)
        query = next(query for query in self.members if query.member is member)
        self.members.remove(query)
        self.leavers.append(query)
        member.shared = None
        member.hold(state)

    def take_leavers(self) -> list[SampledQuery]:
        """The rules that have left since the last call."""
        leavers, self.leavers = self.leavers, []
        return leavers

    def parted(self) -> tuple[list[SharedGroups], list[SampledQuery]]:
        """Smaller sets of rules with equal aggregates, and the rules that have none like them."""
        alike: dict[Calls, list[SampledQuery]] = {}
        for query in self.members:
            alike.setdefault(query.plan.aggregates, []).append(query)
        for query in tuple(self.members):
            self.leave(query.member)
        smaller = [
            SharedGroups(members, calls, members[0].member.state())
            for calls, members in alike.items()
            if len(members) >= SHARING_MIN
        ]
        return smaller, [query for query in self.take_leavers() if query.member.shared is None]

    def state_of(self, member: SharingMember) -> Any:
        """The state a member would have if it ran alone."""
        frame, columns = columns_of(self.core.pack(), len(self.calls))
        return filled(frame, [columns[place] for place in member.places])


# --- states -------------------------------------------------------------------------------------------------


class Unit:
    """The state of some rules: the groups, and beside them the values of each aggregate."""

    def __init__(self, members: list[SampledQuery], calls: Calls, state: Saved) -> None:
        self.members = members
        frame, columns = columns_of(state, len(calls))
        self.frame = frame
        self.columns = dict(zip(calls, columns, strict=True))
        self.before = shared_of(members[0])

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


Columns = list[list[Any]]
"""By aggregate: its values in all groups of a state, in order."""


def columns_of(state: Saved, width: int) -> tuple[Any, Columns]:
    """A state of so many aggregates taken apart: the groups without values, and the values by aggregate."""
    taken: list[list[Any]] = []

    def without(group: list[Any]) -> list[Any]:
        taken.append(group[-1])
        return group[:-1]

    frame = _changed(state, without)
    return frame, [[values[place] for values in taken] for place in range(width)]


def filled(frame: Any, columns: Columns) -> Any:
    """The state with these groups and values."""
    values = zip(*columns, strict=True) if columns else repeat(())
    return _changed(frame, lambda group: [*group, list(next(values))])


def _changed(state: Saved, change: Callable[[list[Any]], list[Any]]) -> Any:
    """A state with each of its groups changed, pane by pane."""
    ((key, order, marks, content),) = state["parts"]
    panes = [[*pane[:-1], list(map(change, pane[-1]))] for pane in content.get("panes", ())]
    changed = {**content, **({"panes": panes} if "panes" in content else {})}
    changed["groups"] = list(map(change, content["groups"]))
    return {**state, "parts": [[key, order, marks, changed]]}


def shared_of(query: SampledQuery) -> SharedGroups | None:
    found = query.member.shared
    assert found is None or isinstance(found, SharedGroups)
    return found
