"""Windows that show their rows instead of groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.algebra.event import Event
from sql.algebra.event_store import EventStore
from sql.algebra.sample.content import Content, Entries, Sample
from sql.algebra.sample.instance import Instance
from sql.algebra.sample.text import Loop
from sql.types import Saved


class SampleRows(Content):
    """The entries of the events, in order; None for one that WHERE dropped. `times` where
    they leave one by one."""

    def __init__(self, entries: Entries, *, leaves: bool) -> None:
        self.entries = entries
        self.leaves = leaves
        self.slots = {"members": "deque()", **({"times": "deque()"} if leaves else {})}

    def write_helpers(self, loop: Loop) -> None:
        if self.leaves:
            self.write_leave_function(loop)

    def write_enter(self, loop: Loop) -> None:
        self._write_kept(loop, self.entries.text)

    def write_dropped(self, loop: Loop) -> None:
        self._write_kept(loop, "None")

    def _write_kept(self, loop: Loop, text: str) -> None:
        loop.line(f"{loop.own('members')}.append({text})")
        if self.leaves:
            loop.line(f"{loop.own('times')}.append(at)")

    def write_leave(self, loop: Loop) -> None:
        loop.line(f"{loop.own('times')}.popleft()")
        loop.line(f"{loop.own('members')}.popleft()")
        loop.observed("left(p)")

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

    def pack(self, p: Instance) -> Saved:
        entries = [None if entry is None else [self.entries.pack(entry)] for entry in p.members]
        return {"entries": entries, "times": list(p.times) if self.leaves else []}

    def unpack(self, p: Instance, state: Saved, store: EventStore) -> None:
        p.members.extend(
            None if entry is None else self.entries.unpack(entry[0]) for entry in state["entries"]
        )
        if self.leaves:
            p.times.extend(state["times"])


class Judged(Content):
    """All rows of a window, each beside the aggregates over the whole of it."""

    def __init__(self, rows: SampleRows, whole: Content) -> None:
        self.rows = rows
        self.whole = whole
        self.slots = {**rows.slots, **whole.slots}

    @property
    def folded(self) -> Content:
        return self.whole

    def write_helpers(self, loop: Loop) -> None:
        self.whole.write_helpers(loop)

    def generated(self, functions: dict[str, Any]) -> None:
        self.whole.generated(functions)

    def write_enter(self, loop: Loop) -> None:
        self.whole.write_enter(loop)
        self.rows.write_enter(loop)

    def sample(self, p: Instance) -> Sample:
        values = [found for _, found in self.whole.sample(p)]
        return [(entry, values[0]) for entry, _ in self.rows.sample(p)] if values else []

    def clear(self, p: Instance) -> None:
        self.rows.clear(p)
        self.whole.clear(p)

    def is_empty(self, p: Instance) -> bool:
        return self.rows.is_empty(p)

    def retained(self, p: Instance) -> int:
        return self.rows.retained(p)

    def held(self, p: Instance) -> Iterable[Any]:
        return self.whole.held(p)

    def pack(self, p: Instance) -> Saved:
        return {"rows": self.rows.pack(p), "whole": self.whole.pack(p)}

    def unpack(self, p: Instance, state: Saved, store: EventStore) -> None:
        self.rows.unpack(p, state["rows"], store)
        self.whole.unpack(p, state["whole"], store)


class JoinedSample(SampleRows):
    """Events whose sample is evaluated from the beginning: they are joined, or WHERE
    reads what was shown before.

    A sample takes the joined rows through WHERE into a content of its own, and shows that.
    """

    def write_enter(self, loop: Loop) -> None:
        loop.line(f"event = {loop.names.bind(Event, 'Event')}(e, at, core.next_number(), {self._extra()})")
        self._write_kept(loop, "event")

    def _extra(self) -> str:
        extras = "".join(f"x_{place}, " for place in range(self.entries.analytics))
        return f"({extras})" if extras else "None"

    def sample(self, p: Instance) -> Sample:
        raise AssertionError("the core joins the events before it shows them")

    def held(self, p: Instance) -> Iterable[Any]:
        return p.members

    def pack(self, p: Instance) -> Saved:
        return {"events": [event.seq for event in p.members], "times": list(p.times) if self.leaves else []}

    def unpack(self, p: Instance, state: Saved, store: EventStore) -> None:
        p.members.extend(map(store.find, state["events"]))
        if self.leaves:
            p.times.extend(state["times"])
