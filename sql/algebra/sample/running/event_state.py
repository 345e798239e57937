"""The state of running groups: the events in the window, from which everything else follows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.accumulators import SKIP
from sql.algebra.event import Event
from sql.algebra.event_store import pack_key, unpack_key
from sql.algebra.sample.content import Entries, Entry
from sql.algebra.sample.instance import Instance
from sql.algebra.sample.running.fallback import Fallback
from sql.algebra.sample.running.group_layout import GroupLayout
from sql.types import Saved


class EventState:
    """The part of a snapshot for each event in the window. `entries` packs the entry of a group."""

    def __init__(self, layout: GroupLayout, entries: Entries, fallback: Fallback) -> None:
        self.layout = layout
        self.entries = entries
        self.fallback = fallback
        self.new_group: Any = None
        """The generated class of groups."""

    def pack(self, p: Instance) -> Saved:
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

    def _queues(self, p: Instance, g: Any) -> list[Iterable[Any]]:
        """The data kept of the events of a group: entries, numbers, values."""
        entries = g.entries if self.layout.keeps_entries else repeat(None, len(p.times))
        numbers = (
            g.held_number
            if self.layout.is_numbered
            else repeat(0, len(p.times if self.layout.is_whole else g.entries))
        )
        return [entries, numbers, *(getattr(g, f"held_{name}") for name in self.layout.values)]

    def unpack(self, p: Instance, state: Saved) -> None:
        """Put the events of `pack` back into an empty window."""
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
            g = p.groups[key] = p.only if self.layout.is_whole else self.new_group(key)
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
