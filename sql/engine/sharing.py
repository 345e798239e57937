"""Shared windows: rules that would find the same groups for the same events gather once.

Tumbling and hopping rules of one stream with equal filter, keys and window are a **party**. They differ in HAVING,
SELECT and ORDER BY, and in their aggregates. Those of them that hold the same, whatever aggregates of it, are a
**gathering**: one query, the gatherer, keeps the groups of all with all their aggregates, and each rule shows its own.

    rules       avg(temp)  count(*)  |  max(hum)  |  count(*)
    gatherer    avg(temp)  count(*)     max(hum)               one group table, one list per argument

What a rule holds is what its snapshot says, so joining and leaving is the work of snapshots:

    join    states with the same groups and the same values of common aggregates become one that has all aggregates
    leave   a rule goes on with a copy of its part

Rules join when they are deployed, and once per window after that; most often both hold nothing. They part when an event
comes that some of them count and others call an error: those with equal aggregates stay together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from json import dumps
from math import inf
from typing import Any

from sql.algebra.sample.compose import compose
from sql.algebra.sample.content import Looks
from sql.algebra.sample.core import Core
from sql.algebra.state import EventStore
from sql.emission import Emission
from sql.engine.running.member import TOLD, Closing, Failure, News
from sql.engine.running.sampled import SampledQuery
from sql.plan.bound import AggregateCall

SHARING_MIN = 2

Calls = tuple[AggregateCall, ...]
Defect = Callable[[str, Sequence[Any], int, Exception], list[Emission]]
"""Takes a rule, the events it loses, the instant and what was raised; gives what is said about it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one instant, or with the time of each."""

    rows: Sequence[Any]
    now_ms: int
    times: Sequence[int] | None = None

    def after(self, count: int) -> Batch:
        """The batch without its first events."""
        return Batch(self.rows[count:], self.now_ms, None if self.times is None else self.times[count:])


# --- parties ----------------------------------------------------------------------------------------------------------


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
    def settle(self) -> None:
        """Let the members' own counts include what was done for them."""

    @abstractmethod
    def shares_with(self, name: str) -> list[str]:
        """The rules that a rule gathers together with."""


class Party(Several):
    """Rules that may gather together: some of them do, in one gathering or several, the others are alone."""

    queries: tuple[SampledQuery, ...]

    def __init__(self, members: Sequence[tuple[str, SampledQuery]], defect: Defect) -> None:
        super().__init__(members, defect)
        self.shape = self.queries[0].shape
        self.gatherings: list[Gathering] = [
            *dict.fromkeys(found for query in self.queries if (found := _gathering_of(query)) is not None)
        ]
        for gathering in self.gatherings:
            gathering.members = [query for query in self.queries if query.member.gathering is gathering]
        self.alone = [query for query in self.queries if query.member.gathering is None]
        self.join_ms: float = -inf
        """When rules that are apart are to be compared again."""
        self.woken: list[str] = []

    def pour(self, rows: Sequence[Any], now_ms: int, out: list[Emission], times: Sequence[int] | None = None
             ) -> list[str]:  # fmt: skip
        """Events for all members, of one instant or with their times; the rules whose deadline has changed."""
        batch = Batch(rows, now_ms, times)
        self.woken = []
        for gathering in self.gatherings:
            self.alone += gathering.take_leavers()
        if now_ms >= self.join_ms:
            self._join()
        alone = tuple(self.alone)
        for gathering in tuple(self.gatherings):
            self._pour_together(gathering, batch, out)
        for query in alone:
            self._pour_alone(query, batch, out)
        if self.join_ms == inf and len(self.gatherings) + len(self.alone) > 1:
            self.join_ms = self._next_join_ms()
        return self.woken

    def settle(self) -> None:
        for gathering in self.gatherings:
            gathering.settle()

    def shares_with(self, name: str) -> list[str]:
        gathering = _gathering_of(self.queries[self.names.index(name)])
        return [] if gathering is None else [query.name for query in gathering.members if query.name != name]

    # --- events -------------------------------------------------------------------------------------------------------

    def _pour_together(self, gathering: Gathering, batch: Batch, out: list[Emission]) -> None:
        end_ms = gathering.core.next_deadline()
        done = gathering.take(batch)
        if gathering.has_news:
            gathering.has_news = False
            for query in gathering.members:
                out += query.member.read_news(gathering.now_ms)
        if gathering.core.next_deadline() != end_ms or done < len(batch.rows):
            self.woken += [query.name for query in gathering.members]
        if done < len(batch.rows):
            self._part(gathering, batch.after(done), out)

    def _part(self, gathering: Gathering, rest: Batch, out: list[Emission]) -> None:
        """The first of these events is an error of some members and none of others."""
        smaller, alone = gathering.parted()
        self.gatherings.remove(gathering)
        self.gatherings += smaller
        self.alone += alone
        self.join_ms = inf
        for part in smaller:
            self._pour_together(part, rest, out)
        for query in alone:
            self._pour_alone(query, rest, out)

    def _pour_alone(self, query: SampledQuery, batch: Batch, out: list[Emission]) -> None:
        end_ms = query.next_deadline()
        try:
            if batch.times is None:
                out += query.push(query.plan.sources[0].stream, batch.rows, batch.now_ms)
            else:
                out += query.push_timed(batch.rows, batch.times)
        except Exception as error:  # noqa: BLE001 - the rule boundary
            out += self.defect(query.name, batch.rows, batch.now_ms, error)
        if query.next_deadline() != end_ms:
            self.woken.append(query.name)

    # --- joining ------------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Let those gather together that hold the same."""
        self.settle()
        units: list[Unit] = []
        for unit in self._units():
            if not any(known.took_in(unit) for known in units):
                units.append(unit)
        self.gatherings = [gathering for unit in units for gathering in unit.gathering()]
        self.alone = [query for query in self.queries if query.member.gathering is None]
        self.join_ms = inf

    def _units(self) -> Iterator[Unit]:
        for gathering in self.gatherings:
            yield Unit(list(gathering.members), gathering.calls, gathering.core.pack())
        for query in self.alone:
            yield Unit([query], query.plan.aggregates, query.member.state())

    def _next_join_ms(self) -> float:
        """When what has come before a rule was deployed is in no window any more."""
        ends = (query.next_deadline() for query in self.queries)
        end_ms = next((end_ms for end_ms in ends if end_ms is not None), None)
        return inf if end_ms is None else end_ms + self.queries[0].member.overlap_ms


