"""Fold: events become members of groups, and groups keep their aggregates. The statements of one loop, of a
window that events leave one by one or never.

prepare   WHERE, arguments, the group `g`;
          an event that is filtered out or fails has `g = None` and changes nothing
enter     the event `x` counts in `g`
leave     the event `y` no longer counts in `h`, its group

With grouping sets `g` and `h` are lists, of a group of each set:

    g = []
    for key in ((0, key_0, key_1), (1, key_0), (2,)):
        g.append(get(key) or …)
    for g_i in g:
        g_i.n += 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

from sql.aggregates.base import Removal
from sql.algebra.group_slots import write_group_class
from sql.algebra.kept import Kept
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.plan.logical import Plan


class Membership(NamedTuple):
    """The texts that decide if an event counts.

    counted, uncounted         a test of the event that comes; the statement that makes it fail
    left, left_counted, given  what is read of the event `y` that leaves;
                               the same test of it; what it contributed
    """

    counted: str
    uncounted: str
    left: str
    left_counted: str
    given: str


IN_GROUP = Membership("g is not None", "g = None", "h = y.group", "h is not None", "y.values")
BY_VALUE = Membership("x is not ABSENT", "x = ABSENT", "", "y is not ABSENT", "y")
"""The window keeps what events contribute: `x` and `y` are no events, but that."""


NONE: Mapping[str, str] = MappingProxyType({})


@contextmanager
def each_owner(source: SourceWriter, plan: Plan, owner: str) -> Iterator[str]:
    """The text before the attributes of an event's group; with grouping sets in a loop over its groups."""
    if not plan.grouping_sets:
        yield owner
        return
    groups = owner.removesuffix(".")
    with source.block(f"for {groups}_i in {groups}:"):
        yield f"{groups}_i."


