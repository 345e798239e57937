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
from functools import partial
from operator import itemgetter
from typing import Any

from sql.aggregates.base import EventView
from sql.aggregates.wrap import Remaining
from sql.algebra.event import Event
from sql.algebra.event_store import EventStore
from sql.algebra.rounds import Round, waiting_max
from sql.algebra.sample.content import Content, Entries, Entry, Sample
from sql.algebra.sample.folding.group_fold import Group, GroupFold
from sql.algebra.sample.instance import Instance
from sql.codegen.loop import LoopWriter
from sql.errors import over_max_groups
from sql.plan.bound import AggregateCall, Bound

PLACE = Remaining(0, 0)
"""The place of each event where no aggregate reads the event."""


class FoldingText:
    """Writes how an event enters its group. `room`: the condition on which the loop may open one."""

    def __init__(self, fold: GroupFold, loop: LoopWriter, room: str) -> None:
        self.fold = fold
        self.loop = loop
        self.room = room
        self.entry = fold.entries.text
        self.common_lines = 0

    def write(self, group_by: Sequence[Bound]) -> None:
        """The statements of one event."""
        fold, loop = self.fold, self.loop
        loop.key(group_by, "key")
        self.common_lines = loop.source.line_count
        values = [self._named(node, f"a_{place}") for place, node in enumerate(fold.arguments)]
        tests = [f"({test})" for test in self._number_tests(values)]
        values = values or ["1"] * fold.width
        if fold.accumulated:
            self._write_fed(values, tests)
        elif tests:
            with loop.block(f"if {' and '.join(tests)}:"):
                self._write_found(values)
            with loop.block("else:"):
                loop.line(f"core.folded.admit(p, key, {self.entry}, ({', '.join(values)},))")
        else:
            self._write_found(values)

    def _named(self, node: Bound, name: str) -> str:
        """The name of a value: a literal gets one too."""
        text = self.loop.atom(node, name)
        if text.isidentifier():
            return text
        self.loop.line(f"{name} = {text}")
        return name

    def _number_tests(self, values: list[str]) -> list[str]:
        """Conditions under which the values may wait: numbers, or anything but NULL where
        they are only counted."""
        return [
            f"{value} is not None" if anything else f"{value}.__class__ is float or {value}.__class__ is int"
            for value, anything in zip(values, self.fold.takes_any, strict=False)
        ]

    def _write_append(self, values: list[str]) -> None:
        many = ", ".join(values)
        self.loop.line(f"group.append({many})" if len(values) == 1 else f"group.extend(({many},))")

    def _write_found(self, values: list[str]) -> None:
        loop, many = self.loop, ", ".join(values)
        loop.line("group = groups.get(key)")
        with loop.block("if group is not None:"):
            self._write_append(values)
        with loop.block(f"elif {self.room}:"):
            loop.line(f"groups[key] = [{self.entry}, {many}]")
        with loop.block("else:"):
            loop.line(f"core.folded.open(p, key, {self.entry}, ({many},))")

    def _write_fed(self, values: list[str], tests: list[str]) -> None:
        fold, loop = self.fold, self.loop
        for part in fold.accumulated:
            part.prepare(loop)
        if fold.needs_event:
            loop.line(f"x = {loop.names.bind(Event, 'Event')}(e, at, core.next_number())")
        else:
            loop.line(f"x = {loop.names.bind(PLACE, 'PLACE')}")
        loop.line("group = groups.get(key)")
        with loop.block(f"if {' and '.join(['group is not None', *tests])}:"):
            self._write_feed(values)
        with loop.block("else:"):
            accumulated = "".join(f"{part.local}, " for part in fold.accumulated)
            numbers = "".join(f"{value}, " for value in values)
            loop.line(f"core.folded.feed(p, key, {self.entry}, ({numbers}), ({accumulated}), x)")

    def _write_feed(self, values: list[str]) -> None:
        """All or nothing: an accumulator that may refuse its value checks it before any takes its own."""
        fold, loop = self.fold, self.loop
        accumulators = "".join(f"acc_{part.place}, " for part in fold.accumulated)
        loop.line(
            f"{accumulators}= group.accumulators{f'[{len(fold.definitions)}:]' if fold.definitions else ''}"
        )
        if len(fold.order) > 1:
            for part in fold.accumulated:
                part.check(loop, "")
        if values:
            self._write_append(values)
        for part in fold.accumulated:
            part.write(loop, "", enters=True)


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
        shows_empty: object,
    ) -> None:
        """`shows_empty`: what the columns of the row of no events are read from, None where
        there is no such row."""
        self.fold = GroupFold(calls, entries)
        self.group_by = group_by
        self.entries = entries
        self.max_groups = max_groups
        self.shows_empty = shows_empty
        self.is_bounded = bool(self.fold.accumulated)
        self.counts = counts or self.is_bounded
        self.slots = {"groups": "{}", **({"size": "0"} if self.counts else {})}
        self.locals = {"groups": "p.groups"}
        self.common_lines = 0
        """The text of the loop up to this line does not depend on aggregates."""
        self.round: Round | None = None

    # --- code -----------------------------------------------------------------------------------------------

    def write_enter(self, loop: LoopWriter) -> None:
        text = FoldingText(self.fold, loop, self.room)
        text.write(self.group_by)
        self.common_lines = text.common_lines
        self.write_dropped(loop)

    def write_dropped(self, loop: LoopWriter) -> None:
        if self.counts:
            loop.line("p.size += 1")

    @property
    def room(self) -> str:
        """The condition under which the loop may open a group by itself."""
        return f"len(groups) < {self.max_groups}"

    # --- events that are no plain numbers, and groups that are new ------------------------------------------

    def open(self, p: Instance, key: Hashable, entry: Entry, values: tuple[Any, ...]) -> None:
        """The first event of a group, with plain numbers."""
        self.make_room(p, key)
        p.groups[key] = [entry, *values]

    def admit(self, p: Instance, key: Hashable, entry: Entry, values: tuple[Any, ...]) -> None:
        """An event with a value that is no plain number. DataError leaves everything as it was."""
        group = self._group(p, key, entry)
        self.fold.take(group, values)
        p.groups[key] = group

    def feed(
        self,
        p: Instance,
        key: Hashable,
        entry: Entry,
        values: tuple[Any, ...],
        accumulated: tuple[Any, ...],
        event: EventView,
    ) -> None:
        """An event comes into a group with accumulators. DataError leaves everything as it was."""
        group = self._group(p, key, entry)
        self.fold.accumulate(group, values, accumulated, event)
        p.groups[key] = group

    def _group(self, p: Instance, key: Hashable, entry: Entry) -> Group:
        """The group with accumulators of a key; a new one is not in the window yet."""
        group = p.groups.get(key)
        if group is not None:
            return self.upgraded(p, key, group)
        self.make_room(p, key)
        return self.make(p, key, entry)

    def make_room(self, p: Instance, key: Hashable) -> None:
        """Raise DataError where there may be no further group."""
        if len(p.groups) >= self.max_groups:
            raise over_max_groups(self.max_groups)

    def make(self, p: Instance, key: Hashable, entry: Entry) -> Group:
        """A group with accumulators that begins with this entry."""
        return Group(entry, self.fold)

    def upgraded(self, p: Instance, key: Hashable, group: list[Any]) -> Group:
        """The group with accumulators, in the place of a plain list."""
        if isinstance(group, Group):
            return group
        made = p.groups[key] = self.make(p, key, group[0])
        list.extend(made, group[1:])
        return made

    def flushed(self, p: Instance) -> Iterable[tuple[Hashable, Group]]:
        """All groups with nothing left to fold."""
        for key, group in list(p.groups.items()):
            made = self.upgraded(p, key, group)
            self.fold.flush(made)
            yield key, made

    # --- called by the window -------------------------------------------------------------------------------

    def sample(self, p: Instance) -> Sample:
        groups = p.groups.values()
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), self.fold.of_none())]
        return zip(map(itemgetter(0), groups), map(self.fold.results, groups), strict=True)

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
            self.round = Round(parts, lambda p, key, group: self.fold.flush(self.upgraded(p, key, group)))
            self.came = self.came_max = 0  # the next batch comes here again
        if not self.round.go_on(self.came):
            self.round = None
            self.came_max = waiting_max(parts)

    # --- state ----------------------------------------------------------------------------------------------

    def held(self, p: Instance) -> Iterable[Any]:
        if self.fold.needs_event:
            for group in p.groups.values():
                for accumulator in group.accumulators:
                    yield from accumulator.held()

    def pack(self, p: Instance) -> dict[str, Any]:
        return {"groups": self.fold.pack(self.flushed(p)), **({"size": p.size} if self.counts else {})}

    def unpack(self, p: Instance, state: dict[str, Any], store: EventStore) -> None:
        p.groups.update(self.fold.unpack(state["groups"], partial(self.make, p), store))
        if self.counts:
            p.size = state["size"]


class Judged(Folded):
    """All rows of a window that HAVING judges as a whole, each beside the aggregates over the whole of it."""

    def __init__(self, calls: Sequence[AggregateCall], entries: Entries, max_groups: int) -> None:
        super().__init__(calls, (), entries, max_groups, counts=False, shows_empty=None)
        self.slots |= {"members": "deque()"}
        self.locals = {**self.locals, "members": "p.members"}

    def write_enter(self, loop: LoopWriter) -> None:
        super().write_enter(loop)
        loop.line(f"members.append({self.entries.text})")

    def sample(self, p: Instance) -> Sample:
        values = [found for _, found in super().sample(p)]
        return [(entry, values[0]) for entry in p.members] if values else []

    def clear(self, p: Instance) -> None:
        super().clear(p)
        p.members.clear()
