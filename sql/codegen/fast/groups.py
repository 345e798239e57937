"""Groups of windows that are folded late: per event only a list grows, and C built-ins fold it when somebody looks.

    group   [71.5, 80.2, 69.0, ...]      values that wait, for every distinct aggregate argument in turn
            accumulators                 what has been folded, and what was no plain number; made only when needed

The accumulators are the engine's: a value that is no plain number (NULL, text, a wrong type) goes to them at once, by the
engine's own checks. Nothing about an aggregate is defined here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from sql.aggregates.base import NO_EVENT, Accumulator, Removal
from sql.aggregates.bulk import result_of
from sql.errors import DataError
from sql.plan.bound import AggregateCall, Bound
from sql.runtime.state import pack_key, pack_row, unpack_key

PENDING_MAX = 65_536
"""Values that wait to be folded, beside two for each group: so much more than the groups' own state a rule may hold."""


class Group(list[Any]):
    """One group: the values that wait, its first row, its accumulators."""

    __slots__ = ("accumulators", "first", "key", "number", "table")

    def __init__(self, key: Hashable, first: Any, number: int, table: GroupTable) -> None:
        self.key = key
        self.first = first
        self.number = number
        self.table = table
        self.accumulators: list[Accumulator] | None = None


class MixedGroup(Group):
    """A group with text in it: every further value has to be checked against what is there."""

    __slots__ = ()

    def append(self, value: Any) -> None:
        self.table.take(self, (value,))

    def extend(self, values: Iterable[Any]) -> None:
        self.table.take(self, tuple(values))


class GroupTable:
    """The groups of one window, or of one pane, in order of first appearance."""

    def __init__(self, calls: Sequence[AggregateCall], max_groups: int) -> None:
        self.max_groups = max_groups
        self.groups: dict[Hashable, Group] = {}
        self.number = 0
        self.arguments: list[Bound] = list(dict.fromkeys(call.args[0] for call in calls if call.args))
        """The distinct arguments; none: an event counts as one value, 1."""
        self.width = max(1, len(self.arguments))
        self.positions = [self.arguments.index(call.args[0]) if call.args else None for call in calls]
        self.definitions = [call.definition for call in calls]
        self.takes_any = [
            all(call.definition.of_numbers is len for call in calls if call.args and call.args[0] == argument)
            for argument in self.arguments
        ]

    # --- events -------------------------------------------------------------------------------------------------------

    def admit(self, key: Hashable, row: Any, values: tuple[Any, ...]) -> None:
        """An event of a new group, or with a value that is no plain number. DataError leaves everything as it was."""
        group = self.groups.get(key)
        if group is None:
            if self.is_full():
                raise DataError(f"more than {self.max_groups} groups; raise maxGroups or group coarser")
            group = self.make(key, row)
            self._add(group, values)
            self.groups[key] = group
        else:
            self._add(group, values)

    def is_full(self) -> bool:
        """Whether there may be no further group."""
        return len(self.groups) >= self.max_groups

    def make(self, key: Hashable, row: Any) -> Group:
        """A group that begins with this row."""
        self.number += 1
        return Group(key, row, self.number, self)

    def _add(self, group: Group, values: tuple[Any, ...]) -> None:
        if group.__class__ is Group and self._is_plain(values):
            group.extend(values)
        else:
            self.take(group, values)

    def _is_plain(self, values: tuple[Any, ...]) -> bool:
        return not self.arguments or all(
            value.__class__ is float or value.__class__ is int or (anything and value is not None)
            for value, anything in zip(values, self.takes_any, strict=True)
        )

    def take(self, group: Group, values: tuple[Any, ...]) -> None:
        """Add an event to the accumulators, all or none of them."""
        is_text = any(
            not anything and value is not None and value.__class__ is not float and value.__class__ is not int
            for value, anything in zip(values, self.takes_any, strict=False)
        )
        if is_text:
            self.settle(group)
        by_call = [True if place is None else values[place] for place in self.positions]
        self.check(group, by_call)
        accumulators = self._accumulators(group)
        for accumulator, value in zip(accumulators, by_call, strict=True):
            accumulator.add(value, NO_EVENT)
        if is_text:
            group.__class__ = MixedGroup  # the same slots: only how values come in changes

    def check(self, group: Group, by_call: list[Any]) -> None:
        """Raise the DataError of the first aggregate that cannot take its value."""
        for accumulator, value in zip(self._accumulators(group), by_call, strict=True):
            accumulator.check(value)

    # --- folding ------------------------------------------------------------------------------------------------------

    def fresh(self) -> list[Accumulator]:
        """New accumulators, one per aggregate."""
        return [definition.make(Removal.NEVER) for definition in self.definitions]

    def _accumulators(self, group: Group) -> list[Accumulator]:
        if group.accumulators is None:
            group.accumulators = self.fresh()
        return group.accumulators

    def settle(self, group: Group) -> list[Accumulator]:
        """Fold the values that wait into the accumulators."""
        accumulators = self._accumulators(group)
        if group:
            for accumulator, values in zip(accumulators, self._columns(group), strict=True):
                accumulator.add_many(values)
            group.clear()
        return accumulators

    def _columns(self, group: Group) -> list[list[Any]]:
        width = self.width
        return [group[(place or 0) :: width] if width > 1 else group for place in self.positions]

    def settle_all(self) -> None:
        """Fold everything that waits."""
        for group in self.groups.values():
            self.settle(group)

    def results(self, group: Group) -> list[Any]:
        """The aggregates' values."""
        if group.accumulators is not None:
            return [accumulator.result() for accumulator in self.settle(group)]
        return [
            result_of(lambda: definition.make(Removal.NEVER), definition.of_numbers, values)  # noqa: B023 - called at once
            for definition, values in zip(self.definitions, self._columns(group), strict=True)
        ]

    # --- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Any:
        """The groups as plain data; what waits is folded first."""
        return [
            [pack_key(key), pack_row(group.first), group.number, group.__class__ is MixedGroup,
             [accumulator.snapshot() for accumulator in self.settle(group)]]
            for key, group in self.groups.items()
        ]  # fmt: skip

    def restore(self, state: Any, make_row: Any) -> None:
        """Put a snapshot back."""
        for key, row, number, mixed, parts in state:
            group = (MixedGroup if mixed else Group)(unpack_key(key), make_row(row), number, self)
            self.number = max(self.number, number)
            for accumulator, part in zip(self._accumulators(group), parts, strict=True):
                accumulator.restore(part, _no_events)
            self.groups[group.key] = group


def _no_events(seq: int) -> Any:
    raise AssertionError("an aggregate of the fast path refers to an event")
