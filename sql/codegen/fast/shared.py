"""Windows that close at the instants of a grid, tumbling and hopping: rules with alike windows may gather together.

While a rule is in a gathering (`sql.runtime.sharing`) its own table is empty; a query of nobody's, the gatherer, keeps
the groups of all. What that finds when the window closes lies in the rule's inbox until the rule's own timer fires.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sql.codegen.fast.grouped import GroupedQuery
from sql.codegen.fast.source import Generated
from sql.plan.bound import AggregateCall
from sql.runtime.emission import Emission
from sql.runtime.state import EventStore

Looks = list[tuple[Any, list[Any]]]
"""Each group's first row and the values of aggregates."""


@dataclass(slots=True)
class Closing:
    """What was in a window [start, end) when it closed: the groups with all aggregates that were gathered."""

    start_ms: int
    end_ms: int
    looks: Looks
    picked: dict[tuple[int, ...], Looks] = field(default_factory=dict)

    def of(self, places: tuple[int, ...]) -> Looks:
        """The groups with the aggregates at these places."""
        found = self.picked.get(places)
        if found is None:
            found = self.picked[places] = [(row, [values[place] for place in places]) for row, values in self.looks]
        return found


@dataclass(slots=True)
class Failure:
    """An event that failed while it was gathered, in a line of `code` that all rules have in common."""

    row: Any
    error: BaseException
    code: Generated


class Told:
    """From here on the errors of the closings before may be told."""


TOLD = Told()


class Odd(Exception):
    """An event that some rules of a gathering cannot take, and others can."""

    def __init__(self, row: Any) -> None:
        super().__init__(row)
        self.row = row


class SharedWindow(GroupedQuery):
    """Base of tumbling and hopping windows."""

    gatherer_class: type[Any]
    """The same window as a gatherer."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.end_ms: int | None = None
        """When the open window closes."""
        self.gathering: Any = None
        self.inbox: deque[Closing | Failure | Told] = deque()
        self.places: tuple[int, ...] = ()
        """Where this rule's aggregates stand among those of the gathering."""

    # --- what may be shared -------------------------------------------------------------------------------------------

    @property
    def signature(self) -> Any:
        """Equal for rules that find the same groups for the same events; None for a rule that always gathers alone.

        Aggregates that look at more than numbers, and loops that count divisions by zero or ask for the rule's
        own context, are not shared.
        """
        words = set(re.findall(r"\w+", self.code.text.partition("def look(")[0]))
        if words & {"warnings", "context"} or not all(map(_is_plain, self.plan.aggregates)):
            return None
        if not issubclass(self.gatherer_class, type(self)):
            return None
        options = self.plan.options
        window = (self.plan.window, self.plan.where, self.plan.group_by)
        return type(self), window, options.zone, options.max_groups, self.shape, self.is_timed

    @property
    def overlap_ms(self) -> int:
        """How long before the end of a window the next one begins."""
        return max(0, self.window.length_ms - (self.window.hop_ms or self.window.length_ms))

    def gatherer(self, calls: tuple[AggregateCall, ...]) -> Any:
        """A gatherer of these aggregates, those of this rule being the first of them."""
        plan = replace(self.plan, aggregates=calls)
        return self.gatherer_class(
            self.name, plan, self.catalog, now_ms=self.now_ms, shape=self.shape, make_row=self.make_row
        )

    @abstractmethod
    def reset(self) -> None:
        """Hold nothing."""

    def leave(self) -> None:
        """Gather alone from now on, with a copy of what was gathered together."""
        if self.gathering is not None:
            self.gathering.leave(self)

    def hold(self, state: Any) -> None:
        """Hold what a state says, and nothing else."""
        self.reset()
        self._put_back(state, EventStore())

    def read_news(self, now_ms: int) -> list[Emission]:
        """What the gathering of events has found for this rule up to now."""
        self.now_ms = self.context.now_ms = now_ms
        self._read_inbox(now_ms)
        return self.take()

    def _read_inbox(self, until_ms: int) -> None:
        while self.inbox:
            item = self.inbox[0]
            if isinstance(item, Closing):
                if item.end_ms > until_ms:
                    break
                self.emit(item.of(self.places), item.start_ms, item.end_ms)
            elif isinstance(item, Failure):
                self.counts["errors"] += 1
                at_ms = self.time_of(item.row) if self.is_timed else self.now_ms
                self._failures.append(self.failure(item.row, item.error, at_ms, item.code))
            else:
                self.tell_errors()
            self.inbox.popleft()

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.leave()
        return super().push(stream, rows, now_ms)

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        self.leave()
        return super().push_timed(rows, times)

    def next_deadline(self) -> int | None:
        for item in self.inbox:
            if isinstance(item, Closing):
                return item.end_ms
        return self.end_ms if self.gathering is None else cast("int | None", self.gathering.gatherer.end_ms)

    def advance_to(self, now_ms: int) -> None:
        if self.gathering is not None:
            self.gathering.gatherer.advance_to(now_ms)
        self._read_inbox(now_ms)
        while self.end_ms is not None and self.end_ms <= now_ms:
            self.fire(self.end_ms)

    @abstractmethod
    def fire(self, end_ms: int) -> None:
        """The window that ends at `end_ms` closes."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether no open window holds anything."""

    def flush(self, now_ms: int) -> list[Any]:
        self.leave()
        while self.end_ms is not None and not self.is_empty():
            self.fire(self.end_ms)
        return self.take()

    # --- state --------------------------------------------------------------------------------------------------------

    def retained(self) -> int:
        return super().retained() if self.gathering is None else cast("int", self.gathering.gatherer.retained())

    def _state(self) -> Any:
        return self.own_state() if self.gathering is None else self.gathering.state_of(self)

    @abstractmethod
    def own_state(self) -> Any:
        """What this query itself holds, as plain data."""


class Gatherer(SharedWindow):
    """A window that gathers for others: what it finds is theirs to show. Mixed into the class of the window."""

    publish: Callable[[Closing | Failure | Told], None]
    is_uniform = False
    """Whether all rules it gathers for have the same aggregates, so that they cannot disagree about an event."""

    def take_in(self, rows: Sequence[Any], now_ms: int, times: Sequence[int] | None) -> None:
        """Gather events of one instant, or with their times. Odd leaves out that event and those after it."""
        self.now_ms = now_ms if times is None else max(self.now_ms, times[0])
        self.enter(rows, times)
        self.now_ms = now_ms if times is None else max(self.now_ms, times[-1])

    def emit(self, looks: Any, start_ms: int, end_ms: int) -> None:
        """A window has closed."""
        self.publish(Closing(start_ms, end_ms, list(looks)))

    def tell_errors(self) -> None:
        """Whatever was due up to an instant is done."""
        self.publish(TOLD)

    def fail(self, row: Any, error: BaseException) -> None:
        """An event failed: for all in filter or key, which all have in common; Odd if an aggregate did not take it."""
        line = self.code.line_of(error)
        if not self.is_uniform and (line is None or line > _line_of_key(self.code.text)):
            raise Odd(row)
        self.publish(Failure(row, error, self.code))


def _is_plain(call: AggregateCall) -> bool:
    """Whether an aggregate looks at numbers alone, so that nothing but its values says what it is."""
    return call.definition.of_numbers is not None and not (call.distinct or call.filter or call.group_by)


def _line_of_key(text: str) -> int:
    """The line up to which a loop says nothing of aggregates."""
    lines = enumerate(text.splitlines(), 1)
    return next(number for number, line in lines if line.lstrip().startswith("key = "))
