"""Groups of windows that events leave one by one: sliding, count with an interval, and
hopping where panes do not do.

A group has its aggregates at any time: the fold of statements writes it (`sql.algebra.fold`). What a window
shows of a group beside them is its oldest event. A snapshot holds the events in the window, from which
everything else follows.

    p.members   a b c d            events, each with its group; or only what each contributed, where nothing
    p.groups    x: a c   y: b d    else of them is read
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import islice
from typing import Any

from sql.aggregates.base import Removal
from sql.aggregates.plain_values import decode, encode
from sql.algebra.accumulators import SKIP
from sql.algebra.event import NOTHING, Event
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.algebra.fold import Fold
from sql.algebra.kept import Accumulated, inline_form
from sql.algebra.retain.values import ABSENT
from sql.algebra.sample.content import Content, Entries, Sample
from sql.algebra.sample.instance import Instance, write_locals
from sql.codegen.loop import LoopWriter
from sql.errors import over_max_groups
from sql.plan.logical import Plan
from sql.types import Saved, Value


class RunningGroups(Content):
    """Groups that events enter and leave; without GROUP BY there is one, `whole`."""

    def __init__(self, plan: Plan, entries: Entries, shows_empty: object, *, reads_rows: bool) -> None:
        """`shows_empty`: the row of no events, None where there is no such row. `reads_rows`: what is shown
        reads columns of a group's oldest event."""
        has_statements = all(inline_form(call, Removal.FIFO) for call in plan.aggregates)
        self.keeps_values = has_statements and not plan.group_by and not reads_rows
        """True if `members` has what each event contributed, in the place of the event."""
        self.fold = Fold(plan, Removal.FIFO, keeps_values=self.keeps_values, counts=plan.where is not None)
        self.entries = entries
        self.shows_empty = shows_empty
        self.owner = "g." if self.fold.is_grouped else "whole."
        """The text before the attributes of the group that the event at hand enters."""
        groups = {"groups": "{}"} if self.fold.is_grouped else {"whole": "Group(())"}
        self.slots = {"times": "deque()", "members": "deque()", **groups}
        self.locals = {name: f"p.{name}" for name in self.slots}
        if self.fold.is_grouped:
            self.locals = {**self.locals, "get": "groups.get"}

    # --- code -----------------------------------------------------------------------------------------------

    def write_helpers(self, loop: LoopWriter) -> None:
        loop.names.bound |= {
            "ABSENT": ABSENT, "NOTHING": NOTHING, "Event": Event, "over_max_groups": over_max_groups,
        }  # fmt: skip
        queue = {} if self.keeps_values else {"events": "deque()"}
        self.fold.write_group_class(loop.source, loop.names.bind, queue)
        self.write_leave_function(loop)
        with loop.block("def results(g):"):
            loop.line(f"return ({''.join(f'{text}, ' for text in self.results(loop, 'g.'))})")
        loop.line("")
        with loop.block("def put(p, x, at):"):
            self._write_put(loop)
        loop.line("")

    def results(self, loop: LoopWriter, owner: str) -> list[str]:
        """The texts of the values of the aggregates over a group."""
        return [code.text for code in self.fold.kept.codes(owner, loop.names.bind).values()]

    def write_enter(self, loop: LoopWriter) -> None:
        self.fold.write_values(loop, "", self.owner)
        if not self.keeps_values:
            loop.line("number = core.number = core.number + 1")
            loop.line(f"x = Event(e, at, number, {self.entries.extra}, g, {self.fold.kept.values})")
        self._write_entered(loop)

    def _write_entered(self, loop: LoopWriter) -> None:
        """The event `x`, whose contributions are in locals, counts in its group."""
        self.fold.enter(loop, self.owner)
        if not self.keeps_values:
            loop.line("g.events.append(x)")
        loop.line("members.append(x)")
        loop.line("times.append(at)")

    def write_dropped(self, loop: LoopWriter) -> None:
        loop.line(f"members.append({'ABSENT' if self.keeps_values else 'NOTHING'})")
        loop.line("times.append(at)")

    def _write_put(self, loop: LoopWriter) -> None:
        """An event of a snapshot enters, or what it contributed."""
        write_locals(loop.source, self.locals)
        remembered = ", ".join(self.fold.kept.remembered)
        if remembered:
            loop.line(f"{remembered} = {'x' if self.keeps_values else 'x.values'}")
        if not self.keeps_values:
            loop.line("g = x.group")
        self._write_entered(loop)

    def write_leave(self, loop: LoopWriter) -> None:
        loop.line("times.popleft()")
        loop.line("y = members.popleft()")
        all_count = self.keeps_values and not self.fold.counts
        with nullcontext() if all_count else self.fold.left(loop.source):
            if not self.keeps_values:
                loop.line("h.events.popleft()")
            self.fold.leave(loop, "h." if self.fold.is_grouped else "whole.")
        self.observe(loop, "left(p)")

    # --- called by the window -------------------------------------------------------------------------------

    def sample(self, p: Instance) -> Sample:
        groups, results = self._groups(p), self.functions["results"]
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), results(self.functions["Group"](())))]
        if self.keeps_values:
            return [(None, results(g)) for g in groups]
        groups.sort(key=lambda g: g.events[0].seq)
        return [(self.entries.of(g.events[0]), results(g)) for g in groups]

    def _groups(self, p: Instance) -> list[Any]:
        """The groups with events."""
        if self.fold.is_grouped:
            return list(p.groups.values())
        return [p.whole] if (p.whole.n if self.fold.counts else p.times) else []

    def is_empty(self, p: Instance) -> bool:
        return not p.times

    def retained(self, p: Instance) -> int:
        return len(p.times)

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, p: Instance) -> list[list[Any]]:
        """Each event in order: its instant, and where WHERE let it through, key, entry, number, and what it
        contributed."""
        return [[at_ms, *self._packed(x)] for at_ms, x in zip(p.times, p.members, strict=True)]

    def _packed(self, x: Value) -> list[Any]:
        if x is ABSENT or x is NOTHING:
            return []
        key, entry, number = (), None, 0
        if not self.keeps_values:
            key, entry, number = x.group.key, self.entries.pack(self.entries.of(x)), x.seq
        given = x if self.keeps_values else x.values
        packed = [[] if value is SKIP else [encode(value)] for value in self._arguments(given)]
        return [pack_key(key), entry, number, packed]

    def unpack(self, p: Instance, state: list[list[Any]], store: EventStore) -> None:
        put = self.functions["put"]
        for at_ms, *packed in state:
            if packed:
                put(p, self._unpacked(p, at_ms, *packed), at_ms)
            else:
                p.times.append(at_ms)
                p.members.append(ABSENT if self.keeps_values else NOTHING)

    def _unpacked(
        self, p: Instance, at_ms: int, key: Saved, entry: Saved, number: int, packed: list[Any]
    ) -> Any:
        given = self._given([decode(value[0]) if value else SKIP for value in packed])
        if self.keeps_values:
            return given
        if self.fold.is_grouped:
            key = unpack_key(key)
            group = p.groups.get(key)
            if group is None:
                group = p.groups[key] = self.functions["Group"](key)
        else:
            group = p.whole
        row, extra = self.entries.parts(self.entries.unpack(entry))
        return Event(row, at_ms, number, extra, group, given)

    def _arguments(self, given: object) -> list[Any]:
        """The arguments of an event from what it contributed: of the calls with statements each distinct
        one, then what accumulators got."""
        kept, known, fed = self.fold.kept, {}, []
        values = iter(given if isinstance(given, tuple) and len(kept.remembered) > 1 else (given,))
        for part in kept.parts:
            own = list(islice(values, len(part.remembered)))
            if isinstance(part, Accumulated):
                fed += own
            else:
                known[part.node] = part.argument(own)
        return [*(known[node] for node in kept.arguments), *fed]

    def _given(self, arguments: list[Any]) -> Any:
        """The contribution of an event, from its arguments."""
        kept, values = self.fold.kept, iter(arguments)
        known = {node: next(values) for node in kept.arguments}
        given = [
            value
            for part in kept.parts
            for value in ([next(values)] if isinstance(part, Accumulated) else part.given(known[part.node]))
        ]
        return tuple(given) if len(given) > 1 else given[0] if given else None
