"""Groups of windows whose content leaves at once, folded late: per event a list grows, and C built-ins fold
it when the window is shown.

    group   [entry, 71.5, 80.2, 69.0, ...]   the first event's entry,
                                             then values that wait, of each argument in turn

Most groups are such plain lists to their end. One that has been folded, or has met a value that is no plain
number (NULL, text, a wrong type), becomes a `Group`: a list with the accumulators of the aggregates, to which
such values go at once. Aggregates that look at more than numbers (collect, DISTINCT, own filters) accumulate
every event.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from sql.aggregates.base import NO_EVENT, Accumulator, Removal
from sql.algebra.accumulators import SKIP, maker_of
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.algebra.rounds import Round, waiting_max
from sql.algebra.sample.aggregate_calls import is_numeric
from sql.algebra.sample.content import Content, Entries, Entry, Sample
from sql.algebra.sample.folding_text import FoldingText
from sql.algebra.sample.instance import Instance
from sql.algebra.sample.text import Loop
from sql.errors import DataError
from sql.plan.bound import AggregateCall, Bound
from sql.types import Saved


class Group(list[Any]):
    """A group with accumulators beside the values that wait."""

    __slots__ = ("accumulators", "fold", "key", "p")

    def __init__(self, entry: Entry, key: Hashable, fold: Folded) -> None:
        super().__init__((entry,))
        self.key = key
        self.fold = fold
        self.accumulators = fold.fresh()
        self.p: Any = None
        """The instance it is in, known of a group with text."""


class MixedGroup(Group):
    """A group with text in it: every further value has to be checked against what is there."""

    __slots__ = ()

    def append(self, value: object) -> None:
        self.fold.take(self.p, self, (value,))

    def extend(self, values: Iterable[Any]) -> None:
        self.fold.take(self.p, self, tuple(values))


class Folded(Content):
    """The groups of windows that are shown once: tumbling, session, state, count."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        group_by: Sequence[Bound],
        entries: Entries,
        max_groups: int,
        *,
        counts: bool,
        shows_empty: Any,
    ) -> None:
        """`shows_empty`: what the columns of the row of no events are read from, None where
        there is no such row."""
        self.calls = calls
        self.group_by = group_by
        self.entries = entries
        self.max_groups = max_groups
        self.shows_empty = shows_empty
        numeric = [place for place, call in enumerate(calls) if is_numeric(call)]
        accumulated = [place for place in range(len(calls)) if place not in numeric]
        self.accumulated = [calls[place] for place in accumulated]
        self.makers = [maker_of(call, Removal.NEVER) for call in self.accumulated]
        self.needs_event = any(call.definition.needs_event for call in self.accumulated)
        self.order = [[*numeric, *accumulated].index(place) for place in range(len(calls))]
        """The position of the accumulator of each call: numbers first."""
        self.is_bounded = bool(accumulated)
        self.counts = counts or bool(accumulated)
        self.slots = {"groups": "{}", **({"size": "0"} if self.counts else {})}
        self.round: Round | None = None
        self._describe([calls[place] for place in numeric])

    def _describe(self, calls: Sequence[AggregateCall]) -> None:
        """Note the properties that folding needs of the aggregates over numbers only."""
        self.arguments: list[Bound] = list(dict.fromkeys(call.args[0] for call in calls if call.args))
        """The distinct arguments; none: an event counts as one value, 1."""
        self.definitions = [call.definition for call in calls]
        self.width = max(1, len(self.arguments)) if calls or not self.accumulated else 0
        self.places = [self.arguments.index(call.args[0]) if call.args else None for call in calls]
        self.shortcuts = [
            (definition.of_numbers, definition, 1 + (place or 0))
            for definition, place in zip(self.definitions, self.places, strict=True)
        ]
        self.takes_any = [
            all(call.definition.of_numbers is len for call in calls if call.args and call.args[0] == argument)
            for argument in self.arguments
        ]
        """True if an argument is only counted, so that any value but NULL may wait."""

    # --- code -----------------------------------------------------------------------------------------------

    def write_enter(self, loop: Loop) -> None:
        FoldingText(self, loop).write()

    def write_dropped(self, loop: Loop) -> None:
        if self.counts:
            loop.line("p.size += 1")

    def room(self, loop: Loop) -> str:
        """The condition under which the loop may open a group by itself."""
        return f"len({loop.own('groups')}) < {self.max_groups}"

    # --- events that are no plain numbers, and groups that are new ------------------------------------------

    def open(self, p: Instance, key: Hashable, entry: Entry, values: tuple[Any, ...]) -> None:
        """The first event of a group, with plain numbers."""
        self.make_room(p, key)
        p.groups[key] = [entry, *values]

    def admit(self, p: Instance, key: Hashable, entry: Entry, values: tuple[Any, ...]) -> None:
        """An event with a value that is no plain number. DataError leaves everything as it was."""
        group = p.groups.get(key)
        if group is None:
            self.make_room(p, key)
            group = self.make(p, key, entry)
            self.take(p, group, values)
            p.groups[key] = group
        else:
            self.take(p, self.upgraded(p, key, group), values)

    def feed(
        self,
        p: Instance,
        key: Hashable,
        entry: Entry,
        values: tuple[Any, ...],
        accumulated: tuple[Any, ...],
        event: Any,
    ) -> None:
        """An event comes into a group with accumulators. DataError leaves everything as it was."""
        group = p.groups.get(key)
        if group is None:
            self.make_room(p, key)
            group = self.make(p, key, entry)
        else:
            group = self.upgraded(p, key, group)
        if self.is_text(values):
            self.flush(group)  # so that what waits is known
        accumulators = group.accumulators
        given = [*(True if place is None else values[place] for place in self.places), *accumulated]
        for place in self.order:
            if given[place] is not SKIP:
                self.check_one(p, group, place, given[place])
        if values:
            self.take(p, group, values)
        for accumulator, value in zip(accumulators[len(self.definitions) :], accumulated, strict=True):
            if value is not SKIP:
                accumulator.add(value, event)
        p.groups[key] = group

    def make_room(self, p: Instance, key: Hashable) -> None:
        """Raise DataError where there may be no further group."""
        if len(p.groups) >= self.max_groups:
            raise DataError(f"more than {self.max_groups} groups; raise maxGroups or group coarser")

    def make(self, p: Instance, key: Hashable, entry: Entry) -> Group:
        """A group with accumulators that begins with this entry."""
        return Group(entry, key, self)

    def upgraded(self, p: Instance, key: Hashable, group: list[Any]) -> Group:
        """The group with accumulators, in the place of a plain list."""
        if isinstance(group, Group):
            return group
        made = p.groups[key] = self.make(p, key, group[0])
        list.extend(made, group[1:])
        return made

    def take(self, p: Instance, group: Group, values: tuple[Any, ...]) -> None:
        """Values of any kind come into a group with accumulators, in all of them or none."""
        is_text = self.is_text(values)
        if is_text or isinstance(group, MixedGroup):
            self.flush(group)
        elif all(value.__class__ is float or value.__class__ is int for value in values):
            list.extend(group, values)
            return
        by_call = [True if place is None else values[place] for place in self.places]
        for place, value in enumerate(by_call):
            self.check_one(p, group, place, value)
        for accumulator, value in zip(group.accumulators, by_call, strict=False):
            accumulator.add(value, NO_EVENT)
        if is_text:
            self.mix(p, group)

    @staticmethod
    def mix(p: Instance, group: Group) -> None:
        """From now on every value is checked against the text in the group."""
        group.p = p
        group.__class__ = MixedGroup  # the same slots: only how values come in changes

    def is_text(self, values: tuple[Any, ...]) -> bool:
        """True if one of the values is neither a number nor NULL, where numbers are expected."""
        return any(
            not anything and value is not None and value.__class__ is not float and value.__class__ is not int
            for value, anything in zip(values, self.takes_any, strict=False)
        )

    def check_one(self, p: Instance, group: Group, place: int, value: object) -> None:
        """Raise the DataError of the accumulator at that place if it cannot take the value."""
        group.accumulators[place].check(value)

    # --- folding --------------------------------------------------------------------------------------------

    def fresh(self) -> list[Accumulator]:
        """New accumulators: those of the numbers, then those that have accumulators."""
        return [definition.make(Removal.NEVER) for definition in self.definitions] + [
            make() for make in self.makers
        ]

    def flush(self, group: Group) -> None:
        """Fold the values that wait into the accumulators."""
        if len(group) > 1:
            for accumulator, (_, _, first) in zip(group.accumulators, self.shortcuts, strict=False):
                accumulator.add_many(group[first :: self.width])
            del group[1:]

    def flushed(self, p: Instance) -> Iterable[tuple[Hashable, Group]]:
        """All groups with nothing left to fold."""
        for key, group in list(p.groups.items()):
            made = self.upgraded(p, key, group)
            self.flush(made)
            yield key, made

    def results(self, group: list[Any]) -> list[Any]:
        """The aggregates' values."""
        if isinstance(group, Group):
            self.flush(group)
            found = [accumulator.result() for accumulator in group.accumulators]
            return [found[place] for place in self.order] if self.accumulated else found
        out = []
        width, read = self.width, 0
        values: list[Any] = []
        for shortcut, definition, first in self.shortcuts:
            if first != read:
                read, values = first, group[first::width]
            result = None if shortcut is None else shortcut(values)
            if result is None:
                accumulator = definition.make(Removal.NEVER)
                accumulator.add_many(values)
                result = accumulator.result()
            out.append(result)
        return out

    # --- called by the window -------------------------------------------------------------------------------

    def sample(self, p: Instance) -> Sample:
        groups = p.groups.values()
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), self.of_none())]
        return zip(map(itemgetter(0), groups), map(self.results, groups), strict=True)

    def of_none(self) -> list[Any]:
        """The aggregates' values over no events."""
        found = [accumulator.result() for accumulator in self.fresh()]
        return [found[place] for place in self.order]

    def clear(self, p: Instance) -> None:
        self.came = max(0, self.came - sum(map(len, p.groups.values())))
        p.groups.clear()
        if self.counts:
            p.size = 0

    def is_empty(self, p: Instance) -> bool:
        return not (p.size if self.counts else p.groups)

    def retained(self, p: Instance) -> int:
        return p.size if self.is_bounded else sum(map(len, p.groups.values()))

    def rest(self, parts: Iterable[Any]) -> None:
        """Fold the next groups of a round through all of them,
        which begins where as many values wait as may."""
        parts = list(parts)
        if self.round is None:
            self.came_max = waiting_max(parts)
            if self.came <= self.came_max:
                return
            self.round = Round(parts, lambda p, key, group: self.flush(self.upgraded(p, key, group)))
            self.came = self.came_max = 0  # the next batch comes here again
        if not self.round.go_on(self.came):
            self.round = None
            self.came_max = waiting_max(parts)

    # --- state ----------------------------------------------------------------------------------------------

    def held(self, p: Instance) -> Iterable[Any]:
        if self.needs_event:
            for group in p.groups.values():
                for accumulator in group.accumulators:
                    yield from accumulator.held()

    def pack(self, p: Instance) -> Saved:
        return {"groups": self.pack_groups(self.flushed(p)), **({"size": p.size} if self.counts else {})}

    def pack_groups(self, groups: Iterable[tuple[Hashable, Group]]) -> Saved:
        """Groups with nothing left to fold, as plain data."""
        return [
            [
                pack_key(key),
                self.entries.pack(group[0]),
                isinstance(group, MixedGroup),
                [group.accumulators[place].snapshot() for place in self.order],
            ]
            for key, group in groups
        ]

    def unpack(self, p: Instance, state: Saved, store: EventStore) -> None:
        self.unpack_groups(p, state["groups"], store)
        if self.counts:
            p.size = state["size"]

    def unpack_groups(self, p: Instance, state: Saved, store: EventStore) -> None:
        """Put groups back."""
        for packed, entry, mixed, parts in state:
            key = unpack_key(packed)
            group = p.groups[key] = Group(self.entries.unpack(entry), key, self)
            for place, part in zip(self.order, parts, strict=True):
                group.accumulators[place].restore(part, store.find)
            if mixed:
                self.mix(p, group)