def parties(rules: Iterable[tuple[str, Any]], defect: Defect) -> list[Party]:
    """The parties among the rules of a stream, in order."""
    alike: dict[Any, list[tuple[str, SampledQuery]]] = {}
    for name, query in rules:
        if isinstance(query, SampledQuery):
            signature = query.member.signature
            if signature is not None:
                alike.setdefault(signature, []).append((name, query))
    return [Party(members, defect) for members in alike.values() if len(members) >= SHARING_MIN]


def _gathering_of(query: SampledQuery) -> Gathering | None:
    found = query.member.gathering
    assert found is None or isinstance(found, Gathering)
    return found


class Odd(Exception):
    """An event that some rules of a gathering cannot take, and others can."""

    def __init__(self, row: Any) -> None:
        super().__init__(row)
        self.row = row


# --- gatherings -------------------------------------------------------------------------------------------------------


class Gathering:
    """Rules, and the query that gathers for them."""

    def __init__(self, members: list[SampledQuery], calls: Calls, state: Any) -> None:
        self.members = members
        self.calls = calls
        self.now_ms = members[0].now_ms
        self.is_uniform = all(query.plan.aggregates == calls for query in members)
        """Whether all rules have the same aggregates, so that they cannot disagree about an event."""
        self.core = self._core()
        self.core.unpack(state, EventStore())
        self.events = 0
        """Events since the last settling."""
        self.has_news = False
        self.leavers: list[SampledQuery] = []
        place_of = {call: place for place, call in enumerate(calls)}
        for query in members:
            query.member.reset()
            query.member.gathering = self
            query.member.places = tuple(place_of[call] for call in query.plan.aggregates)

    def _core(self) -> Core:
        """A core that keeps the groups with the aggregates of all."""
        first = self.members[0]
        plan = replace(first.plan, aggregates=self.calls)
        made = compose(plan, first.catalog, first.shape, first.hits, first.context.zone, first.make_row,
                       is_timed=first.is_timed)  # fmt: skip
        return Core(made, first.text_functions(), self, self.now_ms, see=None, join=None)

    def _publish(self, item: News) -> None:
        self.has_news = True
        for query in self.members:
            query.member.inbox.append(item)

    # --- what the core tells ------------------------------------------------------------------------------------------

    def shown(self, looks: Looks, start_ms: int, end_ms: int, trigger_ms: int) -> Sequence[Any]:
        """A window has closed; each rule makes its own rows of it."""
        self._publish(Closing(start_ms, end_ms, list(looks)))  # type: ignore[arg-type]
        return ()

    def failed(self, row: Any, error: BaseException, at_ms: int) -> None:
        """An event failed: for all in filter or key, which all have in common; Odd if an aggregate did not take it."""
        code = self.core.code
        line = code.line_of(error)
        if not self.is_uniform and (line is None or line > self.core.composition.common_lines):
            raise Odd(row)
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
        """Gather events; how many, if one of them is not the same to all members."""
        done = len(batch.rows)
        try:
            self._take_in(batch)
        except Odd as odd:
            done = next(place for place, row in enumerate(batch.rows) if row is odd.row)
        self.events += done
        return done

    def _take_in(self, batch: Batch) -> None:
        """Odd leaves out that event and those after it."""
        if batch.times is None:
            self.now_ms = batch.now_ms
            self.core.enter(batch.rows, batch.now_ms)
            return
        self.now_ms = max(self.now_ms, batch.times[0])
        self.core.enter(batch.rows, batch.times)
        self.now_ms = max(self.now_ms, batch.times[-1])

    def settle(self) -> None:
        """Let the members' own counts and instants include what was gathered for them."""
        for query in self.members:
            query.counts["events_in"] += self.events
            query.now_ms = query.context.now_ms = max(query.now_ms, self.now_ms)
        self.events = 0

    # --- parting ------------------------------------------------------------------------------------------------------

    def leave(self, query: SampledQuery) -> None:
        """A rule goes on alone, with a copy of what was gathered for it."""
        self.settle()
        state = self.state_of(query)
        self.members.remove(query)
        self.leavers.append(query)
        query.member.gathering = None
        query.member.hold(state)

    def take_leavers(self) -> list[SampledQuery]:
        """The rules that have left since the last call."""
        leavers, self.leavers = self.leavers, []
        return leavers

    def parted(self) -> tuple[list[Gathering], list[SampledQuery]]:
        """Smaller gatherings of rules with equal aggregates, and the rules that have none like them."""
        alike: dict[Calls, list[SampledQuery]] = {}
        for query in self.members:
            alike.setdefault(query.plan.aggregates, []).append(query)
        for query in tuple(self.members):
            self.leave(query)
        smaller = [
            Gathering(members, calls, members[0].member.state())
            for calls, members in alike.items()
            if len(members) >= SHARING_MIN
        ]
        return smaller, [query for query in self.take_leavers() if query.member.gathering is None]

    def state_of(self, query: SampledQuery) -> Any:
        """What a member would hold had it gathered alone."""
        frame, columns = columns_of(self.core.pack(), len(self.calls))
        return filled(frame, [columns[place] for place in query.member.places])


