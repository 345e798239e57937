"""What a running loop keeps of a set of events, so that its aggregates can be told at any time.

The set is the whole window, whose names are locals of the loop, or one group, whose names are attributes of a group
object (`owner` is what is written before a name). An aggregate of numbers that has statements (`sql.aggregates.inline`)
is written into the loop; any other keeps its accumulator, the one the operators use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sql.aggregates.base import Removal
from sql.aggregates.inline import INLINE, SHIFTS, needs_scaled, needs_values, states, united
from sql.plan.bound import AggregateCall, Bound
from sql.runtime.groups import is_checked, maker_of

QUEUES = ("low", "high")
"""What of the kept things is a queue; the rest are numbers."""


class Remembered(NamedTuple):
    """A queue of the window, the local that goes into it as an event enters, and the one it goes to as it leaves."""

    queue: str
    local: str
    left: str


class Argument:
    """One distinct argument of aggregates that have statements: the locals of its value, and what is kept for it."""

    def __init__(self, node: Bound, place: int, names: Sequence[str]) -> None:
        self.node = node
        self.place = place
        self.value = f"a_{place}"
        """The local that has the value of the event at hand."""
        self.names = list(dict.fromkeys(names))
        self.is_scaled = needs_scaled(self.names)
        self.is_plain = needs_values(self.names) or not self.is_scaled
        """Whether the values themselves are remembered, beside or instead of the scaled ones."""
        self.takes_numbers = self.names != ["count"]
        """Whether the values have to be numbers: what is only counted may be anything."""
        self.shift = SHIFTS[0]

    @property
    def remembered(self) -> list[Remembered]:
        """What has to be known again when the event leaves."""
        place = self.place
        values = [Remembered(f"values_{place}", self.value, f"left_{place}")] if self.is_plain else []
        return values + ([Remembered(f"scaled_{place}", f"x_{place}", f"left_x_{place}")] if self.is_scaled else [])

    @property
    def kept(self) -> dict[str, Callable[[], Any]]:
        """What is kept: names, and how each begins."""
        return {f"{state}_{self.place}": deque if state in QUEUES else int for state in states(self.names)}

    def add(self, owner: str) -> list[str]:
        """Statements that take the event's value in, which is not NULL."""
        return [line.format(**self._words(owner)) for line in united(self.names, "add")]

    def remove(self, owner: str) -> list[str]:
        """Statements that take out the value of an event that leaves."""
        return [line.format(**self._words(owner)) for line in united(self.names, "remove")]

    def result(self, name: str, owner: str) -> str:
        """The value of the aggregate of this name."""
        return INLINE[name].result.format(**self._words(owner))

    def _words(self, owner: str) -> dict[str, str]:
        place = self.place
        return {state: f"{owner}{state}_{place}" for state in ("count", "total", "floats", *QUEUES)} | {
            "shift": str(self.shift), "value": self.value, "scaled": f"x_{place}",
            "left": f"left_{place}", "left_scaled": f"left_x_{place}",
        }  # fmt: skip


class Fed:
    """One call of an aggregate without statements: what it is fed with, and its accumulator."""

    def __init__(self, call: AggregateCall, place: int, removal: Removal) -> None:
        self.call = call
        self.value = f"f_{place}"
        self.name = f"fed_{place}"
        self.left = f"left_f_{place}"
        self.make = maker_of(call, removal)
        self.may_refuse = is_checked(call)
        """Whether there are values that it refuses."""

    @property
    def remembered(self) -> list[Remembered]:
        """What has to be known again when the event leaves."""
        return [Remembered(f"values_{self.value}", self.value, self.left)]

    def unless_skipped(self, value: str) -> str:
        """The condition on which the accumulator takes part; empty: always."""
        return "" if self.call.filter is None else f"if {value} is not SKIP:"


class Kept:
    """All that is kept for a plan's aggregates."""

    def __init__(self, calls: Sequence[AggregateCall], removal: Removal) -> None:
        inline: dict[Bound, list[str]] = {}
        self.fed: dict[int, Fed] = {}
        """By the place of the call in the plan."""
        for place, call in enumerate(calls):
            if not has_statements(call, removal):
                self.fed[place] = Fed(call, place, removal)
            elif call.args:
                inline.setdefault(call.args[0], []).append(call.definition.name)
        self.arguments = {node: Argument(node, place, names) for place, (node, names) in enumerate(inline.items())}

    @property
    def remembered(self) -> list[Remembered]:
        """What has to be known of an event again when it leaves."""
        parts = [part for argument in self.arguments.values() for part in argument.remembered]
        parts += [part for item in self.fed.values() for part in item.remembered]
        return [*parts, Remembered("held", "event", "left_event")] if self.fed else parts

    @property
    def beginnings(self) -> dict[str, Callable[[], Any]]:
        """What is kept of a set of events: names, and how each begins."""
        inline = {name: make for item in self.arguments.values() for name, make in item.kept.items()}
        return inline | {item.name: item.make for item in self.fed.values()}


def has_statements(call: AggregateCall, removal: Removal) -> bool:
    """Whether a call is written into the loop: extremes only where the oldest value leaves first."""
    if call.distinct or call.filter is not None or call.constants or len(call.args) > 1:
        return False
    inline = INLINE.get(call.definition.name)
    return inline is not None and (removal is not Removal.ANY or not set(inline.state) & set(QUEUES))
