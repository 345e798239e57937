"""The statements of running groups: the class of a group, and how events enter and leave it.

A group keeps the aggregates of its events (`sql.algebra.kept`), and in queues, the oldest first, what is read
of them again:

entries   entries of the events, from which columns are read
numbers   their places in the order of arrival, by which groups are put in order
given     what each contributed to the aggregates
events    the events themselves, for accumulators that read them
"""

from __future__ import annotations

from collections.abc import Sequence

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.group_slots import too_many_groups, write_group_class
from sql.algebra.kept import Kept
from sql.algebra.sample.text import write_locals
from sql.codegen.loop import LoopWriter
from sql.plan.bound import AggregateCall, Bound


class GroupText:
    """Writes the statements of the groups of one rule. `entry`: the text of an event's entry."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        group_by: Sequence[Bound],
        entry: str,
        max_groups: int,
        *,
        has_dropped: bool,
        reads_rows: bool,
    ) -> None:
        """`has_dropped`: there may be events in the window that are in no group. `reads_rows`: what is shown
        reads columns of a group's oldest event."""
        self.group_by = group_by
        self.kept = kept = Kept(calls, Removal.FIFO)
        self.entry = entry
        self.max_groups = max_groups
        self.is_whole = not group_by and not has_dropped
        """True if all events are in one group."""
        needed = {
            "entries": reads_rows or not self.is_whole or bool(kept.accumulated),
            "numbers": bool(group_by or kept.accumulated),
            "given": bool(kept.remembered),
            "events": bool(kept.accumulated),
        }
        self.queues = tuple(name for name, is_needed in needed.items() if is_needed)

    @property
    def slots(self) -> dict[str, str]:
        """The slots of an instance of the window, with their first values."""
        groups = {"only": "Group(())"} if self.is_whole else {"groups": "{}", "members": "deque()"}
        return {"times": "deque()", **groups}

    @property
    def locals(self) -> dict[str, str]:
        """The locals of a loop over one instance."""
        if not self.is_whole:
            return {name: f"p.{name}" for name in self.slots}
        return {"times": "p.times", "g": "p.only", **{name: f"g.{name}" for name in self.queues}}

    # --- groups ---------------------------------------------------------------------------------------------

    def write_group(self, loop: LoopWriter) -> None:
        """The class of groups, and the function that puts an event of a snapshot back into one."""
        firsts = {"key": "key", **dict.fromkeys(self.queues, "deque()")}
        if self.kept.counts_rows:
            firsts["n"] = "0"
        write_group_class(loop.source, "key", firsts, self.kept.slots, loop.names.bind)
        with loop.block("def put(p, g, e, at, number, given, x):"):
            if self.kept.remembered:
                loop.line(f"{', '.join(self.kept.remembered)} = given")
            write_locals(loop.source, {name: text for name, text in self.locals.items() if name != "g"})
            self._write_counted(loop, "e")
        loop.line("")

    def write_results(self, loop: LoopWriter) -> None:
        """The function that gives the values of the aggregates over a group."""
        with loop.block("def results(g):"):
            loop.line(f"return ({''.join(f'{text}, ' for text in self.results(loop))})")
        loop.line("")

    def results(self, loop: LoopWriter) -> list[str]:
        """The texts of the values of the aggregates over the group `g`."""
        return [code.text for code in self.kept.codes("g.", "x", loop.names.bind).values()]

    # --- events ---------------------------------------------------------------------------------------------

    def write_enter(self, loop: LoopWriter) -> None:
        """The event at hand enters the window and its group."""
        if self.group_by:
            loop.key(self.group_by, "key")
        for part in self.kept.parts:
            part.prepare(loop)
        if "numbers" in self.queues:
            loop.line("number = core.number = core.number + 1")
        self._write_found(loop)
        for checked in self.kept.checked:
            checked.check(loop)
        if "events" in self.queues:
            loop.line(f"x = {loop.names.bind(Event, 'Event')}(e, at, number)")
        self._write_counted(loop, self.entry)

    def _write_found(self, loop: LoopWriter) -> None:
        """The group of the event, `g`; a new one is not known before the event is in it."""
        if self.is_whole:
            return
        key = "key" if self.group_by else "()"
        loop.line(f"g = groups.get({key})")
        with loop.block("if g is None:"):
            with loop.block(f"if len(groups) >= {self.max_groups}:"):
                refuse = loop.names.bind(too_many_groups, "too_many_groups")
                loop.line(f"{refuse}({self.max_groups})")
            loop.line(f"g = Group({key})")

    def _write_counted(self, loop: LoopWriter, entry: str) -> None:
        """An event, whose contributions are in locals, counts in the group `g`."""
        if self.kept.counts_rows:
            loop.line("g.n += 1")
        for part in self.kept.parts:
            part.write(loop, "g.", enters=True)
        if not self.is_whole:
            with loop.block("if not g.entries:"):
                loop.line("groups[g.key] = g")
            loop.line("members.append(g)")
        texts = {"entries": entry, "numbers": "number", "given": self.kept.values, "events": "x"}
        for name in self.queues:
            loop.line(f"{self._queue(name)}.append({texts[name]})")
        loop.line("times.append(at)")

    def write_dropped(self, loop: LoopWriter) -> None:
        """The event at hand is in the window, but in no group."""
        loop.line("members.append(None)")
        loop.line("times.append(at)")

    def write_leave(self, loop: LoopWriter) -> None:
        """The oldest event of the window leaves."""
        loop.line("times.popleft()")
        if self.is_whole:
            self._write_leaving(loop)
            return
        loop.line("g = members.popleft()")
        with loop.block("if g is not None:"):
            self._write_leaving(loop)
            with loop.block("if not g.entries:"):
                loop.line("del groups[g.key]")

    def _write_leaving(self, loop: LoopWriter) -> None:
        """The oldest event of the group `g` leaves."""
        taken = {"given": ", ".join(f"l_{local}" for local in self.kept.remembered), "events": "y"}
        for name in self.queues:
            pop = f"{self._queue(name)}.popleft()"
            loop.line(f"{taken[name]} = {pop}" if name in taken else pop)
        if self.kept.counts_rows:
            loop.line("g.n -= 1")
        for part in self.kept.parts:
            part.write(loop, "g.", enters=False, prefix="l_")

    def _queue(self, name: str) -> str:
        """The text of a queue of the group at hand."""
        return name if self.is_whole else f"g.{name}"
