"""Observe a sampled rule for a timeline: the stays of events in the window, and the samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from sql.algebra.sample.instance import Instance
from sql.algebra.sample.windows.group_entry import leaves_at_once
from sql.explain.timelines.timeline import Row, Sample, label_of
from sql.plan.bound import Read
from sql.plan.clauses import GroupWindowPlan


class Recorder(Protocol):
    """The recorder of a tap's observations: rows of a source, found by their identity."""

    def came(self, index: int, row: Row) -> None: ...
    def entered_row(self, index: int, row: Row, at_ms: int) -> None: ...
    def left_row(self, index: int, row: Row, at_ms: int) -> None: ...
    def sampled(self, sample: Sample) -> None: ...


class SampledTap:
    """The tap of one sampled rule."""

    def __init__(self, window: GroupWindowPlan, recorder: Recorder) -> None:
        self.recorder = recorder
        # Events leave the state at the next sample; in the picture they leave at their nominal instant.
        self.life_ms = None if leaves_at_once(window) else window.length_ms + window.delay_ms or None
        self.key_columns = [
            part.column for part in window.partition_by if isinstance(part, Read) and part.column
        ]
        self.newest: tuple[int, Row, int] = (0, {}, 0)
        """The event that passed last: its source, its row, its instant."""
        self.members: dict[Any, deque[tuple[int, Row, int]]] = {}
        self.keys: dict[Any, str] = {}

    def passed(self, index: int, event: Any, at_ms: int) -> None:
        """Record that an event has passed FILTER; one of a join is as wide as FROM, with one row in it."""
        row = event[index] if isinstance(event, tuple) else event
        self.newest = (index, row, at_ms)
        self.recorder.came(index, row)

    def entered(self, p: Instance) -> None:
        """Record that the event that passed last has entered the window."""
        index, row, at_ms = self.newest
        if self.key_columns and p not in self.keys:
            self.keys[p] = label_of(row, self.key_columns)
        self.members.setdefault(p, deque()).append(self.newest)
        self.recorder.entered_row(index, row, at_ms)

    def left(self, p: Instance) -> None:
        """Record that the oldest event has left."""
        index, row, entry_ms = self.members[p].popleft()
        at_ms = self.newest[2] if self.life_ms is None else entry_ms + self.life_ms
        self.recorder.left_row(index, row, at_ms)

    def cleared(self, p: Instance, at_ms: int) -> None:
        """Record that all events have left."""
        for index, row, _ in self.members.pop(p, ()):
            self.recorder.left_row(index, row, at_ms)

    def shown(self, p: Instance, start_ms: int, end_ms: int, trigger_ms: int, rows: Sequence[Any]) -> None:
        """Record a sample of the window."""
        self.recorder.sampled(Sample(start_ms, end_ms, trigger_ms, self.keys.get(p, ""), list(rows)))
