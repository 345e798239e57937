"""Groups of windows that events leave one by one: sliding, count with an interval, and
hopping where panes do not do.

What is kept of a group are slots of a generated class, which the statements of `sql.aggregates.inline`
change. The unit of a group becomes finer with the first number that needs it. From a value that statements do
not take on (text, NaN, whole numbers of any size) the group's accumulators take its events. Aggregates
without statements have their accumulators from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.aggregates.base import Removal
from sql.aggregates.inline import QUEUES, SHIFTS
from sql.algebra.accumulators import is_checked, maker_of
from sql.algebra.event import Event
from sql.algebra.event_store import EventStore
from sql.algebra.sample.aggregate_calls import unless_skipped, write_fed
from sql.algebra.sample.content import Content, Entries, Sample
from sql.algebra.sample.instance import Instance
from sql.algebra.sample.running.event_state import EventState
from sql.algebra.sample.running.fallback import Fallback
from sql.algebra.sample.running.fold_arguments import Arguments
from sql.algebra.sample.text import Loop
from sql.errors import DataError
from sql.plan.bound import AggregateCall, Bound
from sql.types import Saved


class RunningGroups(Content):
    """Groups that events enter and leave. `members`: the group of each event, None where WHERE dropped it."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        group_by: Sequence[Bound],
        entries: Entries,
        max_groups: int,
        *,
        has_dropped: bool,
        reads_rows: bool,
        shows_empty: Any,
    ) -> None:
        """`has_dropped`: whether there may be events in the window that are in no group.

        `reads_rows`: whether what is shown reads columns of a group's oldest event.
        """
        self.calls = calls
        self.group_by = group_by
        self.entries = entries
        self.max_groups = max_groups
        self.shows_empty = shows_empty
        self.is_whole = not group_by and not has_dropped
        """True if all events are in one group."""
        self.slots = {"groups": "{}", "times": "deque()"}
        self.slots |= {"only": "Group(())"} if self.is_whole else {"members": "deque()"}
        self.arguments = Arguments(calls)
        self.fallback = Fallback(self.arguments)
        accumulated = self.arguments.accumulated
        self.is_numbered = bool(group_by or accumulated)
        """True if events need a number: to find the older group, or for an accumulator
        that reads events."""
        numbers = ["number"] if self.is_numbered else []
        self.values = [
            *(f"a_{item.place}" for item in self.arguments.valued),
            *(f"f_{place}" for place in accumulated),
        ]
        self.kept = [*numbers, *self.values, *(["event"] if accumulated else [])]
        """The locals that are remembered of an event in its group, each in a queue; the entry has a queue
        `entries`."""
        self.keeps_entries = reads_rows or not self.is_whole or bool(accumulated)
        """True if the entries of a group are kept; else its events are known by their values alone."""
        if self.is_whole:
            queues = ["entries"] if self.keeps_entries else []
            queues += [f"held_{name}" for name in self.kept]
            self.aliases = {"g": "p.only", **{name: f"g.{name}" for name in queues}}
        self.state = EventState(
            entries,
            self.arguments,
            self.fallback,
            self.values,
            is_whole=self.is_whole,
            keeps_entries=self.keeps_entries,
            is_numbered=self.is_numbered,
        )
        self.functions: dict[str, Any] = {}
        """The generated module: `Group`, `add`, `leave`, `results`."""

    # --- code -----------------------------------------------------------------------------------------------

    def generated(self, functions: dict[str, Any]) -> None:
        self.functions = functions
        self.fallback.add = functions["add"]
        self.state.new_group = functions["Group"]

    def write_helpers(self, loop: Loop) -> None:
        self._write_class(loop)
        with loop.block(f"def add(g, {', '.join(f'a_{item.place}' for item in self.arguments.valued)}):"):
            loop.line("unsupported = False")
            self.arguments.write_scaled(loop, "unsupported = True")
            with loop.block("if unsupported:"):
                loop.line("return False")
            self.arguments.write_inline(loop, "add")
            loop.line("return True")
        loop.line("")
        while_old = "while times and times[0] <= edge:"
        with loop.block("def leave(core, p, edge):"), loop.hoisting(), loop.block(while_old):
            self.write_leave(loop)
        loop.line("")
        with loop.block("def results(g):"):
            with loop.block("if g.acc is not None:"):
                loop.line(f"return {loop.names.bind(self.fallback, 'fallback')}.results(g)")
            loop.line(
                f"return ({''.join(f'{self.arguments.result(place)}, ' for place in range(len(self.calls)))})"
            )
        loop.line("")

    def _write_class(self, loop: Loop) -> None:
        kept = {
            f"{state}_{item.place}": "deque()" if state in QUEUES else "0"
            for item in self.arguments.items
            for state in item.states
        }
        for place, call in self.arguments.accumulated.items():
            kept[f"acc_{place}"] = f"{loop.names.bind(maker_of(call, Removal.FIFO), 'new')}()"
        with loop.block("class Group:"):
            queues = (*(["entries"] if self.keeps_entries else []), *(f"held_{name}" for name in self.kept))
            loop.line(
                f"__slots__ = {('key', 'acc', 'unsupported', 'scale', 'shift', 'unit', *queues, *kept)!r}"
            )
            with loop.block("def __init__(g, key):"):
                loop.line("g.key = key")
                for name in queues:
                    loop.line(f"g.{name} = deque()")
                loop.line("g.reset()")
            with loop.block("def reset(g):"):
                loop.line("g.acc = None")
                loop.line("g.unsupported = 0")
                loop.line(f"g.shift = {SHIFTS[0]}")
                loop.line(f"g.unit = {2.0 ** SHIFTS[0]!r}")
                loop.line(f"g.scale = {2.0 ** -SHIFTS[0]!r}")
                for name, first in kept.items():
                    loop.line(f"g.{name} = {first}")
        loop.line("")

    def write_enter(self, loop: Loop) -> None:
        self._write_values(loop)
        if self.is_numbered:
            loop.line("number = core.number = core.number + 1")
        self._write_group(loop)
        for place, call in self.arguments.accumulated.items():
            if is_checked(call):
                with unless_skipped(loop, call, f"f_{place}"):
                    loop.line(f"g.acc_{place}.check(f_{place})")
        self._write_taking_in(loop)

    def _write_values(self, loop: Loop) -> None:
        if self.group_by:
            loop.key(self.group_by, "key")
        for item in self.arguments.valued:
            assert item.node is not None
            text = loop.named(item.node, f"a_{item.place}")
            if text != f"a_{item.place}":
                loop.line(f"a_{item.place} = {text}")
        for place, call in self.arguments.accumulated.items():
            write_fed(loop, call, f"f_{place}")

    def _write_group(self, loop: Loop) -> None:
        """The group of the event, `g`; a new one is not known before the event is in it."""
        if self.is_whole:
            self._write_only(loop)
            return
        groups = loop.own("groups")
        loop.line(f"g = {groups}.get({'key' if self.group_by else '()'})")
        with loop.block("if g is None:"):
            with loop.block(f"if len({groups}) >= {self.max_groups}:"):
                loop.line(f"{loop.names.bind(self, 'running')}.refuse_group()")
            loop.line(f"g = Group({'key' if self.group_by else '()'})")

    def _write_only(self, loop: Loop) -> None:
        if "g" not in loop.hoisted:
            loop.line("g = p.only")

    def _queue(self, loop: Loop, name: str) -> str:
        """The text of a queue of the group at hand."""
        return name if name in loop.hoisted else f"g.{name}"

    def _write_taking_in(self, loop: Loop) -> None:
        slow = f"{loop.names.bind(self.fallback, 'fallback')}.admit"
        if self.arguments.valued:
            loop.line("unsupported = g.acc is not None")
            with loop.block("if not unsupported:"):
                self.arguments.write_scaled(loop, "unsupported = True")
            with loop.block("if unsupported:"):
                loop.line(f"{slow}(g, {self.arguments.given})")
            with loop.block("else:"):
                self.arguments.write_inline(loop, "add")
        else:
            self.arguments.write_inline(loop, "add")
        if self.arguments.accumulated:
            loop.line(f"event = {loop.names.bind(Event, 'Event')}(e, at, number)")
        for place, call in self.arguments.accumulated.items():
            with unless_skipped(loop, call, f"f_{place}"):
                loop.line(f"g.acc_{place}.add(f_{place}, event)")
        with loop.block(f"if not {self._filled(loop)}:"):
            loop.line(f"{loop.own('groups')}[{'()' if self.is_whole else 'g.key'}] = g")
        if self.keeps_entries:
            loop.line(f"{self._queue(loop, 'entries')}.append({self.entries.text})")
        for name in self.kept:
            loop.line(f"{self._queue(loop, f'held_{name}')}.append({name})")
        if not self.is_whole:
            loop.line(f"{loop.own('members')}.append(g)")
        loop.line(f"{loop.own('times')}.append(at)")

    def _filled(self, loop: Loop) -> str:
        """The text of a queue that is empty where the group at hand is."""
        return self._queue(loop, "entries") if self.keeps_entries else loop.own("times")

    def write_dropped(self, loop: Loop) -> None:
        loop.line(f"{loop.own('members')}.append(None)")
        loop.line(f"{loop.own('times')}.append(at)")

    def write_leave(self, loop: Loop) -> None:
        """The oldest event of the window leaves."""
        loop.line(f"{loop.own('times')}.popleft()")
        loop.observed("left(p)")
        if self.is_whole:
            self._write_only(loop)
            self._write_leaving(loop)
            return
        loop.line(f"g = {loop.own('members')}.popleft()")
        with loop.block("if g is not None:"):
            self._write_leaving(loop)

    def _write_leaving(self, loop: Loop) -> None:
        """The oldest event of the group `g` leaves."""
        if self.keeps_entries:
            loop.line(f"{self._queue(loop, 'entries')}.popleft()")
        for name in self.kept:
            loop.line(f"{name} = {self._queue(loop, f'held_{name}')}.popleft()")
        with loop.block(f"if not {self._filled(loop)}:"):
            loop.line(f"del {loop.own('groups')}[{'()' if self.is_whole else 'g.key'}]")
            if self.is_whole:
                loop.line("g.reset()")
        with loop.block("else:"):
            if self.arguments.valued:
                with loop.block("if g.acc is not None:"):
                    loop.line(
                        f"{loop.names.bind(self.fallback, 'fallback')}.withdraw(g, {self.arguments.given})"
                    )
                with loop.block("else:"):
                    self.arguments.write_inline(loop, "remove")
            else:
                self.arguments.write_inline(loop, "remove")
            for place, call in self.arguments.accumulated.items():
                with unless_skipped(loop, call, f"f_{place}"):
                    loop.line(f"g.acc_{place}.remove(f_{place}, event)")

    # --- values that statements do not take -----------------------------------------------------------------

    def refuse_group(self) -> None:
        """There may be no further group."""
        raise DataError(f"more than {self.max_groups} groups; raise maxGroups or group coarser")

    # --- called by the window -------------------------------------------------------------------------------

    def expire(self, p: Instance, edge_ms: int) -> None:
        self.functions["leave"](None, p, edge_ms)

    def sample(self, p: Instance) -> Sample:
        groups, results = p.groups, self.functions["results"]
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), results(self.functions["Group"](())))]
        in_order = sorted(groups.values(), key=_first) if len(groups) > 1 else groups.values()
        if not self.keeps_entries:
            return [(None, results(g)) for g in in_order]
        return [(g.entries[0], results(g)) for g in in_order]

    def clear(self, p: Instance) -> None:
        p.groups.clear()
        p.times.clear()
        if self.is_whole:
            p.only.__init__(())
        else:
            p.members.clear()

    def is_empty(self, p: Instance) -> bool:
        return not p.times

    def retained(self, p: Instance) -> int:
        return len(p.times)

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, p: Instance) -> Saved:
        return self.state.pack(p)

    def unpack(self, p: Instance, state: Saved, store: EventStore) -> None:
        self.state.unpack(p, state)


def _first(g: Any) -> int:
    """The number of the oldest event of a group."""
    number: int = g.held_number[0]
    return number
