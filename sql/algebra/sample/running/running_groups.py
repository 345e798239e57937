"""Groups of windows that events leave one by one: sliding, count with an interval, and
hopping where panes do not do.

A group has its aggregates at any time, as the groups of statements do. A snapshot holds the events in the
window, from which everything else follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.accumulators import SKIP
from sql.algebra.event import Event
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.algebra.kept import Accumulated
from sql.algebra.sample.content import Content, Entries, Sample
from sql.algebra.sample.instance import Instance, RunningGroup
from sql.algebra.sample.running.group_text import GroupText
from sql.codegen.loop import LoopWriter


class RunningGroups(Content):
    """Groups that events enter and leave. `members`: the group of each event, None where WHERE dropped it."""

    def __init__(self, text: GroupText, entries: Entries, shows_empty: object) -> None:
        """`shows_empty`: the row of no events, None where there is no such row."""
        self.text = text
        self.entries = entries
        self.shows_empty = shows_empty
        self.slots, self.locals = text.slots, text.locals

    # --- code -----------------------------------------------------------------------------------------------

    def write_helpers(self, loop: LoopWriter) -> None:
        self.text.write_group(loop)
        self.write_leave_function(loop)
        self.text.write_results(loop)

    def write_enter(self, loop: LoopWriter) -> None:
        self.text.write_enter(loop)

    def write_dropped(self, loop: LoopWriter) -> None:
        self.text.write_dropped(loop)

    def write_leave(self, loop: LoopWriter) -> None:
        self.text.write_leave(loop)
        self.observe(loop, "left(p)")

    # --- called by the window -------------------------------------------------------------------------------

    def sample(self, p: Instance) -> Sample:
        groups, results = self._groups(p), self.functions["results"]
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), results(self.functions["Group"](())))]
        if "entries" not in self.text.queues:
            return [(None, results(g)) for g in groups]
        if len(groups) > 1:
            groups.sort(key=lambda g: g.numbers[0])
        return [(g.entries[0], results(g)) for g in groups]

    def _groups(self, p: Instance) -> list[RunningGroup]:
        """The groups with events."""
        if self.text.is_whole:
            return [p.only] if p.times else []
        return list(p.groups.values())

    def clear(self, p: Instance) -> None:
        p.times.clear()
        if self.text.is_whole:
            p.only = self.functions["Group"](())
        else:
            p.groups.clear()
            p.members.clear()

    def is_empty(self, p: Instance) -> bool:
        return not p.times

    def retained(self, p: Instance) -> int:
        return len(p.times)

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, p: Instance) -> list[list[Any]]:
        """Each event in order: its instant, and where WHERE let it through, key, entry, number, and what it
        contributed."""
        events = {id(g): self._events(g) for g in self._groups(p)}
        members = repeat(p.only) if self.text.is_whole else p.members
        out: list[list[Any]] = []
        for time_ms, g in zip(p.times, members, strict=False):
            if g is None:
                out.append([time_ms])
                continue
            entry, number, given = next(events[id(g)])
            kept = self.entries.pack(entry) if "entries" in self.text.queues else None
            packed = [[] if value is SKIP else [encode(value)] for value in self._arguments(given)]
            out.append([time_ms, pack_key(g.key), kept, number or 0, packed])
        return out

    def _events(self, g: RunningGroup) -> Iterator[tuple[Any, ...]]:
        """Entry, number and contributions of each event of a group."""
        queues = {"entries": repeat(None), "numbers": repeat(None), "given": repeat(None)}
        return zip(*(getattr(g, name) if name in self.text.queues else none for name, none in queues.items()),
                   strict=False)  # fmt: skip

    def unpack(self, p: Instance, state: list[list[Any]], store: EventStore) -> None:
        queues, put = self.text.queues, self.functions["put"]
        for time_ms, *rest in state:
            if not rest:
                p.times.append(time_ms)
                p.members.append(None)
                continue
            key, number = unpack_key(rest[0]), rest[2]
            entry = self.entries.unpack(rest[1]) if "entries" in queues else None
            g = p.only if self.text.is_whole else p.groups.get(key) or self.functions["Group"](key)
            event = Event(self.entries.row(entry), time_ms, number) if "events" in queues else None
            given = self._given([decode(value[0]) if value else SKIP for value in rest[3]])
            put(p, g, entry, time_ms, number, given, event)

    def _arguments(self, given: object) -> list[Any]:
        """The arguments of an event from what it contributed: of the calls with statements each distinct
        one, then what accumulators got."""
        kept, known, fed = self.text.kept, {}, []
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
        kept, values = self.text.kept, iter(arguments)
        known = {node: next(values) for node in kept.arguments}
        given = [
            value
            for part in kept.parts
            for value in ([next(values)] if isinstance(part, Accumulated) else part.given(known[part.node]))
        ]
        return tuple(given) if len(given) > 1 else given[0] if given else None
