"""Fold: events become members of groups, and groups keep their aggregates. The statements
of one compiled function.

prepare   WHERE, arguments, the group `g`; an event that is filtered out or fails has `g = None` and changes nothing
enter     the event `x` counts in `g`
leave     the event `y` no longer counts in `h`, its group
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sql.aggregates.base import Removal
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.compiler.kept import Kept
from sql.errors import DataError
from sql.plan.logical import Plan


def too_many_groups(limit: int) -> None:
    """Refuse the event of a further group."""
    raise DataError(f"more than {limit} groups; raise maxGroups or group coarser")


class Fold:
    """Writes the groups of one statement."""

    def __init__(self, plan: Plan, removal: Removal) -> None:
        self.plan = plan
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
        slots = self.kept.slots
        first = ("first",) if self.keeps_first else ()
        with source.block("class Group:"):
            source.line(f"__slots__ = {('key', 'n', *first, *(slot.name for slot in slots))!r}")
            source.line("")
            with source.block(f"def __init__(self, key{', first' if first else ''}):"):
                source.line("self.key = key")
                source.line("self.n = 0")
                if first:
                    source.line("self.first = first")
                for slot in slots:
                    begins = "0" if slot.make is int else f"{bind(slot.make, f'new_{slot.name}')}()"
                    source.line(f"self.{slot.name} = {begins}")
        source.line("")

    # --- events ---------------------------------------------------------------------------------------------

    def write_values(self, loop: LoopWriter, event: str) -> None:
        """The arguments and the group of an event; `event` is the text of the event
        where one has to be made."""
        for part in self.kept.parts:
            part.prepare(loop)
        if not self.is_grouped:
            loop.line("g = whole")
        else:
            self._write_group(loop, event)
        self._write_checks(loop)

    def _write_group(self, loop: LoopWriter, event: str) -> None:
        source, plan = loop.source, self.plan
        loop.key(plan.group_by, "key")
        source.line("g = get(key)")
        with source.block("if g is None:"):
            with source.block(f"if len(groups) >= {plan.options.max_groups}:"):
                source.line(f"too_many_groups({plan.options.max_groups})")
            if self.keeps_first and event != "x":
                source.line("seq += 1")
            source.line(f"g = groups[key] = Group(key{f', {event}' if self.keeps_first else ''})")
        if self.can_reclaim:
            source.line("q.reclaim.touch(key, now)")

    def _write_checks(self, loop: LoopWriter) -> None:
        if not self.kept.checked:
            return
        with loop.source.block("try:"):
            for part in self.kept.checked:
                part.check(loop)
        with loop.source.block("except DATA_ERRORS:"):
            if self.is_grouped and not self.keeps_empty:
                with loop.source.block("if not g.n:"):
                    loop.source.line("del groups[g.key]")
            loop.source.line("raise")

    @property
    def values(self) -> str:
        """The text of what is remembered with an event: one local itself, several as a tuple."""
        remembered = self.kept.remembered
        return (
            remembered[0] if len(remembered) == 1 else f"({', '.join(remembered)})" if remembered else "None"
        )

    def enter(self, loop: LoopWriter) -> None:
        """The event counts in `g`."""
        if self.counts:
            loop.source.line("g.n += 1")
        for part in self.kept.parts:
            part.write(loop, "g.", enters=True)

    def leave(self, loop: LoopWriter) -> None:
        """The event `y` no longer counts in `h`."""
        source, remembered = loop.source, [f"l_{local}" for local in self.kept.remembered]
        if remembered:
            source.line(f"{', '.join(remembered)} = y.values")
        if self.counts:
            source.line("h.n -= 1")
        for part in self.kept.parts:
            part.write(loop, "h.", enters=False, prefix="l_")
        if self.is_grouped and not self.keeps_empty:
            with source.block("if not h.n:"):
                source.line("del groups[h.key]")

    # --- state ----------------------------------------------------------------------------------------------

    def held(self, group: Any) -> Iterator[Any]:
        """The events that a group refers to."""
        if self.keeps_first:
            yield group.first
        for place, item in self.kept.accumulated.items():
            if not item.is_shared:
                yield from getattr(group, f"acc_{place}").held()
