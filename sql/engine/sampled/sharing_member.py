"""A sampled rule among others that keep the same groups: what it holds when it works
alone, and what others found.

While a rule shares groups (`sql.engine.sharing`) its own core is empty: one core keeps the groups of all.
What that finds when a window closes lies in the rule's inbox until the rule's own timer fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sql.algebra.event_store import EventStore
from sql.algebra.sample.core import Core
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
from sql.plan.bound import Bound, Op
from sql.plan.logical import Plan
from sql.types import key_of

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


class SharingRules(Protocol):
    """Rules that share a core, as one of them sees it."""

    core: Core

    def leave(self, member: SharingMember) -> None:
        """The rule goes on alone, with a copy of its groups."""

    def state_of(self, member: SharingMember) -> Any:
        """The state the rule would have if it ran alone."""


class SharingMember:
    """A rule that may share groups with others."""

    def __init__(self, query: SampledState, output: SampleOutput) -> None:
        self.query = query
        self.output = output
        self.shared: SharingRules | None = None
        self.inbox: deque[News] = deque()
        self.places: tuple[int, ...] = ()
        """The places of the rule's aggregates among those of the shared query."""

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

    def join(self, shared: SharingRules, places: tuple[int, ...]) -> None:
        """Hold nothing but what a shared query finds, with the rule's aggregates at these places."""
        self.reset()
        self.shared = shared
        self.places = places
        self.query.common = CommonRows(self.query.of_plan.sampled_rows, places)

    def reset(self) -> None:
        """Hold nothing."""
        self.query.core.begin(self.query.now_ms)

    def hold(self, state: Any) -> None:
        """Replace the content by that of a state."""
        self.query.core.unpack(state, EventStore())

    def state(self) -> Any:
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
