"""The loop of a sampled rule: events come into the instances of its window, and these are
shown when they are due.

The functions are written once for a plan and take the core and the instance, so that an
instance is only its slots.

    enter(core, rows, at)       events of one instant, or with `at` the instants of each
    leave(core, p, edge)        events at or before an instant leave, where they leave one by one
    fold(core, p, events, …)    the rows of a join, through WHERE, into the content of one sample

What is shown or fails goes to the owner: a rule, or what several rules share.

An instance stands in the heap of timers at its deadline or before: one that is found there too early is put
where it belongs. So a session that each event prolongs costs nothing per event.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from math import inf
from typing import Any, Protocol

from sql.algebra.budget import Budget
from sql.algebra.deadlines import Deadlines
from sql.algebra.event import Event
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.algebra.sample.compose import SampleParts
from sql.algebra.sample.content import Sample
from sql.algebra.sample.instance import Instance
from sql.algebra.sample.source_join import SourceJoin
from sql.algebra.sample.windows.window import Window
from sql.algebra.sample.write import write_core
from sql.codegen.source import Generated, SourceWriter


class Instances:
    """The instances of one core. `p.order` is None for one that is not among them (yet)."""

    def __init__(self, window: Window, make: Callable[[Hashable], Instance], *, keyed: bool) -> None:
        self.window = window
        self.make = make
        self.keyed = keyed
        self.count = 0
        self.parts: dict[Hashable, Instance] = {}
        self.deadlines: Deadlines[Instance] = Deadlines()
        self.whole: Instance | None = None
        """The only instance of a window without keys."""
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.parts.clear()
        self.deadlines.clear()
        self.whole = None
        if not self.keyed:
            self.whole = self.make(())
            self.register(self.whole)

    def register(self, p: Instance) -> None:
        """An instance that has taken its first event in."""
        p.order = self.count
        self.count += 1
        self.parts[p.key] = p

    def leave_blank(self, p: Instance) -> None:
        """Forget the instance of a key if it holds nothing."""
        if self.keyed and p.order is not None and self.window.is_blank(p):
            del self.parts[p.key]
            self.deadlines.move(p, None)
            p.order = None

    # --- timers ---------------------------------------------------------------------------------------------

    @property
    def due_ms(self) -> float:
        """An instant before which nothing is due."""
        heap = self.deadlines.heap
        due_ms: float = heap[0][0] if heap else inf
        return due_ms

    def queue(self, p: Instance) -> None:
        """Note the deadline of an instance."""
        deadline = self.window.deadline(p)
        if deadline is not None and p.order is not None and (p.due_ms is None or deadline < p.due_ms):
            self.deadlines.move(p, deadline, p.order)

    def next_deadline(self) -> int | None:
        while (p := self.deadlines.first()) is not None:
            deadline = self.window.deadline(p)
            if deadline == p.due_ms:
                break
            self.deadlines.move(p, deadline, p.order or 0)
        return None if p is None else p.due_ms

    def take_due(self, until_ms: int) -> Instance | None:
        """The instance that is due next, at `until_ms` at the latest, which has no deadline then; None if
        there is none."""
        deadline = self.next_deadline()
        return None if deadline is None or deadline > until_ms else self.deadlines.pop()


class CoreOwner(Protocol):
    """Whom a core works for."""

    def shown(self, sample: Sample, start_ms: int, end_ms: int, trigger_ms: int) -> Sequence[Any]:
        """The window [start, end) is shown; its rows."""

    def failed(self, row: object, error: BaseException, at_ms: int) -> None:
        """An event could not be evaluated."""

    def skipped(self, windows: int) -> None:
        """So many empty windows in a row are not shown."""

    def done(self) -> None:
        """Called when all that was due up to an instant has been shown."""


class CoreCode:
    """The generated functions of a plan's window and content."""

    def __init__(self, parts: SampleParts) -> None:
        self.parts = parts
        writer = SourceWriter()
        write_core(writer, parts)
        self.code = Generated(writer, parts.functions.names.bound)
        parts.window.functions = parts.content.functions = self.code.functions
        if parts.shown is not None:
            parts.shown.functions = self.code.functions
        self.entrances = [self.code[f"enter_{index}"] for index in range(len(parts.filters))]


