"""Fold: events become members of groups, and groups keep their aggregates. The statements
of one compiled function.

prepare   WHERE, arguments, the group `g`;
          an event that is filtered out or fails has `g = None` and changes nothing
enter     the event `x` counts in `g`
leave     the event `y` no longer counts in `h`, its group
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sql.aggregates.base import Removal
from sql.algebra.group_slots import write_group_class
from sql.algebra.kept import Kept, inline_form
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.compiler.statement.deferral import deferral
from sql.plan.bound import Bound, TableRead, reads_clock, slot_kinds
from sql.plan.logical import Plan


class Membership(NamedTuple):
    """The texts that tell if an event counts.

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


class Fold:
    """Writes the groups of one statement."""

    def __init__(self, plan: Plan, removal: Removal, *, keeps_values: bool = False) -> None:
        """`keeps_values`: the window keeps what events contribute, in the place of events with a group."""
        self.plan = plan
        self.member = BY_VALUE if keeps_values else IN_GROUP
        self.kept = Kept(plan.aggregates, removal, as_calls=plan.into_table is not None)
        self.is_grouped = bool(plan.group_by)
        self.keeps_first = plan.keeps_groups
        """True if a group keeps its first event: without a window there is no other to read columns from."""
        self.keeps_empty = any(call.definition.ever for call in plan.aggregates)
        self.counts = self.is_grouped or bool(self.kept.counts_rows)
        self.needs_event = bool(self.kept.accumulated)
        self.can_reclaim = self.keeps_first and plan.sources[0].reclaim_ms is not None

    # --- the class of groups --------------------------------------------------------------------------------

    def write_group_class(self, source: SourceWriter, bind: Callable[[object, str], str]) -> None:
        """One group: its key, the number of its events, what is kept for its aggregates."""
        firsts, given = {"key": "key", "n": "0"}, "key"
        if self.keeps_first:
            firsts["first"], given = "first", "key, first"
        write_group_class(source, given, firsts, self.kept.slots, bind)

    @property
    def attributes(self) -> list[str]:
        """The attributes of a group that events change."""
        return [*(["n"] if self.counts else []), *(slot.name for slot in self.kept.slots)]

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
        else:
            self._write_group(loop, event)
        self._write_checks(loop, owner)

    @contextmanager
    def left(self, source: SourceWriter) -> Iterator[None]:
        """The block for the event `y`, which leaves, if it counted."""
        if self.member.left:
            source.line(self.member.left)
        with source.block(f"if {self.member.left_counted}:"):
            yield

    def _write_group(self, loop: LoopWriter, event: str) -> None:
        source, plan = loop.source, self.plan
        loop.key(plan.group_by, "key")
        source.line("g = get(key)")
        with source.block("if g is None:"):
            with source.block(f"if len(groups) >= {plan.options.max_groups}:"):
                source.line(f"raise over_max_groups({plan.options.max_groups})")
            if self.keeps_first and event != "x":
                source.line("seq += 1")
            source.line(f"g = groups[key] = Group(key{f', {event}' if self.keeps_first else ''})")
        if self.can_reclaim:
            source.line("q.groups.reclaim.touch(key, now)")

    def _write_checks(self, loop: LoopWriter, owner: str) -> None:
        if not self.kept.checked:
            return
        if not self.is_grouped:
            for part in self.kept.checked:
                part.check(loop, owner)
            return
        with loop.source.block("try:"):
            for part in self.kept.checked:
                part.check(loop, owner)
        with loop.source.block("except DATA_ERRORS:"):
            if not self.keeps_empty:
                with loop.source.block("if not g.n:"):
                    loop.source.line("del groups[g.key]")
            loop.source.line("raise")

    def enter(self, loop: LoopWriter, owner: str = "g.") -> None:
        """The event counts in its group, `g` unless another `owner` is given."""
        if self.counts:
            loop.source.line(f"{owner}n += 1")
        for part in self.kept.parts:
            part.write(loop, owner, enters=True)

    def leave(self, loop: LoopWriter, owner: str = "h.") -> None:
        """The event `y` no longer counts in its group, `h` unless another `owner` is given."""
        source, remembered = loop.source, [f"l_{local}" for local in self.kept.remembered]
        if remembered:
            source.line(f"{', '.join(remembered)} = {self.member.given}")
        if self.counts:
            source.line(f"{owner}n -= 1")
        for part in self.kept.parts:
            part.write(loop, owner, enters=False, prefix="l_")
        if self.is_grouped and not self.keeps_empty:
            with source.block("if not h.n:"):
                source.line("del groups[h.key]")

    # --- state ----------------------------------------------------------------------------------------------

    @property
    def may_hold(self) -> bool:
        """True if a group may refer to events."""
        return self.keeps_first or any(not item.is_shared for item in self.kept.accumulated.values())

    def held(self, group: Any) -> Iterator[Any]:
        """The events that a group refers to."""
        if self.keeps_first:
            yield group.first
        for place, item in self.kept.accumulated.items():
            if not item.is_shared:
                yield from getattr(group, f"acc_{place}").held()


# --- events that need not be kept ---------------------------------------------------------------------------


OF_GROUPS = {"aggregate", "variable", "context", "hit"}
"""The kinds of values that do not depend on the event that causes a row."""


def keeps_values(plan: Plan) -> bool:
    """True if the statement reads of its events only what they contributed: its window need not keep them.

    It shows aggregates of one window and nothing else, and all of these are statements of the loop.
    A value is computed as its event arrives. Behind a gate, or in a lot, that is earlier than it counts:
    there it may not depend on anything that changes between,
    nor be one that is compared with the values before it.
    """
    if plan.row_kind != "aggregate" or len(plan.sources) != 1 or plan.selector != "istream":
        return False
    beside = plan.analytics or plan.subqueries or plan.prevs or plan.into_table is not None
    is_shown_later = plan.output is not None and deferral(plan) != "content"
    reads_event = not slot_kinds(plan.having, *(item.value for item in plan.items)) <= OF_GROUPS
    if beside or plan.orders_rows or is_shown_later or reads_event:
        return False
    forms = [inline_form(call, Removal.FIFO) for call in plan.aggregates]
    if any(form is None or (form.is_in_order and plan.mode == "lots") for form in forms):
        return False
    lot, where = plan.sources[0].lot, [] if plan.where is None else [plan.where]
    of_events = [*(argument for call in plan.aggregates for argument in call.args), *where]
    return lot is None or not lot.is_gated or not any(map(_changes, of_events))


def _changes(value: Bound) -> bool:
    """True if a value of an event depends on when it is computed."""
    return (
        reads_clock(value)
        or not slot_kinds(value) <= {"context"}
        or any(isinstance(node, TableRead) for node in value.walk())
    )
