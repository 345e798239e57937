"""Groups of windows that are folded late: per event only a list grows, and C built-ins fold it when somebody looks.

    group   [row, 71.5, 80.2, 69.0, ...]    the first row, then the values that wait: of each aggregate argument in turn

Most groups are such plain lists to their end. One that has been folded, or has met a value that is no plain number
(NULL, text, a wrong type), becomes a `Group`: a list with the engine's accumulators, to which such values go at once,
by the engine's own checks. Nothing about an aggregate is defined here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from sql.aggregates.base import NO_EVENT, Accumulator, Removal
from sql.errors import DataError
from sql.plan.bound import AggregateCall, Bound
from sql.runtime.state import pack_key, pack_row, unpack_key

PENDING_MAX, PENDING_PER_GROUP = 65_536, 16
"""How many values may wait in a window before all are folded: a fixed number, and for each group about as many as take
the room of its accumulators, so that a million small groups need none."""


class Group(list[Any]):
    """A group with accumulators beside the values that wait."""

    __slots__ = ("accumulators", "key", "table")

    def __init__(self, row: Any, key: Hashable, table: GroupTable) -> None:
        super().__init__((row,))
        self.key = key
        self.table = table
        self.accumulators = table.fresh()


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
        self.spare = max_groups
        """So many groups the loop may open by itself; it asks `open` for further ones."""
        self.groups: dict[Hashable, list[Any]] = {}
        self.dropped = 0
        """Events in the window that WHERE has dropped, where somebody counts them."""
        self.has_text = False
        """Whether a value has come that is neither a number nor NULL, where numbers are expected."""
        self.arguments: list[Bound] = list(dict.fromkeys(call.args[0] for call in calls if call.args))
        """The distinct arguments; none: an event counts as one value, 1."""
        self.width = max(1, len(self.arguments))
        self.places = [self.arguments.index(call.args[0]) if call.args else None for call in calls]
        self.definitions = [call.definition for call in calls]
        self.shortcuts = [
            (definition.of_numbers or _none, definition, 1 + (place or 0))
            for definition, place in zip(self.definitions, self.places, strict=True)
        ]
        self.takes_any = [
            all(call.definition.of_numbers is len for call in calls if call.args and call.args[0] == argument)
            for argument in self.arguments
        ]
        """Whether an argument is only counted, so that any value but NULL may wait."""

    # --- events -------------------------------------------------------------------------------------------------------

    def open(self, key: Hashable, row: Any, values: tuple[Any, ...]) -> None:
        """The first event of a group, with plain numbers."""
        self.make_room(key)
        self.groups[key] = [row, *values]

    def admit(self, key: Hashable, row: Any, values: tuple[Any, ...]) -> None:
        """An event with a value that is no plain number. DataError leaves everything as it was."""
        group = self.groups.get(key)
        if group is None:
            self.make_room(key)
            group = self.make(key, row)
            self.take(group, values)
            self.groups[key] = group
        else:
            self.take(self.upgraded(key, group), values)

    def make_room(self, key: Hashable) -> None:
        """Raise DataError where there may be no further group."""
        if len(self.groups) >= self.max_groups:
            raise DataError(f"more than {self.max_groups} groups; raise maxGroups or group coarser")

    def make(self, key: Hashable, row: Any) -> Group:
        """A group with accumulators that begins with this row."""
        return Group(row, key, self)

    def upgraded(self, key: Hashable, group: list[Any]) -> Group:
        """The group with accumulators, in the place of a plain list."""
        if not isinstance(group, Group):
            values = group
            group = self.groups[key] = self.make(key, values[0])
            list.extend(group, values[1:])
        return group

    def take(self, group: Group, values: tuple[Any, ...]) -> None:
        """Add an event to the accumulators, all or none of them."""
        is_text = self.is_text(values)
        if is_text:
            self.has_text = True
            self.settle(group.key, group)
        by_call = [True if place is None else values[place] for place in self.places]
        self.check(group, by_call)
        for accumulator, value in zip(group.accumulators[: len(self.places)], by_call, strict=True):
            accumulator.add(value, NO_EVENT)
        if is_text:
            group.__class__ = MixedGroup  # the same slots: only how values come in changes

    def is_text(self, values: tuple[Any, ...]) -> bool:
        """Whether one of the values is neither a number nor NULL, where numbers are expected."""
        return any(
            not anything and value is not None and value.__class__ is not float and value.__class__ is not int
            for value, anything in zip(values, self.takes_any, strict=False)
        )

    def check(self, group: Group, by_call: list[Any]) -> None:
        """Raise the DataError of the first aggregate that cannot take its value."""
        for accumulator, value in zip(group.accumulators[: len(self.places)], by_call, strict=True):
            accumulator.check(value)

    # --- folding ------------------------------------------------------------------------------------------------------

    def fresh(self) -> list[Accumulator]:
        """New accumulators, one per aggregate."""
        return [definition.make(Removal.NEVER) for definition in self.definitions]

    def settle(self, key: Hashable, group: list[Any]) -> list[Accumulator]:
        """Fold the values that wait into the accumulators."""
        folded = self.upgraded(key, group)
        if len(folded) > 1:
            for accumulator, (_, _, first) in zip(folded.accumulators[: len(self.places)], self.shortcuts, strict=True):
                accumulator.add_many(folded[first :: self.width])
            del folded[1:]
        return folded.accumulators

    def settle_all(self) -> None:
        """Fold everything that waits."""
        for key, group in list(self.groups.items()):
            self.settle(key, group)

    def results(self, group: list[Any]) -> list[Any]:
        """The aggregates' values."""
        if isinstance(group, Group):
            return [accumulator.result() for accumulator in self.settle(group.key, group)]
        out = []
        width, read = self.width, 0
        for shortcut, definition, first in self.shortcuts:
            if first != read:
                read, values = first, group[first::width]
            result = shortcut(values)
            if result is None:
                accumulator = definition.make(Removal.NEVER)
                accumulator.add_many(values)
                result = accumulator.result()
            out.append(result)
        return out

    def results_of_none(self) -> list[Any]:
        """The aggregates' values over no events."""
        return [accumulator.result() for accumulator in self.fresh()]

    def looks(self) -> Iterator[tuple[Any, list[Any]]]:
        """The first row and the aggregates' values of each group."""
        groups = self.groups.values()
        return zip(map(itemgetter(0), groups), map(self.results, groups), strict=True)

    # --- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Any:
        """The groups as plain data; what waits is folded first."""
        self.settle_all()
        return [
            [pack_key(key), pack_row(group[0]), isinstance(group, MixedGroup), [part.snapshot() for part in parts]]
            for key, group in self.groups.items()
            for parts in (self.settle(key, group),)
        ]

    def restore(self, state: Any, make_row: Any) -> None:
        """Put a snapshot back."""
        for packed, row, mixed, parts in state:
            key = unpack_key(packed)
            group = self.groups[key] = self.make(key, make_row(row))
            for accumulator, part in zip(group.accumulators, parts, strict=True):
                accumulator.restore(part, _no_events)
            if mixed:
                group.__class__ = MixedGroup


def _none(values: list[Any]) -> Any:
    return None


def _no_events(seq: int) -> Any:
    raise AssertionError("an aggregate of the fast path refers to an event")
