"""Groups that several rules share: one core holds them with the aggregates of all.

While a rule shares groups (`sql.engine.sharing`) its own core is empty. What the shared core finds when a
window closes lies in the rule's inbox until the rule's own timer fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from sql.algebra.event_store import EventStore
from sql.algebra.sample.content import Sample
from sql.algebra.sample.core import Core, CoreCode
from sql.algebra.sample.folding.folded import Folded
from sql.algebra.sample.sampled_rows import CommonRows, Made
from sql.algebra.sample.text import is_numeric
from sql.algebra.sample.windows.tumbling import OnGrid
from sql.algebra.sample.write import asks_the_time, write_each
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.source import Generated, SourceWriter
from sql.emission import Emission
from sql.engine.families import Kin, WindowFamily
from sql.engine.indexable import without_first_condition
from sql.engine.sampled.sample_output import SampleOutput
from sql.engine.sampled.sampled_text import SampledState
from sql.plan.bound import AggregateCall, Bound, Op
from sql.plan.logical import Plan
from sql.record import Record, replace
from sql.types import key_of

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


# --- one rule -----------------------------------------------------------------------------------------------

Pairs = list[tuple[Any, Sequence[Any]]]
"""Each group's first entry and the values of aggregates."""


@dataclass(slots=True)
class Closing:
    """The content of a window [start, end) when it closed: the groups with the aggregates of all."""

    start_ms: int
    end_ms: int
    pairs: Pairs
    picked: dict[tuple[int, ...], Pairs] = field(default_factory=dict)
    made: Made = field(default_factory=dict)

    def of(self, places: tuple[int, ...]) -> Pairs:
        """The groups with the aggregates at these places."""
        found = self.picked.get(places)
        if found is None:
            found = self.picked[places] = [
                (entry, [values[place] for place in places]) for entry, values in self.pairs
            ]
        return found


@dataclass(slots=True)
class Failure:
    """An event that failed in a line of `code` that all rules have in common."""

    row: Any
    error: BaseException
    at_ms: int
    code: Generated


class Told:
    """A mark: from here on the errors of earlier closings may be reported."""


TOLD = Told()

News = Closing | Failure | Told


class SharingMember:
    """A rule that may share groups with others."""

    def __init__(self, query: SampledState, output: SampleOutput) -> None:
        self.query = query
        self.output = output
        self.shared: SharedGroups | None = None
        self.inbox: deque[News] = deque()
        self.places: tuple[int, ...] = ()
        """The places of the rule's aggregates among those of the shared query."""
        self.calls: Calls = query.plan.aggregates

    @property
    def signature(self) -> Any:
        """Equal for rules that find the same groups for the same events;
        None for a rule that always works alone."""
        return self._signature_of(self.query.plan) if self._may_share else None

    @property
    def _may_share(self) -> bool:
        """True if the rule treats an event as any rule with these conditions, keys and window does.

        Aggregates that read more than numbers are not shared, nor expressions that count divisions by zero
        for their rule or read its time.
        """
        plan, made = self.query.plan, self.query.core.composition
        if (
            plan.window is None
            or plan.window.partition_by
            or not plan.emits_as_made
            or plan.options.emit_empty
        ):
            return False
        if not isinstance(made.content, Folded) or not isinstance(made.window, OnGrid):
            return False
        own = plan.analytics or any(map(_is_the_rules_own, made.per_event()))
        return not own and all(map(is_numeric, plan.aggregates))

    def _signature_of(self, plan: Plan) -> Any:
        options, query = plan.options, self.query
        shared = options.zone, options.max_groups, query.shape, query.is_timed
        return (plan.window, plan.where, plan.group_by, *shared)

    def family(self) -> Kin | None:
        """The family of all rules that differ from this one only in the first part of their first condition,
        and in the rows they show."""
        if not self._may_share:
            return None
        plan = without_first_condition(self.query.plan)
        signature = (*self._signature_of(plan), plan.aggregates)
        return Kin(signature, lambda: WindowFamily(self._code_for_each(plan), is_timed=self.query.is_timed))

    def _code_for_each(self, plan: Plan) -> Generated:
        """The loop over the events of rules alike."""
        query = self.query
        functions, writer = query.of_plan.text_functions(), SourceWriter()
        write_each(writer, query.of_plan.composed(plan), functions)
        functions.names.bound |= {"DATA_ERRORS": DATA_ERRORS, "key_of": key_of}
        return Generated(writer, functions.names.bound)

    @property
    def overlap_ms(self) -> int:
        """The time before the end of a window at which the next one starts."""
        window = self.query.core.window.plan
        return max(0, window.length_ms - (window.hop_ms or window.length_ms))

    # --- alone ----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Work alone from now on, with a copy of the shared groups."""
        if self.shared is not None:
            self.shared.leave(self)

    def join(self, shared: SharedGroups, places: tuple[int, ...]) -> None:
        """Hold nothing but what a shared query finds, with the rule's aggregates at these places."""
        self.query.core.begin(self.query.now_ms)
        self.shared = shared
        self.places = places
        self.query.common = CommonRows(self.query.of_plan.sampled_rows, places)

    def state(self) -> dict[str, Any]:
        """The state of the rule, its own or that of the shared groups."""
        return self.query.core.pack() if self.shared is None else self.shared.state_of(self)

    # --- together -------------------------------------------------------------------------------------------

    @property
    def core(self) -> Core:
        """The core that has the rule's groups."""
        return self.query.core if self.shared is None else self.shared.core

    def next_deadline(self) -> int | None:
        """When the rule has something to show next."""
        for item in self.inbox:
            if isinstance(item, Closing):
                return item.end_ms
        return self.core.next_deadline()

    def read_news(self, now_ms: int) -> list[Emission]:
        """The shared query's results for this rule up to now."""
        query = self.query
        query.now_ms = query.context.now_ms = now_ms
        self.read_inbox(now_ms)
        return query.take()

    def read_inbox(self, until_ms: int) -> None:
        """Show the windows that have ended, and report the errors before."""
        query = self.query
        while self.inbox:
            item = self.inbox[0]
            if isinstance(item, Closing):
                if item.end_ms > until_ms:
                    break
                query.context.now_ms = item.end_ms
                self.output.make_rows(
                    item.of(self.places), item.start_ms, item.end_ms, item.end_ms, item.made
                )
            elif isinstance(item, Failure):
                self.output.fail(item.row, item.error, item.at_ms, item.code)
            else:
                self.output.done()
            self.inbox.popleft()


