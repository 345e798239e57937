"""The aggregates of a group that is folded late: its list of values that wait, and its accumulators."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from sql.aggregates.base import NO_EVENT, Accumulator, EventView, Removal
from sql.aggregates.extremes import Extreme
from sql.algebra.accumulators import SKIP
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.algebra.kept import Accumulated
from sql.algebra.sample.content import Entries, Entry, PackedEntry
from sql.errors import DataError
from sql.plan.bound import AggregateCall, Bound
from sql.types import Plain, Saved

PackedGroup = tuple[Plain, PackedEntry, bool, list[Saved]]
"""The key, the first entry, whether values have to be checked, and the states of the accumulators."""


def is_numeric(call: AggregateCall) -> bool:
    """True if a call reads numbers only, of every event, so that they may wait to be folded."""
    is_plain = not call.distinct and call.filter is None and call.group_by is None
    return call.definition.of_numbers is not None and len(call.args) <= 1 and not call.constants and is_plain


class Group(list[Any]):
    """A group with accumulators beside the values that wait."""

    __slots__ = ("accumulators", "earlier", "fold", "number")

    def __init__(self, entry: Entry, fold: GroupFold) -> None:
        super().__init__((entry,))
        self.fold = fold
        self.accumulators = fold.fresh()
        self.earlier: Sequence[Group] = ()
        """The groups of the key in the cut panes of its window."""
        self.number = 0
        """Its place among the groups of cut panes, in order of their first events."""


class MixedGroup(Group):
    """A group with text in it: every further value has to be checked against what is there."""

    __slots__ = ()

    def append(self, value: object) -> None:
        self.fold.take(self, (value,))

    def extend(self, values: Iterable[Any]) -> None:
        self.fold.take(self, tuple(values))


class GroupFold:
    """Computes the results of aggregates from the values of a group: one object for all groups of a rule.

    The aggregates over numbers alone come first (`definitions`, over the distinct `arguments`), then those
    that accumulate every event (`accumulated`).
    """

    def __init__(self, calls: Sequence[AggregateCall], entries: Entries) -> None:
        self.entries = entries
        numeric = [place for place, call in enumerate(calls) if is_numeric(call)]
        accumulated = [place for place in range(len(calls)) if place not in numeric]
        self.accumulated = [
            Accumulated(calls[place], turn, Removal.NEVER) for turn, place in enumerate(accumulated)
        ]
        self.needs_event = any(part.call.definition.needs_event for part in self.accumulated)
        self.order = [[*numeric, *accumulated].index(place) for place in range(len(calls))]
        """The position of the accumulator of each call: numbers first."""
        self.numeric = [calls[place] for place in numeric]
        self.arguments: list[Bound] = list(dict.fromkeys(call.args[0] for call in self.numeric if call.args))
        """The distinct arguments; none: an event counts as one value, 1."""
        self.definitions = [call.definition for call in self.numeric]
        self.calls = [*self.numeric, *(part.call for part in self.accumulated)]
        """The calls, in the order of the accumulators."""
        self.width = max(1, len(self.arguments)) if self.numeric or not accumulated else 0
        self.places = [self.arguments.index(call.args[0]) if call.args else None for call in self.numeric]
        self.columns = [1 + (place or 0) for place in self.places]
        """Where the values of each begin in a group."""
        self.shortcuts = [
            (column, definition.of_numbers, definition)
            for column, definition in zip(self.columns, self.definitions, strict=True)
            if definition.of_numbers is not None
        ]
        self.takes_any = [
            all(call.definition.of_numbers is len for call in self.numeric if call.args[:1] == (argument,))
            for argument in self.arguments
        ]
        """True if an argument is only counted, so that any value but NULL may wait."""

    def fresh(self) -> list[Accumulator]:
        """New accumulators: those of the numbers, then those that accumulate every event."""
        return [definition.make(Removal.NEVER) for definition in self.definitions] + [
            part.make() for part in self.accumulated
        ]

    # --- values come in -------------------------------------------------------------------------------------

    def accumulate(
        self, group: Group, values: tuple[Any, ...], accumulated: tuple[Any, ...], event: EventView
    ) -> None:
        """The values of an event come into all accumulators, or into none and raise DataError."""
        if self._is_text(values):
            self.flush(group)  # so that what waits is known
        given = [*self._by_call(values), *accumulated]
        for place in self.order:
            if given[place] is not SKIP:
                self._check(group, place, given[place])
        if values:
            self.take(group, values)
        for accumulator, value in zip(group.accumulators[len(self.definitions) :], accumulated, strict=True):
            if value is not SKIP:
                accumulator.add(value, event)

    def take(self, group: Group, values: tuple[Any, ...]) -> None:
        """Values of any kind come into the accumulators of numbers, in all of them or none."""
        is_text = self._is_text(values)
        if is_text or isinstance(group, MixedGroup):
            self.flush(group)
        elif all(value.__class__ is float or value.__class__ is int for value in values):
            list.extend(group, values)
            return
        by_call = self._by_call(values)
        for place, value in enumerate(by_call):
            self._check(group, place, value)
        for accumulator, value in zip(group.accumulators, by_call, strict=False):
            accumulator.add(value, NO_EVENT)
        if is_text:
            self.mix(group)

    @staticmethod
    def mix(group: Group) -> None:
        """From now on every value is checked against the text in the group."""
        group.__class__ = MixedGroup  # the same slots: only how values come in changes

    def _by_call(self, values: tuple[Any, ...]) -> list[Any]:
        return [True if place is None else values[place] for place in self.places]

    def _is_text(self, values: tuple[Any, ...]) -> bool:
        """True if one of the values is neither a number nor NULL, where numbers are expected."""
        return any(
            not anything and value is not None and value.__class__ is not float and value.__class__ is not int
            for value, anything in zip(values, self.takes_any, strict=False)
        )

    def _check(self, group: Group, place: int, value: object) -> None:
        """Raise the DataError of an accumulator that cannot take the value, with its place."""
        try:
            self._try(group, place, value)
        except DataError as error:
            raise error.at(self.calls[place].place) from error

    def _try(self, group: Group, place: int, value: object) -> None:
        """Raise the DataError of an accumulator that cannot take the value.

        Text in an earlier pane refuses a number too; the error is that of a pane that holds values.
        """
        if place >= len(self.definitions) or not group.earlier:
            group.accumulators[place].check(value)
            return
        refused: DataError | None = None
        for part in (item.accumulators[place] for item in (*group.earlier, group)):
            try:
                part.check(value)
            except DataError as error:
                if refused is None or (isinstance(part, Extreme) and (part.count or part.nan)):
                    refused = error
        if refused is not None:
            raise refused

    # --- results --------------------------------------------------------------------------------------------

    def flush(self, group: Group) -> None:
        """Fold the values that wait into the accumulators."""
        if len(group) > 1:
            for accumulator, column in zip(group.accumulators, self.columns, strict=False):
                accumulator.add_many(group[column :: self.width])
            del group[1:]

    def results(self, group: list[Any]) -> list[Any]:
        """The aggregates' values."""
        if isinstance(group, Group):
            self.flush(group)
            return self._results_of(group.accumulators)
        out = []
        read, values = 0, group
        for column, shortcut, definition in self.shortcuts:
            if column != read:
                read, values = column, group[column :: self.width]
            result = shortcut(values)
            if result is None:
                accumulator = definition.make(Removal.NEVER)
                accumulator.add_many(values)
                result = accumulator.result()
            out.append(result)
        return out

    def of_none(self) -> list[Any]:
        """The aggregates' values over no events."""
        return self._results_of(self.fresh())

    def _results_of(self, accumulators: list[Accumulator]) -> list[Any]:
        found = [accumulator.result() for accumulator in accumulators]
        return [found[place] for place in self.order] if self.accumulated else found

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, groups: Iterable[tuple[Hashable, Group]]) -> list[PackedGroup]:
        """Groups in which nothing waits, as plain data."""
        return [
            (
                pack_key(key),
                self.entries.pack(group[0]),
                isinstance(group, MixedGroup),
                [group.accumulators[place].snapshot() for place in self.order],
            )
            for key, group in groups
        ]

    def unpack(
        self, state: list[PackedGroup], make: Callable[[Hashable, Entry], Group], store: EventStore
    ) -> dict[Hashable, Group]:
        """The groups of `pack`; `make` makes one that begins with an entry."""
        groups = {}
        for packed, entry, mixed, parts in state:
            key = unpack_key(packed)
            group = groups[key] = make(key, self.entries.unpack(entry))
            for place, part in zip(self.order, parts, strict=True):
                group.accumulators[place].restore(part, store.find)
            if mixed:
                self.mix(group)
        return groups
