"""The content of a window: what it keeps of its events, and the rows it shows.

A content is one object for a rule. What it keeps of the events of one window is in the slots of an instance,
which it declares; it writes the statements by which an event comes in, and shows what an instance holds. The
contents that keep rows are here, those of groups in `folding` and `running`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import Event
from sql.algebra.event_store import EventStore, PackedRow, made_row, pack_row
from sql.algebra.sample.instance import Instance, Tap, write_locals
from sql.codegen.loop import LoopWriter
from sql.rows import MakeRow
from sql.types import Plain, Saved, Value

Entry = object
"""The row of an event; where analytic values are read, a tuple of it and of them."""

PackedEntry: TypeAlias = "PackedRow | list[PackedRow | Plain]"
"""An entry as plain data: its row, before the analytic values where those are read."""

Sample = Iterable[tuple[Entry, Sequence[Any]]]
"""Pairs of an entry, from which columns are read, and the values of the aggregates beside it."""


class Entries:
    """The entry that keeps an event's columns readable: its row, with analytic
    values if those are read.

    `text`: the entry of the event at hand; `extra`: what an `Event` holds of it beside the row.
    """

    def __init__(self, analytics: int, make_row: MakeRow) -> None:
        self.analytics = analytics
        self.make_row = make_row
        fixed = "".join(f"fixed_{place}, " for place in range(analytics))
        self.text = f"(e, {fixed})" if analytics else "e"
        self.extra = f"({fixed})" if analytics else "None"

    def of(self, event: Event) -> Any:
        return (event.row, *event.extra) if self.analytics else event.row

    def parts(self, entry: Value) -> tuple[Any, Any]:
        """The row of an entry, and what an `Event` holds of it beside."""
        return (entry[0], entry[1:]) if self.analytics else (entry, None)

    def empty(self, row: object) -> Any:
        """The entry of a row beside which there is nothing."""
        return (row, *[None] * self.analytics) if self.analytics else row

    def pack(self, entry: Value) -> PackedEntry:
        """An entry as plain data."""
        return [pack_row(entry[0]), *map(encode, entry[1:])] if self.analytics else pack_row(entry)

    def unpack(self, packed: Saved) -> Any:
        """The entry that was packed, a `PackedEntry`."""
        if self.analytics:
            return (made_row(packed[0], self.make_row), *map(decode, packed[1:]))
        return made_row(packed, self.make_row)


class Content(ABC):
    """The content of a window."""

    is_bounded = True
    """True if it keeps something of every event, so that `maxWindowEvents` applies."""

    came = 0
    """Events since `rest` was called."""
    came_max = 16_384

    slots: dict[str, str]
    """The attributes of an instance for it: names, and first values as Python text."""

    locals: Mapping[str, str] = MappingProxyType({})
    """The locals of a loop over one instance: names, and what they stand for."""

    tap: Tap | None = None

    functions: Mapping[str, Any] = MappingProxyType({})
    """Those of the text."""

    def write_helpers(self, loop: LoopWriter) -> None:
        """Functions and classes beside the loop."""

    @abstractmethod
    def write_enter(self, loop: LoopWriter) -> None:
        """The event at hand comes in, or raises a data error and has changed nothing."""

    def write_dropped(self, loop: LoopWriter) -> None:
        """The event at hand is in the window, but WHERE dropped it."""

    @abstractmethod
    def sample(self, p: Instance) -> Sample:
        """The rows an instance shows."""

    def clear(self, p: Instance) -> None:
        raise AssertionError(f"the events of {type(self).__name__} leave one by one")

    @abstractmethod
    def is_empty(self, p: Instance) -> bool:
        """True if nothing is kept."""

    def write_leave(self, loop: LoopWriter) -> None:
        """The oldest event of the window leaves."""
        raise AssertionError(f"nothing leaves a {type(self).__name__} singly")

    def write_expire(self, loop: LoopWriter, edge: str) -> None:
        """The events at or before an instant leave, one by one."""
        loop.line(f"edge = {edge}")
        with loop.block("while times and times[0] <= edge:"):
            self.write_leave(loop)

    def write_leave_function(self, loop: LoopWriter) -> None:
        """The function that `expire` calls."""
        with loop.block("def leave(p, edge):"):
            write_locals(loop.source, self.locals)
            with loop.block("while times and times[0] <= edge:"):
                self.write_leave(loop)
        loop.line("")

    def observe(self, loop: LoopWriter, call: str) -> None:
        """Write a call of the tap, if there is one."""
        if self.tap is not None:
            loop.line(f"{loop.names.bind(self.tap, 'tap')}.{call}")

    def cut(self, p: Instance, end_ms: int) -> None:
        """Events from `end_ms` on may be in other windows than those before it."""

    def expire(self, p: Instance, edge_ms: int) -> None:
        """Events at or before an instant leave."""
        self.functions["leave"](p, edge_ms)

    @abstractmethod
    def retained(self, p: Instance) -> int:
        """The number of events kept, in any form."""

    def note_came(self, count: int, parts: Iterable[Any]) -> None:
        """So many events have come into these instances."""
        self.came += count
        if self.came > self.came_max:
            self.rest(parts)

    def rest(self, parts: Iterable[Any]) -> None:
        """More than `came_max` events have come into these instances: bound what waits in them."""
        self.came = 0

    def held(self, p: Instance) -> Iterable[Any]:
        """Events that the state refers to by their number."""
        return ()

    @abstractmethod
    def pack(self, p: Instance) -> Saved:
        """The content as plain data."""

    @abstractmethod
    def unpack(self, p: Instance, state: Saved, store: EventStore) -> None:
        """Put a snapshot back into a fresh instance."""


class SampleRows(Content):
    """The entries of the events, in order; None for one that WHERE dropped. `times` where
    they leave one by one."""

    def __init__(self, entries: Entries, *, leaves: bool) -> None:
        self.entries = entries
        self.leaves = leaves
        queues = ("members", "times") if leaves else ("members",)
        self.slots = dict.fromkeys(queues, "deque()")
        self.locals = {name: f"p.{name}" for name in queues}

    def write_helpers(self, loop: LoopWriter) -> None:
        if self.leaves:
            self.write_leave_function(loop)

    def write_enter(self, loop: LoopWriter) -> None:
        self._write_kept(loop, self.entries.text)

    def write_dropped(self, loop: LoopWriter) -> None:
        self._write_kept(loop, "None")

    def _write_kept(self, loop: LoopWriter, text: str) -> None:
        loop.line(f"members.append({text})")
        if self.leaves:
            loop.line("times.append(at)")

    def write_leave(self, loop: LoopWriter) -> None:
        loop.line("times.popleft()")
        loop.line("members.popleft()")
        self.observe(loop, "left(p)")

    def sample(self, p: Instance) -> Sample:
        return [(entry, ()) for entry in p.members if entry is not None]

    def clear(self, p: Instance) -> None:
        p.members.clear()
        if self.leaves:
            p.times.clear()

    def is_empty(self, p: Instance) -> bool:
        return not p.members

    def retained(self, p: Instance) -> int:
        return len(p.members)

    def pack(self, p: Instance) -> dict[str, list[Any]]:
        entries = [None if entry is None else [self.entries.pack(entry)] for entry in p.members]
        return {"entries": entries, "times": list(p.times) if self.leaves else []}

    def unpack(self, p: Instance, state: dict[str, list[Any]], store: EventStore) -> None:
        p.members.extend(
            None if entry is None else self.entries.unpack(entry[0]) for entry in state["entries"]
        )
        if self.leaves:
            p.times.extend(state["times"])


class JoinedSample(SampleRows):
    """Events whose sample is evaluated from the beginning: they are joined, or WHERE
    reads what was shown before.

    A sample takes the joined rows through WHERE into a content of its own, and shows that.
    """

    def write_enter(self, loop: LoopWriter) -> None:
        event, extra = loop.names.bind(Event, "Event"), self.entries.extra
        self._write_kept(loop, f"{event}(e, at, core.next_number(), {extra})")

    def sample(self, p: Instance) -> Sample:
        raise AssertionError("the core joins the events before it shows them")

    def held(self, p: Instance) -> Iterable[Any]:
        return p.members

    def pack(self, p: Instance) -> dict[str, list[Any]]:
        return {"events": [event.seq for event in p.members], "times": list(p.times) if self.leaves else []}

    def unpack(self, p: Instance, state: dict[str, list[Any]], store: EventStore) -> None:
        p.members.extend(map(store.find, state["events"]))
        if self.leaves:
            p.times.extend(state["times"])