class Fold:
    """Writes the groups of one query."""

    def __init__(
        self, plan: Plan, removal: Removal, *, keeps_values: bool = False, counts: bool = False
    ) -> None:
        """`keeps_values`: the window keeps what events contribute, in the place of events with a group.
        `counts`: a group counts its events even where no aggregate does."""
        self.plan = plan
        self.member = BY_VALUE if keeps_values else IN_GROUP
        self.kept = Kept(plan.aggregates, removal, as_calls=plan.into_table is not None)
        self.is_grouped = bool(plan.group_by)
        self.keeps_first = plan.keeps_groups
        """True if a group keeps its first event: without a window there is no other to read columns from."""
        self.keeps_empty = any(call.definition.ever for call in plan.aggregates)
        self.counts = counts or self.is_grouped or bool(self.kept.counts_rows)
        self.needs_event = bool(self.kept.accumulated)
        self.owner = "g." if self.is_grouped else "whole."
        """The text before the names of attributes where a loop reads the group of an event."""
        self.can_reclaim = self.keeps_first and plan.sources[0].reclaim_ms is not None

    # --- the class of groups --------------------------------------------------------------------------------

    def write_group_class(
        self,
        source: SourceWriter,
        bind: Callable[[object, str], str],
        beside: Mapping[str, str] = NONE,
    ) -> None:
        """One group: its key, the number of its events, what is kept for its aggregates; `beside`: further
        attributes with the texts of their first values."""
        firsts, given = {"key": "key", "n": "0", **beside}, "key"
        if self.keeps_first:
            firsts["first"], given = "first", "key, first"
        write_group_class(source, given, firsts, self.kept.slots, bind)

    @property
    def attributes(self) -> list[str]:
        """The attributes of a group that events change."""
        return [*(["n"] if self.counts else []), *(slot.name for slot in self.kept.slots)]

    def write_state(
        self, source: SourceWriter, groups: str = "q.groups.by_key", whole: str = "q.groups.whole"
    ) -> None:
        """The groups as locals, or the only one: those of the statement `q` unless others are given."""
        if self.is_grouped:
            source.line(f"groups = {groups}")
            source.line("get = groups.get")
        else:
            source.line(f"whole = {whole}")

    # --- events ---------------------------------------------------------------------------------------------

    def write_values(self, loop: LoopWriter, event: str, owner: str = "g.") -> None:
        """The arguments and the group of an event; `event` is the text of the event
        where one has to be made. `owner` stands before the names of the group's attributes."""
        for part in self.kept.parts:
            part.prepare(loop)
        if self.member is BY_VALUE:
            loop.line(f"x = {self.kept.values}")
        elif not self.is_grouped:
            loop.line("g = whole")
        elif self.plan.grouping_sets:
            self._write_groups(loop, event)
            return
        else:
            self.write_keys(loop)
            self._write_group(loop, event)
        self._write_checks(loop, owner)

    @contextmanager
    def left(self, source: SourceWriter) -> Iterator[None]:
        """The block for the event `y`, which leaves, if it counted."""
        if self.member.left:
            source.line(self.member.left)
        with source.block(f"if {self.member.left_counted}:"):
            yield

    def write_keys(self, loop: LoopWriter) -> None:
        """The `key` of an event's group; with grouping sets the `keys` of its groups, each with the place of
        its set before it."""
        keys, sets = self.plan.group_by, self.plan.grouping_sets
        if not sets:
            loop.key(keys, "key")
            return
        for place, node in enumerate(keys):
            loop.key((node,), f"key_{place}")
        texts = [
            f"({', '.join([str(i), *(f'key_{place}' for place in chosen)])},)"
            for i, chosen in enumerate(sets)
        ]
        loop.line(f"keys = ({', '.join(texts)},)")

    def _write_group(self, loop: LoopWriter, event: str, name: str = "g") -> None:
        source, plan = loop.source, self.plan
        source.line(f"{name} = get(key)")
        with source.block(f"if {name} is None:"):
            with source.block(f"if len(groups) >= {plan.options.max_groups}:"):
                source.line(f"raise over_max_groups({plan.options.max_groups})")
            if self.keeps_first and event != "x":
                source.line("seq += 1")
            source.line(f"{name} = groups[key] = Group(key{f', {event}' if self.keeps_first else ''})")
        if self.can_reclaim:
            source.line("q.groups.reclaim.touch(key, now)")

    def _write_groups(self, loop: LoopWriter, event: str) -> None:
        """A group of each grouping set; none is new where one of them does not take the values."""
        source = loop.source
        self.write_keys(loop)
        source.line("g = []")
        with self._dropping(source, "g."), source.block("for key in keys:"):
            self._write_group(loop, event, "g_i")
            source.line("g.append(g_i)")
            for part in self.kept.checked:
                part.check(loop, "g_i.")

    def _write_checks(self, loop: LoopWriter, owner: str) -> None:
        checked = self.kept.checked
        with self._dropping(loop.source, owner) if checked and self.is_grouped else nullcontext():
            for part in checked:
                part.check(loop, owner)

    @contextmanager
    def _dropping(self, source: SourceWriter, owner: str) -> Iterator[None]:
        """A block: where it fails, groups that are new go."""
        with source.block("try:"):
            yield
        with source.block("except DATA_ERRORS:"):
            self.write_dropped(source, owner)
            source.line("raise")

    def write_dropped(self, source: SourceWriter, owner: str) -> None:
        """Groups without events go."""
        if self.is_grouped and not self.keeps_empty:
            with each_owner(source, self.plan, owner) as one, source.block(f"if not {one}n:"):
                source.line(f"del groups[{one}key]")

    def enter(self, loop: LoopWriter, owner: str = "g.") -> None:
        """The event counts in its group, `g` unless another `owner` is given."""
        with each_owner(loop.source, self.plan, owner) as one:
            if self.counts:
                loop.source.line(f"{one}n += 1")
            for part in self.kept.parts:
                part.write(loop, one, enters=True)

    def leave(self, loop: LoopWriter, owner: str = "h.") -> None:
        """The event `y` no longer counts in its group, `h` unless another `owner` is given."""
        source, remembered = loop.source, [f"l_{local}" for local in self.kept.remembered]
        if remembered:
            source.line(f"{', '.join(remembered)} = {self.member.given}")
        with each_owner(source, self.plan, owner) as one:
            if self.counts:
                source.line(f"{one}n -= 1")
            for part in self.kept.parts:
                part.write(loop, one, enters=False, prefix="l_")
        self.write_dropped(source, owner)

    # --- state ----------------------------------------------------------------------------------------------

    @property
    def may_hold(self) -> bool:
        """True if a group may refer to events."""
        return self.keeps_first or any(not item.is_shared for item in self.kept.accumulated.values())

    def held(self, group: Any) -> Iterator[Any]:
        if self.keeps_first:
            yield group.first
        for place, item in self.kept.accumulated.items():
            if not item.is_shared:
                yield from getattr(group, f"acc_{place}").held()