class Core:
    """The instances of a plan's window. Cores with the same code differ in these alone."""

    def __init__(
        self,
        code: CoreCode,
        owner: CoreOwner,
        now_ms: int,
        *,
        see: Callable[[Any], list[Any]] | None,
        join: SourceJoin | None,
        budget: Budget | None = None,
        is_one_of_many: bool = False,
    ) -> None:
        """`budget`: of a content that keeps something of every event."""
        parts = self.parts = code.parts
        self.window = parts.window
        self.content = copy(parts.content) if is_one_of_many else parts.content
        """What waits to be folded is counted for each core by itself."""
        self.folded = parts.shown or self.content
        """The content that takes the events into groups."""
        self.tap = parts.tap
        self.functions = parts.functions
        self.context = parts.functions.writer.context
        self.owner = owner
        self.budget = budget
        self.analytic = see
        self.join = join
        self.number = 0
        """The number of the newest event that needs one."""
        self.is_stepping = False
        self.has_moved = False
        """True if a window has opened or closed since its family looked."""
        self.code, self.entrances = code.code, code.entrances
        self.instances = Instances(
            self.window, self.code["Instance"], keyed=bool(parts.window.plan.partition_by)
        )
        self.shown = self.code["Shown"](()) if parts.shown is not None else None
        """The instance that a sample takes the joined rows into."""
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """Begin with empty windows."""
        self.instances.clear()
        if self.instances.whole is not None:
            self.window.begin(self.instances.whole, now_ms)
            self.instances.queue(self.instances.whole)

    @property
    def all(self) -> Iterable[Any]:
        return self.instances.parts.values()

    # --- events ---------------------------------------------------------------------------------------------

    def enter(self, rows: Sequence[Any], at: int | Sequence[int], index: int = 0) -> None:
        """Events of one source: all at the instant `at`, or in event time with `at` the instants of each."""
        self.entrances[index](self, rows, at)
        self.content.note_came(len(rows), self.all)

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def see(self, row: object, at_ms: int) -> list[Any]:
        """The values of the analytic functions for an event."""
        assert self.analytic is not None
        return self.analytic(Event(row, at_ms, 0))

    def open(self, p: Instance, at_ms: int) -> float:
        """The first event of a window has come; when something is due next."""
        if p.order is None:
            self.instances.register(p)
        self.has_moved = True
        self.window.opened(p, at_ms)
        self.instances.queue(p)
        return self.instances.due_ms

    # --- time -----------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        return self.instances.next_deadline()

    def step(self, now_ms: int) -> float:
        """Do what is due at or before an instant, each window at its own; when something is due next."""
        self.is_stepping = self.has_moved = True
        self.window.time_moves()
        while (p := self.instances.take_due(now_ms)) is not None:
            self.window.fire(self, p, now_ms)
            self.instances.leave_blank(p)
            if p.order is not None:
                self.instances.queue(p)
        self.is_stepping = False
        self.owner.done()
        return self.instances.due_ms

    def flush(self) -> None:
        """The bounded source has ended: open windows close at their nominal instants."""
        while (deadline := self.next_deadline()) is not None:
            if self.instances.whole is not None and self.window.is_idle(self.instances.whole):
                return
            self.step(deadline)

    # --- samples --------------------------------------------------------------------------------------------

    def show(self, p: Instance, start_ms: int, end_ms: int, trigger_ms: int) -> None:
        self.context.now_ms = trigger_ms
        content = self.parts.shown
        if content is None or self.shown is None:
            rows = self.owner.shown(self.content.sample(p), start_ms, end_ms, trigger_ms)
        else:
            events = p.members if self.join is None else self.join(p.members, trigger_ms)
            self.code["fold"](self, self.shown, events, trigger_ms)
            rows = self.owner.shown(content.sample(self.shown), start_ms, end_ms, trigger_ms)
            content.clear(self.shown)
        if self.tap is not None:
            self.tap.shown(p, start_ms, end_ms, trigger_ms, rows)

    def close(self, p: Instance, start_ms: int, end_ms: int) -> None:
        self.show(p, start_ms, end_ms, end_ms)
        self.content.clear(p)
        self.instances.leave_blank(p)
        if self.tap is not None:
            self.tap.cleared(p, end_ms)

    def skip_empty(self, windows: int) -> None:
        self.owner.skipped(windows)

    # --- state ----------------------------------------------------------------------------------------------

    def retained(self) -> int:
        return sum(map(self.content.retained, self.all))

    def held(self) -> Iterable[Event]:
        """Events that the state refers to by their number."""
        for p in self.all:
            yield from self.content.held(p)
        if self.join is not None:
            for table in self.join.tables.values():
                yield from table

    def pack(self) -> dict[str, Any]:
        packed = [
            [pack_key(p.key), p.order, self.window.pack(p), self.content.pack(p)]
            for p in self.all
            if not self.instances.keyed or not self.window.is_blank(p)
        ]
        tables = {} if self.join is None else self.join.pack()
        return {"parts": packed, "count": self.instances.count, "number": self.number, "tables": tables}

    def unpack(self, state: dict[str, Any], store: EventStore) -> None:
        """Put a snapshot back, in the place of what is held."""
        self.instances.clear()
        for key, order, marks, content in state["parts"]:
            p = self.instances.whole
            if p is None:
                p = self.code["Instance"](unpack_key(key))
                self.instances.register(p)
                p.order = order
            self.window.unpack(p, marks)
            self.content.unpack(p, content, store)
            self.instances.queue(p)
        self.instances.count = state["count"]
        self.number = state["number"]
        if self.join is not None:
            self.join.unpack(state["tables"], store)
