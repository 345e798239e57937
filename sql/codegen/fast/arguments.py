"""What a running loop keeps of a set of events, so that its aggregates can be told at any time.

The set is the whole window, whose names are locals of the loop, or one group, whose names are attributes of a group
object. Aggregates that have statements (`sql.aggregates.inline`) are written into the loop; the others keep an
accumulator, the same the operators use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sql.aggregates.base import Aggregate, Removal
from sql.aggregates.inline import INLINE, SHIFTS, needs_scaled, needs_values, states, united
from sql.plan.bound import AggregateCall, Bound

QUEUES = ("low", "high")
"""What of the kept things is a queue; the rest are numbers."""


class Remembered(NamedTuple):
    """A queue of the window, the local that goes into it as an event enters, and the one it goes to as it leaves."""

    queue: str
    local: str
    left: str


class Argument:
    """One distinct argument of aggregates: the local names of its value, and what is kept for it."""

    def __init__(self, node: Bound, place: int, calls: Sequence[AggregateCall], removal: Removal) -> None:
        self.node = node
        self.place = place
        self.value = f"a_{place}"
        """The local that has the value of the event at hand."""
        definitions = {call.definition.name: call.definition for call in calls}
        self.inline = [name for name in definitions if has_statements(name, removal)]
        self.accumulators = [item for name, item in definitions.items() if name not in self.inline]
        self.is_scaled = needs_scaled(self.inline)
        self.is_plain = bool(self.accumulators) or needs_values(self.inline) or not self.is_scaled
        """Whether the values themselves are remembered, beside or instead of the scaled ones."""
        self.takes_numbers = definitions.keys() != {"count"}
        """Whether the values have to be numbers: what is only counted may be anything."""
        self.removal = removal
        self.shift = SHIFTS[0]

    @property
    def remembered(self) -> list[Remembered]:
        """What has to be known again when the event leaves."""
        place = self.place
        values = [Remembered(f"values_{place}", self.value, f"left_{place}")] if self.is_plain else []
        return values + ([Remembered(f"scaled_{place}", f"x_{place}", f"left_x_{place}")] if self.is_scaled else [])

    def kept(self) -> dict[str, Callable[[], Any]]:
        """What is kept: names, and how each begins."""
        beginnings: dict[str, Callable[[], Any]] = {
            f"{state}_{self.place}": deque if state in QUEUES else int for state in states(self.inline)
        }
        return beginnings | {self._accumulator(item): self._maker(item) for item in self.accumulators}

    def _accumulator(self, definition: Aggregate) -> str:
        return f"{definition.name}_{self.place}"

    def _maker(self, definition: Aggregate) -> Callable[[], Any]:
        return lambda: definition.make(self.removal)

    def add(self, owner: str) -> list[str]:
        """Statements that take the event's value in; `owner` is written before the names of what is kept."""
        more = [f"{owner}{self._accumulator(item)}.add({self.value}, None)" for item in self.accumulators]
        return [line.format(**self._names(owner)) for line in united(self.inline, "add")] + more

    def remove(self, owner: str) -> list[str]:
        """Statements that take the value of an event out that leaves."""
        left = f"left_{self.place}"
        more = [f"{owner}{self._accumulator(item)}.remove({left}, None)" for item in self.accumulators]
        return [line.format(**self._names(owner)) for line in united(self.inline, "remove")] + more

    def result(self, name: str, owner: str) -> str:
        """The value of the aggregate of this name."""
        if name not in self.inline:
            return f"{owner}{name}_{self.place}.result()"
        return INLINE[name].result.format(**self._names(owner))

    def _names(self, owner: str) -> dict[str, str]:
        names = {state: f"{owner}{state}_{self.place}" for state in ("count", "total", "floats", *QUEUES)}
        place = self.place
        return names | {
            "shift": str(self.shift), "value": self.value, "scaled": f"x_{place}",
            "left": f"left_{place}", "left_scaled": f"left_x_{place}",
        }  # fmt: skip


def has_statements(name: str, removal: Removal) -> bool:
    """Whether an aggregate is written into the loop: extremes only where the oldest value leaves first."""
    return name in INLINE and (removal is not Removal.ANY or not set(INLINE[name].state) & set(QUEUES))


def arguments_of(calls: Sequence[AggregateCall], removal: Removal) -> dict[Bound, Argument]:
    """The distinct arguments of a plan's aggregates, by their expressions."""
    by_node: dict[Bound, list[AggregateCall]] = {}
    for call in calls:
        if call.args:
            by_node.setdefault(call.args[0], []).append(call)
    return {node: Argument(node, place, mine, removal) for place, (node, mine) in enumerate(by_node.items())}