def _is_the_rules_own(expression: Bound) -> bool:
    divides = any(isinstance(node, Op) and node.name in ("/", "%") for node in expression.walk())
    return divides or asks_the_time(expression)


# --- rules together -----------------------------------------------------------------------------------------


class Unsupported(Exception):
    """An event that some rules of the sharing ones cannot take, and others can."""

    def __init__(self, row: object) -> None:
        super().__init__(row)
        self.row = row


class SharedGroups:
    """Rules, and the core that holds their groups."""

    def __init__(self, members: list[SharingMember], calls: Calls, state: dict[str, Any]) -> None:
        self.members = members
        self.calls = calls
        self.now_ms = members[0].query.now_ms
        self.is_timed = members[0].query.is_timed
        self.is_uniform = all(member.calls == calls for member in members)
        """True if all rules have the same aggregates, so that they cannot disagree about an event."""
        self.core = self._core()
        self.core.unpack(state, EventStore())
        self.events = 0
        """Events since the last settling."""
        self.has_news = False
        self.leavers: list[SharingMember] = []
        place_of = {call: place for place, call in enumerate(calls)}
        for member in members:
            member.join(self, tuple(place_of[call] for call in member.calls))

    def _core(self) -> Core:
        """A core that keeps the groups with the aggregates of all."""
        first = self.members[0].query
        plan = replace(first.plan, aggregates=self.calls)
        made = first.of_plan.composed(plan)
        return Core(CoreCode(made, first.of_plan.text_functions()), self, self.now_ms, see=None, join=None)

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
        for query in (member.query for member in self.members):
            query.counts["events_in"] += self.events
            query.now_ms = query.context.now_ms = max(query.now_ms, self.now_ms)
        self.events = 0

    # --- parting --------------------------------------------------------------------------------------------

    def leave(self, member: SharingMember) -> None:
        """A rule goes on alone, with a copy of its groups."""
        self.reconcile()
        state = self.state_of(member)
        self.members.remove(member)
        self.leavers.append(member)
        member.shared = None
        member.query.core.unpack(state, EventStore())

    def take_leavers(self) -> list[SharingMember]:
        """The rules that have left since the last call."""
        leavers, self.leavers = self.leavers, []
        return leavers

    def parted(self) -> tuple[list[SharedGroups], list[SharingMember]]:
        """Smaller sets of rules with equal aggregates, and the rules that have none like them."""
        alike: dict[Calls, list[SharingMember]] = {}
        for member in self.members:
            alike.setdefault(member.calls, []).append(member)
        for member in tuple(self.members):
            self.leave(member)
        smaller = [
            SharedGroups(members, calls, members[0].state())
            for calls, members in alike.items()
            if len(members) >= SHARING_MIN
        ]
        return smaller, [member for member in self.take_leavers() if member.shared is None]

    def state_of(self, member: SharingMember) -> dict[str, Any]:
        """The state a member would have if it ran alone."""
        frame, columns = columns_of(self.core.pack(), len(self.calls))
        return filled(frame, [columns[place] for place in member.places])


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
