"""The statements of running groups: the class of a group, and how events enter and leave it."""

from __future__ import annotations

from sql.aggregates.base import Removal
from sql.aggregates.inline import QUEUES, SHIFTS
from sql.algebra.accumulators import is_checked, maker_of
from sql.algebra.event import Event
from sql.algebra.sample.running.fallback import Fallback
from sql.algebra.sample.running.fold_arguments import GroupLayout
from sql.algebra.sample.text import Loop, unless_skipped, write_fed
from sql.errors import over_max_groups


class GroupText:
    """Writes the statements of the groups of one rule. `entry`: the text of an event's entry."""

    def __init__(self, layout: GroupLayout, fallback: Fallback, entry: str, max_groups: int) -> None:
        self.layout = layout
        self.arguments = layout.arguments
        self.fallback = fallback
        self.entry = entry
        self.max_groups = max_groups

    def write_group(self, loop: Loop) -> None:
        """The class of groups, and the function that takes values into one."""
        self._write_class(loop)
        with loop.block(f"def add(g, {', '.join(f'a_{item.place}' for item in self.arguments.valued)}):"):
            loop.line("unsupported = False")
            self.arguments.write_scaled(loop, "unsupported = True")
            with loop.block("if unsupported:"):
                loop.line("return False")
            self.arguments.write_inline(loop, "add")
            loop.line("return True")
        loop.line("")

    def write_results(self, loop: Loop) -> None:
        """The function that gives the values of the aggregates over a group."""
        with loop.block("def results(g):"):
            with loop.block("if g.acc is not None:"):
                loop.line(f"return {self._fallback(loop)}.results(g)")
            results = map(self.arguments.result, range(len(self.arguments.calls)))
            loop.line(f"return ({''.join(f'{result}, ' for result in results)})")
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
            queues = self.layout.queues
            slots = ("key", "acc", "unsupported", "scale", "shift", "unit", *queues, *kept)
            loop.line(f"__slots__ = {slots!r}")
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
        """The event at hand enters the window and its group."""
        self._write_values(loop)
        if self.layout.is_numbered:
            loop.line("number = core.number = core.number + 1")
        self._write_group(loop)
        for place, call in self.arguments.accumulated.items():
            if is_checked(call):
                with unless_skipped(loop, call, f"f_{place}"):
                    loop.line(f"g.acc_{place}.check(f_{place})")
        self._write_taking_in(loop)

    def _write_values(self, loop: Loop) -> None:
        if self.layout.group_by:
            loop.key(self.layout.group_by, "key")
        for item in self.arguments.valued:
            assert item.node is not None
            text = loop.named(item.node, f"a_{item.place}")
            if text != f"a_{item.place}":
                loop.line(f"a_{item.place} = {text}")
        for place, call in self.arguments.accumulated.items():
            write_fed(loop, call, f"f_{place}")

    def _write_group(self, loop: Loop) -> None:
        """The group of the event, `g`; a new one is not known before the event is in it."""
        if self.layout.is_whole:
            self._write_only(loop)
            return
        groups = loop.own("groups")
        loop.line(f"g = {groups}.get({'key' if self.layout.group_by else '()'})")
        with loop.block("if g is None:"):
            with loop.block(f"if len({groups}) >= {self.max_groups}:"):
                loop.line(f"{loop.names.bind(self, 'running')}.refuse_group()")
            loop.line(f"g = Group({'key' if self.layout.group_by else '()'})")

    def _write_only(self, loop: Loop) -> None:
        if "g" not in loop.hoisted:
            loop.line("g = p.only")

    def _queue(self, loop: Loop, name: str) -> str:
        """The text of a queue of the group at hand."""
        return name if name in loop.hoisted else f"g.{name}"

    def _write_taking_in(self, loop: Loop) -> None:
        if self.arguments.valued:
            loop.line("unsupported = g.acc is not None")
            with loop.block("if not unsupported:"):
                self.arguments.write_scaled(loop, "unsupported = True")
            with loop.block("if unsupported:"):
                loop.line(f"{self._fallback(loop)}.admit(g, {self.arguments.given})")
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
            loop.line(f"{loop.own('groups')}[{'()' if self.layout.is_whole else 'g.key'}] = g")
        if self.layout.keeps_entries:
            loop.line(f"{self._queue(loop, 'entries')}.append({self.entry})")
        for name in self.layout.kept:
            loop.line(f"{self._queue(loop, f'held_{name}')}.append({name})")
        if not self.layout.is_whole:
            loop.line(f"{loop.own('members')}.append(g)")
        loop.line(f"{loop.own('times')}.append(at)")

    def _filled(self, loop: Loop) -> str:
        """The text of a queue that is empty where the group at hand is."""
        return self._queue(loop, "entries") if self.layout.keeps_entries else loop.own("times")

    def write_dropped(self, loop: Loop) -> None:
        """The event at hand is in the window, but in no group."""
        loop.line(f"{loop.own('members')}.append(None)")
        loop.line(f"{loop.own('times')}.append(at)")

    def write_leave(self, loop: Loop) -> None:
        """The oldest event of the window leaves."""
        loop.line(f"{loop.own('times')}.popleft()")
        loop.observed("left(p)")
        if self.layout.is_whole:
            self._write_only(loop)
            self._write_leaving(loop)
            return
        loop.line(f"g = {loop.own('members')}.popleft()")
        with loop.block("if g is not None:"):
            self._write_leaving(loop)

    def _write_leaving(self, loop: Loop) -> None:
        """The oldest event of the group `g` leaves."""
        if self.layout.keeps_entries:
            loop.line(f"{self._queue(loop, 'entries')}.popleft()")
        for name in self.layout.kept:
            loop.line(f"{name} = {self._queue(loop, f'held_{name}')}.popleft()")
        with loop.block(f"if not {self._filled(loop)}:"):
            loop.line(f"del {loop.own('groups')}[{'()' if self.layout.is_whole else 'g.key'}]")
            if self.layout.is_whole:
                loop.line("g.reset()")
        with loop.block("else:"):
            if self.arguments.valued:
                with loop.block("if g.acc is not None:"):
                    loop.line(f"{self._fallback(loop)}.withdraw(g, {self.arguments.given})")
                with loop.block("else:"):
                    self.arguments.write_inline(loop, "remove")
            else:
                self.arguments.write_inline(loop, "remove")
            for place, call in self.arguments.accumulated.items():
                with unless_skipped(loop, call, f"f_{place}"):
                    loop.line(f"g.acc_{place}.remove(f_{place}, event)")

    def _fallback(self, loop: Loop) -> str:
        return loop.names.bind(self.fallback, "fallback")

    def refuse_group(self) -> None:
        """There may be no further group."""
        raise over_max_groups(self.max_groups)
