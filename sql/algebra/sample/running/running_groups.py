"""Groups of windows that events leave one by one: sliding, count with an interval, and
hopping where panes do not do.

What is kept of a group are slots of a generated class, which the statements of `sql.aggregates.inline`
change. The unit of a group becomes finer with the first number that needs it. From a value that statements do
not take on (text, NaN, whole numbers of any size) the group's accumulators take its events. Aggregates
without statements have their accumulators from the beginning. A snapshot holds the events in the window, from
which everything else follows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.accumulators import SKIP
from sql.algebra.event import Event
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.algebra.sample.content import Content, Entries, Entry, Sample
from sql.algebra.sample.instance import Instance, RunningGroup
from sql.algebra.sample.running.fallback import Fallback
from sql.algebra.sample.running.fold_arguments import GroupLayout
from sql.algebra.sample.running.group_text import GroupText
from sql.algebra.sample.text import Loop


class RunningGroups(Content):
    """Groups that events enter and leave. `members`: the group of each event, None where WHERE dropped it."""

    def __init__(self, layout: GroupLayout, entries: Entries, max_groups: int, shows_empty: object) -> None:
        """`shows_empty`: the row of no events, None where there is no such row."""
        self.layout = layout
        self.entries = entries
        self.shows_empty = shows_empty
        self.slots, self.aliases = layout.slots, layout.aliases
        self.fallback = Fallback(layout.arguments)
        self.text = GroupText(layout, self.fallback, entries.text, max_groups)

    # --- code -----------------------------------------------------------------------------------------------

    def generated(self, functions: dict[str, Any]) -> None:
        super().generated(functions)
        self.fallback.add = functions["add"]

    def write_helpers(self, loop: Loop) -> None:
        self.text.write_group(loop)
        self.write_leave_function(loop)
        self.text.write_results(loop)

    def write_enter(self, loop: Loop) -> None:
        self.text.write_enter(loop)

    def write_dropped(self, loop: Loop) -> None:
        self.text.write_dropped(loop)

    def write_leave(self, loop: Loop) -> None:
        self.text.write_leave(loop)

    # --- called by the window -------------------------------------------------------------------------------

    def sample(self, p: Instance) -> Sample:
        groups, results = p.groups, self.functions["results"]
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), results(self.functions["Group"](())))]
        in_order = sorted(groups.values(), key=_first) if len(groups) > 1 else groups.values()
        if not self.layout.keeps_entries:
            return [(None, results(g)) for g in in_order]
        return [(g.entries[0], results(g)) for g in in_order]

    def clear(self, p: Instance) -> None:
        p.groups.clear()
        p.times.clear()
        if self.layout.is_whole:
            p.only.__init__(())
        else:
            p.members.clear()

    def is_empty(self, p: Instance) -> bool:
        return not p.times

    def retained(self, p: Instance) -> int:
        return len(p.times)

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, p: Instance) -> list[list[Any]]:
        """Each event in order: its instant, and where WHERE let it through, key, entry, number and values."""
        held = {id(g): zip(*self._queues(p, g), strict=True) for g in p.groups.values()}
        out: list[list[Any]] = []
        members = repeat(p.groups.get(()), len(p.times)) if self.layout.is_whole else p.members
        for time_ms, g in zip(p.times, members, strict=True):
            if g is None:
                out.append([time_ms])
                continue
            entry, number, *values = next(held[id(g)])
            plain = [[] if value is SKIP else [encode(value)] for value in values]
            kept = self.entries.pack(entry) if self.layout.keeps_entries else None
            out.append([time_ms, pack_key(g.key), kept, number, plain])
        return out

    def _queues(self, p: Instance, g: RunningGroup) -> list[Iterable[Any]]:
        """The data kept of the events of a group: entries, numbers, values."""
        entries = g.entries if self.layout.keeps_entries else repeat(None, len(p.times))
        numbers = (
            g.held_number
            if self.layout.is_numbered
            else repeat(0, len(p.times if self.layout.is_whole else g.entries))
        )
        return [entries, numbers, *(getattr(g, f"held_{name}") for name in self.layout.values)]

    def unpack(self, p: Instance, state: list[list[Any]], store: EventStore) -> None:
        for time_ms, *rest in state:
            p.times.append(time_ms)
            if not rest:
                p.members.append(None)
                continue
            key, number, packed = unpack_key(rest[0]), rest[2], rest[3]
            entry = self.entries.unpack(rest[1]) if self.layout.keeps_entries else None
            values = [decode(value[0]) if value else SKIP for value in packed]
            self._put(p, time_ms, key, entry, number, values)

    def _put(
        self, p: Instance, time_ms: int, key: Hashable, entry: Entry, number: int, values: list[Any]
    ) -> None:
        """An event that was in the window is in it again."""
        g = p.groups.get(key)
        if g is None:
            g = p.groups[key] = p.only if self.layout.is_whole else self.functions["Group"](key)
        given = values[: len(self.layout.arguments.valued)]
        if g.acc is not None or not self.fallback.add(g, *given):
            self.fallback.admit(g, tuple(given))
        if self.layout.arguments.accumulated:
            event = Event(self.entries.row(entry), time_ms, number)
            for place, value in zip(
                self.layout.arguments.accumulated, values[len(self.layout.arguments.valued) :], strict=True
            ):
                if value is not SKIP:
                    getattr(g, f"acc_{place}").add(value, event)
            g.held_event.append(event)
        if self.layout.is_numbered:
            g.held_number.append(number)
        for name, value in zip(self.layout.values, values, strict=True):
            getattr(g, f"held_{name}").append(value)
        if self.layout.keeps_entries:
            g.entries.append(entry)
        if not self.layout.is_whole:
            p.members.append(g)


def _first(g: Any) -> int:
    """The number of the oldest event of a group."""
    number: int = g.held_number[0]
    return number
