"""A running statement: EPL statements and stream queries on their compiled text.

Events enter through the compiled loop, or as deltas of the sources (`sql.engine.statement.statement_sources`)
where several things change in one step. They are folded into groups (`sql.engine.statement.groups`),
and rows leave through the output (`sql.engine.statement.statement_output`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sql.algebra.event import Delta, Event, merged
from sql.algebra.event_store import EventStore
from sql.algebra.join.passing import Passing
from sql.algebra.join.store import Pulled
from sql.algebra.operator import earliest
from sql.algebra.output.limited_rows import Everything
from sql.algebra.output.output_triggers import Always
from sql.algebra.output.row_order import in_order
from sql.compiler.program import Program
from sql.compiler.shared_code import Environment
from sql.emission import Emission
from sql.engine.statement.into import TableFold
from sql.engine.statement.matches import is_plain, show_matches
from sql.engine.statement.recognized import is_alone, read_rows
from sql.engine.statement.requests import Requests
from sql.engine.statement.statement_core import Change, StatementCore
from sql.engine.statement.statement_output import ContentReader, Output
from sql.engine.statement.statement_sources import Sources

Loop = Callable[[StatementCore, Sequence[Any], int], None]
"""Takes the events of one stream, and their instant."""


class RunningStatement(StatementCore):
    """One instance of a compiled statement."""

    def __init__(self, program: Program, env: Environment) -> None:
        super().__init__(program, env)
        plan, text = program.plan, program.text
        self.sources = Sources(self, RunningStatement)
        if self.sources.subqueries is not None:
            self.instance_data.answers = self.sources.subqueries.answers
            self.begin(env.now_ms)
        self.loops: dict[str, Loop] = {stream: self.code[name] for stream, name in text.loops.items()}
        """By stream what takes its events; those of another one change sources."""
        if is_plain(plan):
            matches = self.sources.matches[0]
            self.loops = {stream: partial(show_matches, matches, stream) for stream in matches.streams}
        elif is_alone(plan):
            found = self.sources.recognized[0]
            self.loops = {plan.sources[0].stream: partial(read_rows, found, self.step)}
        self.into = TableFold(self) if plan.into_table is not None else None
        self.is_of_table = self.joined is None and isinstance(self.windows[0], Pulled)
        """True if the rows of one table are looked up, and nothing makes the statement post."""
        is_ordered = plan.order_by and plan.aggregates and plan.output is None
        self.posts_once = self.joined is None and bool(is_ordered)
        """True if all changes of a step are one: ORDER BY puts the rows of a step into one order, and those
        of one aggregate at several moments have none."""
        self.content = ContentReader(self, self.sources, self.into)
        asks = any(spread.kind == "requests" for spread in plan.spreads)
        self.output = Requests(self, self.content) if asks else Output(self, self.content)
        if self.is_of_table and (plan.aggregates or plan.group_by):
            self.content.count = partial(count_rows, self)  # its update goes to the output

    # --- events ---------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = now_ms
        self.begin(now_ms)
        self.counts["events_in"] += len(rows)
        loop = self.loops.get(stream)
        if loop is not None:
            loop(self, rows, now_ms)
        else:
            for row in rows:
                self.step(self.sources.enter(stream, row, now_ms), now_ms)
        return self.take()

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        self.now_ms = now_ms
        self.begin(now_ms)
        self.counts["events_in"] += sum(len(delta.inserted) for delta in changes.values())
        self.step(self.sources.fed(changes, now_ms), now_ms)
        return self.take()

    def fill(self, *, posts: bool = False) -> list[Emission]:
        self.begin(self.now_ms)
        begin_limit(self)
        if posts or (self.output.limit is not None and self.joined is None):
            self.step(self.sources.present(), self.now_ms)
            posted = self.take()
            return posted if posts else []
        for delta in self.sources.present():
            self.change(delta, [], [])
        self.output.updates.clear()
        self.take()
        return []

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        self.now_ms = now_ms
        self.begin(now_ms)
        self.sources.arriving(stream, row, now_ms)

    def step(self, deltas: Iterable[Change], now_ms: int) -> None:
        """All changes of one step, then its output."""
        new: list[Any] = []
        old: list[Any] = []
        change_all(self, deltas, new, old)
        self.output.end_step(now_ms, new, old)

    def change(self, delta: Change, new: list[Any], old: list[Any]) -> None:
        """One change, through the text: its rows go to `new` and `old`, or as an update to the output."""
        if not isinstance(delta, Delta):
            assert isinstance(self.joined, Passing)
            self.code["join"](self, *self.joined.sides(delta), self.now_ms, new)
            return
        if self.sources.starts_anew:
            self.groups.reset()
        if self.into is not None:
            collects = self.program.text.show.collects
            update = self.into.change(delta, [] if collects else new, [] if collects else old)
            if collects and update is not None:
                self.output.updates.append(update)
        elif self.program.text.show.collects:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms)
        else:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms, new, old)

    # --- time -----------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        if self.sources.late or self.output.is_pending or self.errors:
            return self.now_ms  # at the next advance of time
        return earliest((self.sources.next_deadline(), self.output.next_deadline()))

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due at or before `now_ms`, once, by due times; at one instant subqueries, then
        windows, then output."""
        self.now_ms = max(self.now_ms, now_ms)
        if self.analytic is not None:
            self.analytic.keep()
        self.begin(self.now_ms)
        if self.sources.subqueries is not None:
            self.sources.subqueries.reach(self.now_ms)
        new, old = list[Any](), list[Any]()
        change_all(self, due_changes(self, new, old, now_ms), new, old)
        if self.output.is_pending:
            self.output.tick_after(new, old, now_ms)
        self.output.end_step(now_ms, new, old, is_timer=True)
        self.output.advance(now_ms)
        return self.take()

    def terminate(self, now_ms: int) -> list[Emission]:
        self.now_ms = max(self.now_ms, now_ms)
        self.begin(self.now_ms)
        self.output.terminate(now_ms)
        return self.take()

    def flush(self, now_ms: int) -> list[Emission]:
        return self.output.flush(now_ms)

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.now_ms = max(self.now_ms, now_ms)
        self.sources.variable_changed(name, self.now_ms)
        self.output.variable_changed(name)

    # --- looking --------------------------------------------------------------------------------------------

    def present(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the present content, made at an instant; while a batch is being released, of this
        batch."""
        self.begin(now_ms)
        return in_order(self.content.present_rows(), self.plan, self.output.row_limit, self.output.spreads)

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the content between two steps; of a batch window what it collects."""
        self.begin(now_ms)
        limit = self.output.limit
        kind, given = self.plan.row_kind, None if limit is None else limit.given
        output = self.plan.output
        mode = None if output is None else output.mode
        holds = limit is not None and not isinstance(limit.condition, Always) and not self.is_of_table
        if kind == "aggregate" and isinstance(given, Everything) and mode != "all" and holds:
            return [row.row for row in given.shown]  # rows held back are not in it yet
        if kind == "group" and mode != "snapshot" and not any(source.keeps for source in self.plan.sources):
            return []
        for window in self.windows:
            window.end_step()
        with self.reading():
            return self.present(now_ms)

    def counters(self) -> dict[str, int]:
        warnings = self.program.warnings
        counts = {**self.counts, "division_by_zero": warnings.division_by_zero}
        if warnings.several_rows:
            counts["several_rows"] = warnings.several_rows
        for machine in self.sources.machines.values():
            for name, count in machine.counters().items():
                counts[name] = counts.get(name, 0) + count
        return counts

    # --- state ----------------------------------------------------------------------------------------------

    def _beside_windows(self) -> Iterable[Event]:
        """The events the state refers to beside the windows: mostly those that are in them as well."""
        yield from self.sources.held()
        yield from self.earlier.held()
        yield from self.groups.held()
        if self.into is not None:
            yield from self.into.held()

    def held(self) -> Iterable[Event]:
        if not self.program.text.keeps_values:
            for window in self.windows:
                yield from window.held()
        yield from self._beside_windows()

    def retained(self) -> int:
        if self.program.text.keeps_values:
            return sum(1 for window in self.windows for _ in window.held())
        beside = {event.seq for event in self._beside_windows()}
        count = 0
        for window in self.windows:
            for event in window.held():
                count += 1
                beside.discard(event.seq)
        return count + len(beside)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as JSON-able data, but for the events and what they contributed: they never change
        once they are here, and come in blocks. Only `prior` is known later, when an event leaves a gate."""
        self.begin(self.now_ms)  # an output limit may have rows still to make
        store = EventStore()
        store.add(self.held())
        is_final = self.earlier.noted is None
        return {
            **self.head(),
            "seq": self.seq,
            "start": self.start_ms,
            "began": self.began,
            "sources": self.sources.snapshot(),
            "output": self.output.snapshot(),
            "into": None if self.into is None else self.into.snapshot(),
            **self.groups.snapshot(),
            **self.earlier.snapshot(),
            "events": store.in_blocks(self.holder) if is_final else store.pack(),
            "members": self.groups.members(store),
            **self.sources.waiting(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.restore_head(snapshot)
        store = EventStore()
        store.unpack(snapshot["events"], self.make_row)
        self.seq = snapshot["seq"]
        self.start_ms = self.context.start_ms = snapshot["start"]
        self.begin(self.now_ms)
        self.groups.restore(snapshot, store)
        self.sources.restore(snapshot, store, self.make_row)
        self.output.restore(snapshot["output"])
        begin_limit(self)  # earlier versions had none of a table
        if self.into is not None:
            self.into.restore(snapshot["into"], store.find)
        self.earlier.restore(snapshot, store, self.make_row)


def change_all(statement: RunningStatement, deltas: Iterable[Change], new: list[Any], old: list[Any]) -> None:
    """The changes of one step, each for itself or all as one."""
    if statement.posts_once:
        found = [delta for delta in deltas if isinstance(delta, Delta)]
        deltas = [merged(found)] if found else []
    for delta in deltas:
        statement.change(delta, new, old)


def due_changes(statement: RunningStatement, new: list[Any], old: list[Any], now_ms: int) -> Iterator[Change]:
    """The changes that are due; the output limit acts between them."""
    sources, output = statement.sources, statement.output
    yield from sources.late_changes(now_ms)
    while True:
        due, tick = sources.next_due(), output.next_deadline()
        if due is not None and due[0] <= now_ms and (tick is None or due[0] <= tick):
            yield from sources.due(due[1], due[2], now_ms)
        elif tick is not None and tick <= now_ms:
            output.tick_after(new, old, now_ms)
        else:
            return


def begin_limit(statement: RunningStatement) -> None:
    """The output limit of a statement over a table has no update from which it could count."""
    if statement.is_of_table and statement.output.limit is not None:
        statement.output.limit.begin(statement.now_ms)


def count_rows(statement: RunningStatement) -> None:
    """The rows of the table that a statement reads make groups, as if they had come now."""
    statement.groups.reset()
    rows = [statement.new_event(row.row, row.time_ms) for row in statement.sources.content()]
    statement.change(Delta(rows), [], [])
    statement.output.updates.clear()