# --- states -----------------------------------------------------------------------------------------------------------


class Unit:
    """What some rules hold: the groups, and beside them the values of each aggregate."""

    def __init__(self, members: list[SampledQuery], calls: Calls, state: Any) -> None:
        self.members = members
        frame, columns = columns_of(state, len(calls))
        self.frame = frame
        self.columns = dict(zip(calls, columns, strict=True))
        self.before = _gathering_of(members[0])

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

    def gathering(self) -> Iterator[Gathering]:
        """The rules' gathering, if they are several."""
        if self.before is not None:
            yield self.before
        elif len(self.members) >= SHARING_MIN:
            calls = tuple(self.columns)
            yield Gathering(self.members, calls, filled(self.frame, list(self.columns.values())))


Columns = list[list[Any]]
"""By aggregate: its values in all groups of a state, in order."""


def columns_of(state: Any, width: int) -> tuple[Any, Columns]:
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


def _changed(state: Any, change: Callable[[list[Any]], list[Any]]) -> Any:
    """A state with each of its groups changed, pane by pane."""
    ((key, order, marks, content),) = state["parts"]
    panes = [[*pane[:-1], list(map(change, pane[-1]))] for pane in content.get("panes", ())]
    changed = {**content, **({"panes": panes} if "panes" in content else {})}
    changed["groups"] = list(map(change, content["groups"]))
    return {**state, "parts": [[key, order, marks, changed]]}
