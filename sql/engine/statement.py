"""A running statement: EPL statements and stream queries on their compiled text.

Events enter through the compiled loop; the instance hands over matches of patterns and updates of windows that are
called. Whatever changes goes through `change`. Joins, subqueries and relations run on `sql.runtime.delta_query`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sql.aggregates.state import decode, encode
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.program import Program
from sql.engine.query import SNAPSHOT_VERSION, MakeRow, RunningQuery
from sql.errors import CorruptState, positioned
from sql.runtime.analytic import AnalyticStage
from sql.runtime.conditions import When
from sql.runtime.emission import Emission, Out, Update
from sql.runtime.hits import HitCounters
from sql.runtime.limits import LimitBuilder
from sql.runtime.matches import Matches
from sql.runtime.output import Everything
from sql.runtime.prevs import PrevReader, PriorMemory
from sql.runtime.query import Budget, in_order, row_limit
from sql.runtime.recognized import Recognized
from sql.runtime.spreads import Spreads
from sql.runtime.stage import time_stamp
from sql.runtime.state import EventStore, pack_key, unpack_key
from sql.windows.combine import Reclaim
from sql.windows.event import Delta, Event
from sql.windows.operator import Operator, earliest


class Statement(RunningQuery):
    """One instance of a compiled statement."""

    steps_itself = False
    takes_lots = False
    takes_times = False
    """Whether events may be given with their own instants, many at a time."""

    def __init__(self, name: str, program: Program, now_ms: int, make_row: MakeRow | None = None,
                 partition: Sequence[Any] | None = None) -> None:  # fmt: skip
        """`partition`: the properties of the context partition that the instance belongs to."""
        super().__init__(name, program.plan, now_ms)
        plan = program.plan
        self.program = program
        self.partition = partition
        self.catalog = program.catalog
        self.context = program.context
        self.shape = program.shape
        self.make_row = make_row or (lambda row: row)
        self.start_ms = now_ms
        self._begin(now_ms)
        self.code = program.text.code
        self.windows = self._built()
        self.groups: dict[Any, Any] = {}
        self.whole = None if program.text.fold.is_grouped else self.code["Group"](())
        self.budget = Budget(plan.options.max_window_events)
        self.hits = HitCounters(plan.hits)
        self.spreads = Spreads(plan.spreads) if plan.spreads else None
        self.analytic = self._analytic()
        self.prevs = PrevReader(plan, program.functions, self.windows) if program.text.reads_beside else None
        self.prior = PriorMemory(plan) if self.prevs is not None else None
        self.recent: deque[Any] = deque(maxlen=program.text.recent_rows or 1)
        self.shared = program.shared_accumulators()
        self.row_limit = row_limit(plan, program.functions)
        self.updates: list[Update] = []
        self.late_posts: list[Delta] = []
        self.representatives: dict[Any, Event] = {}
        hint = plan.sources[0].reclaim_ms if plan.keeps_groups else None
        self.reclaim = Reclaim(*hint) if hint else None
        self.matches = {
            index: Matches(source, plan.options, self.catalog, self.context, program.warnings, self.shape, now_ms)
            for index, source in enumerate(plan.sources)
            if source.pattern is not None
        }
        """The patterns among the sources, by their place."""
        self.recognized = {
            index: Recognized(source, plan.options, self.catalog, self.context, program.warnings, self.shape)
            for index, source in enumerate(plan.sources)
            if source.recognize is not None
        }
        """The sources with match_recognize, by their place."""
        self.limit = self._limits().build(plan.output) if plan.output else None

    def _begin(self, now_ms: int) -> None:
        """The instance is at work: what its program knows of the present is this instance's."""
        self.context.now_ms = now_ms
        if self.partition is not None:
            self.program.partition[:] = self.partition

    def _analytic(self) -> AnalyticStage | None:
        plan = self.plan
        return (
            AnalyticStage(plan.analytics, self.program.functions, plan.options.max_groups) if plan.analytics else None
        )

    def _built(self) -> list[Operator]:
        """The windows; what opens later in them, a partition, counts from the start of the statement."""
        return [
            builder.build(self.start_ms, self.new_event, lambda: self.start_ms) for builder in self.program.builders
        ]

    def _limits(self) -> LimitBuilder:
        functions = self.program.functions
        zone = self.context.zone
        return LimitBuilder(self.plan, functions, self.catalog, self.now_ms, zone, self.present_rows, self.current)

    # --- events -------------------------------------------------------------------------------------------------------

    def new_event(self, row: Any, time_ms: int) -> Event:
        """An event with the next number."""
        self.seq += 1
        return Event(row, time_ms, self.seq)

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one stream arrive, in order, at `now_ms`. Everything due by then has been done."""
        self.now_ms = now_ms
        self._begin(now_ms)
        self.counts["events_in"] += len(rows)
        if self.program.is_looped:
            self.code["push"](self, rows, now_ms)
        else:
            for row in rows:
                self._step(stream, row, now_ms)
        return self.take()

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed: a statement that reads one does not run on this class."""
        raise AssertionError("the statement reads no named window")

    def arriving(self, stream: str, row: Any, now_ms: int) -> None:
        """An event arrives; filters here read no relation."""

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows that another query gave out together arrive."""
        return self.push(stream, rows, now_ms)

    def _step(self, stream: str, row: Any, now_ms: int) -> None:
        """One event of a statement over matches: a step over all sources that read the stream."""
        new: list[Any] = []
        old: list[Any] = []
        for index, source in enumerate(self.plan.sources):
            if source.stream == stream:
                for delta in self._entered(index, row, now_ms):
                    self.change(index, delta, new, old)
        for index in self.matches:  # last, so that a match meets the event in the windows beside it
            self._matched(index, self._completed(index, stream, row, now_ms), now_ms, new, old)
        self.end_step(now_ms, new, old)

    def _completed(self, index: int, stream: str, row: Any, now_ms: int) -> Iterable[Any]:
        """The matches that an event completes."""
        try:
            return self.matches[index].enter(stream, row, now_ms)
        except DATA_ERRORS as error:
            self.program.functions.spans |= self.matches[index].functions.spans
            self.fail(row, error)
            return ()

    def _matched(self, index: int, rows: Iterable[Any], now_ms: int, new: list[Any], old: list[Any]) -> None:
        """Matches come one by one, whatever has completed several at once; those compared with each other together."""
        matches = self.matches[index]
        if matches.plan.suppress or matches.plan.discard:
            events = [self.new_event(row, now_ms) for row in rows]
            for delta in self.windows[index].push(Delta(events), now_ms) if events else ():
                self.change(index, delta, new, old)
        else:
            for row in rows:
                for delta in self._entered(index, row, now_ms):
                    self.change(index, delta, new, old)
        for failure in matches.failures():
            self.errors.append(self.error_of(None, str(failure), now_ms))

    def _entered(self, index: int, row: Any, now_ms: int) -> list[Delta]:
        """The updates of a source's window as an event arrives."""
        event = self.new_event(row, now_ms)
        try:
            if self.analytic is not None:
                self.analytic.see(event)
            passes = self.program.filters[index]
            if passes is not None and not passes(event):
                return []
            if self.plan.sources[index].windows:
                self.budget.admit(self)
            return self.windows[index].push(Delta((event,)), now_ms)
        except DATA_ERRORS as error:
            self.fail(row, error)
            return []

    def change(self, index: int, delta: Delta, new: list[Any], old: list[Any]) -> None:
        """One update of a source: its rows go to `new` and `old`, or as an update to the output limit."""
        if index in self.recognized:
            delta = self._shown(self.recognized[index].change(delta, self.now_ms))
        self.apply(delta, new, old)

    def _shown(self, rows: Iterable[Any]) -> Delta:
        """Rows of matches as events of their own."""
        return Delta([self.new_event(row, self.now_ms) for row in rows])

    def apply(self, delta: Delta, new: list[Any], old: list[Any]) -> None:
        """One update, through the compiled text."""
        if self.program.text.show.collects:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms)
        else:
            self.code["change"](self, delta.inserted, delta.removed, self.now_ms, new, old)

    def beside(self, event: Event, is_new: bool) -> list[Any]:
        """Values of prev calls for an event, at their offsets."""
        values: list[Any] = [None] * len(self.plan.aggregates)
        if self.prevs is not None:
            values += self.prevs.read(event, is_new) if event.seq >= 0 else [None] * len(self.plan.prevs)
        return values

    def remember(self, changed: dict[Any, Event]) -> None:
        """`output all` shows every group ever seen, so each keeps an event to read its columns from."""
        if self.plan.output is not None and self.plan.output.mode == "all":
            self.representatives.update((group.key, event) for group, event in changed.items())

    def forget_idle(self, now_ms: int) -> None:
        """Groups without a window that no event has touched for long begin anew; nothing has left, so no row tells."""
        assert self.reclaim is not None
        for key in self.reclaim.aged(now_ms):
            self.groups.pop(key, None)
            self.representatives.pop(key, None)

    def fail(self, row: Any, error: BaseException) -> None:
        """An event could not be evaluated: counted, and an emission of its own."""
        line = self.code.line_of(error)
        span = None if line is None else self.code.spans.get(line)
        known = self.program.functions.failure(error) if span is None else positioned(error, span, self.plan.text)
        in_event_time = self.plan.timestamp is not None and len(self.plan.sources) == 1
        at_ms = self._stamp(row) if in_event_time else self.now_ms
        (self.out if in_event_time else self.errors).append(self.error_of(row, str(known), at_ms))

    def _stamp(self, row: Any) -> int:
        return (
            self.now_ms if row is None else time_stamp(self.plan, self.plan.sources[0].stream, row, self.context.zone)
        )

    def machines(self) -> list[Matches | Recognized]:
        """What finds matches, of patterns over events and over rows."""
        return [*self.matches.values(), *self.recognized.values()]

    # --- time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """The earliest instant at which `advance` has something to do."""
        if self.late_posts or (self.limit is not None and self.limit.condition.pending):
            return self.now_ms  # at the next advance of time
        deadlines = [window.next_deadline() for window in self.windows]
        if self.limit is not None:
            deadlines.append(self.limit.next_deadline())
        deadlines += [machine.next_deadline() for machine in self.machines()]
        return earliest(deadlines)

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due at or before `now_ms`, once: in order of due times; at one instant windows before output."""
        self.now_ms = max(self.now_ms, now_ms)
        self._begin(self.now_ms)
        new: list[Any] = []
        old: list[Any] = []
        posts, self.late_posts = self.late_posts, []
        for delta in posts:
            self.change(0, delta, new, old)
        while True:
            due = self._next_due()
            tick = None if self.limit is None else self.limit.next_deadline()
            if due is not None and due[0] <= now_ms and (tick is None or due[0] <= tick):
                self._fire(due, now_ms, new, old)
            elif tick is not None and tick <= now_ms:
                self._tick(now_ms, new, old)
            else:
                break
        if self.limit is not None and self.limit.condition.pending:
            self._tick(now_ms, new, old)
        self.end_step(now_ms, new, old, is_timer=True)
        return self.take()

    def _next_due(self) -> tuple[int, bool, int] | None:
        """The earliest deadline of a window or a pattern, whether it is a pattern's, and the source.

        At one instant what a window lets go comes before the timers of patterns.
        """
        due = [(deadline, False, i) for i, w in enumerate(self.windows) if (deadline := w.next_deadline()) is not None]
        timed: dict[int, Matches | Recognized] = {**self.matches, **self.recognized}
        due += [(deadline, True, i) for i, p in timed.items() if (deadline := p.next_deadline()) is not None]
        return min(due) if due else None

    def _fire(self, due: tuple[int, bool, int], now_ms: int, new: list[Any], old: list[Any]) -> None:
        """What is due in a window or a pattern happens."""
        _, is_pattern, index = due
        if is_pattern and index in self.recognized:
            delta = self._shown(self.recognized[index].advance(now_ms))
            if delta.inserted:
                self.apply(delta, new, old)
            return
        if is_pattern:
            self._matched(index, self.matches[index].advance(now_ms), now_ms, new, old)
            return
        for delta in self.windows[index].advance(now_ms):
            self.change(index, delta, new, old)

    def _tick(self, now_ms: int, new: list[Any], old: list[Any]) -> None:
        """An output tick: the updates before it, then what the limit gives."""
        assert self.limit is not None
        self.end_step(now_ms, new, old, is_timer=True)
        # In a partition `last` and `all` have nothing to say where nothing has come.
        mode = None if self.plan.output is None else self.plan.output.mode
        is_ticked = self.partition is None or mode not in ("last", "all")
        for rows in self.limit.advance(now_ms):
            self._give(*rows, now_ms, is_ticked=is_ticked)

    def terminate(self, now_ms: int) -> list[Emission]:
        """The context partition of the instance ends: the output of `when terminated`. Nothing comes after it."""
        self.now_ms = max(self.now_ms, now_ms)
        self._begin(self.now_ms)
        if self.limit is not None:
            for window in self.windows:
                window.settle()
            for rows in self.limit.terminate(now_ms):
                self._give(*rows, now_ms, is_ticked=self.limit.given.ends_empty)
        return self.take()

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended."""
        return []

    def variable_changed(self, name: str) -> None:
        """A variable has a new value; what that causes is posted at the next advance of time."""
        for window in self.windows:
            self.late_posts += window.variable_changed(self.now_ms)
        if self.limit is not None and isinstance(self.limit.condition, When):
            self.limit.condition.variable_changed()

    # --- rows ---------------------------------------------------------------------------------------------------------

    def end_step(
        self, now_ms: int, new: Sequence[Any] = (), old: Sequence[Any] = (), *, is_timer: bool = False
    ) -> None:
        """All updates of a step are known: its rows leave, or go to the output limit."""
        if not self.program.text.show.collects:
            if new or old:
                self._give(list(new), list(old), now_ms, is_ticked=False)
                if isinstance(new, list) and isinstance(old, list):
                    new.clear()
                    old.clear()
            return
        updates, self.updates = self.updates, []
        if not updates:
            return
        if self.limit is None:
            self._post_updates(updates, now_ms, is_timer=is_timer)
            return
        for rows in self.limit.update(updates, now_ms):
            self._give(*rows, now_ms, is_ticked=self.limit.forces)
        if self.limit.looks:
            for window in self.windows:
                window.settle()

    def _post_updates(self, updates: list[Update], now_ms: int, *, is_timer: bool) -> None:
        """The updates of windows that post at empty boundaries: a release by the clock is posted whatever it holds."""
        new = [row for update in updates for row in update.new]
        old = [row for update in updates for row in update.old]
        # rstream emits nothing for an update that only inserts.
        is_silent = self.plan.having is not None or (
            self.plan.selector == "rstream" and any(u.inserted for u in updates)
        )
        self._give(new, old, now_ms, is_ticked=is_timer and not is_silent)

    def post(self, new: list[Any], old: list[Any], now_ms: int) -> None:
        """The rows of one step, to be put in order and cut."""
        if new or old:
            self._give(new, old, now_ms, is_ticked=False)

    def _give(self, new: list[Any], old: list[Any], now_ms: int, *, is_ticked: bool) -> None:
        """The emission of one output; `is_ticked`: given out even without rows."""
        selector = self.plan.selector
        if selector == "rstream":
            new, old = old, []
        elif selector == "istream":
            old = []
        if not new and not old and not is_ticked:
            return
        inserted = self._ordered(new)
        removed = self._ordered(old) if old else ()
        if not inserted and not removed and (self.spreads is not None or not is_ticked):
            return  # unnest made no row of them, or OFFSET skipped them all
        self.out.append(Emission(self.name, now_ms, "rows", inserted, removed))

    def _ordered(self, rows: list[Any]) -> list[dict[str, Any]]:
        show = self.program.text.show
        if not (show.is_ordered or show.collects):
            return rows
        outs = rows if self.plan.order_by or show.collects else [Out(row) for row in rows]
        return in_order(outs, self.plan, self.row_limit, self.spreads)

    # --- looking ------------------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        """The present content of the window."""
        content = self.windows[0].content()
        for found in self.recognized.values():
            rows = found.present(content)
            return [Event(row, self.now_ms, -number) for number, row in enumerate(rows, 1)]
        return content

    def present_rows(self) -> list[Any]:
        """The rows of the present content, as `show` makes them."""
        reader, kind = self.program.text.reader, self.plan.row_kind
        rows: list[Any] = []
        if kind == "aggregate":
            reader["show"](self, _NOTHING, self.whole, rows, True)
        elif kind == "group" and not self.plan.sources[0].windows:
            for group in self.groups.values():
                reader["show"](self, group.first, group, rows, True)
        elif kind == "group":
            shown = self._newest_of_groups()
            reader["present"](self, shown, rows)
        else:
            reader["present"](self, list(self.content()), rows)
        return rows

    def _newest_of_groups(self) -> list[Event]:
        """The oldest event of each group in the content, groups in the order of their newest events."""
        keys = self.program.text.reader["keys"](self, list(self.content()))
        shown = dict(reversed(keys))
        return list(reversed(shown.values()))

    def current(self, key: Any) -> list[Out]:
        """The present row of a group, also of one that has become empty; none where HAVING drops it."""
        event = self.representatives[key]
        group = self.groups.get(key) or self._empty_group(key, event)
        rows: list[Out] = []
        self.program.text.reader["show"](self, event, group, rows, True)
        return rows

    def _empty_group(self, key: Any, event: Event) -> Any:
        return self.code["Group"](key, event) if self.program.text.fold.keeps_first else self.code["Group"](key)

    def present(self) -> list[dict[str, Any]]:
        """The rows of the present content; while a batch is being released, that is this batch."""
        rows = self.present_rows()
        outs = rows if self.plan.order_by or self.program.text.show.collects else [Out(row) for row in rows]
        return in_order(outs, self.plan, (None, 0), self.spreads)

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the content between two steps; of a batch window what it collects."""
        self._begin(now_ms)
        kind, given = self.plan.row_kind, None if self.limit is None else self.limit.given
        if kind == "aggregate" and isinstance(given, Everything):
            return [row.row for row in given.shown]  # what is held back is not in it yet
        if kind == "group" and not any(source.windows for source in self.plan.sources):
            return []
        for window in self.windows:
            window.settle()
        with self.reading():
            return self.present()

    def counters(self) -> dict[str, int]:
        """What happened so far."""
        zero = self.program.warnings.division_by_zero
        counts = {**self.counts, "division_by_zero": zero, "retained": self.retained()}
        for machine in self.machines():
            for name, count in machine.counters().items():
                counts[name] = counts.get(name, 0) + count
        return counts

    # --- state --------------------------------------------------------------------------------------------------------

    def beside_windows(self) -> Iterable[Event]:
        """What the state refers to beside the windows: mostly events that are in them as well."""
        if self.prior is not None:
            yield from self.prior.recent
        yield from self.representatives.values()
        for group in self.groups.values() if self.whole is None else (self.whole,):
            yield from self._held_by(group)
        for accumulator in self.shared.values():
            yield from accumulator.held()
        for post in self.late_posts:
            yield from post.inserted
            yield from post.removed

    def _held_by(self, group: Any) -> Iterable[Event]:
        fold = self.program.text.fold
        if fold.keeps_first:
            yield group.first
        for place, item in fold.kept.fed.items():
            if not item.is_shared:
                yield from getattr(group, f"fed_{place}").held()

    def held(self) -> Iterable[Event]:
        """Every event the state refers to."""
        for window in self.windows:
            yield from window.held()
        yield from self.beside_windows()

    def retained(self) -> int:
        """How many events the statement holds."""
        beside = {event.seq for event in self.beside_windows()}
        count = 0
        for window in self.windows:
            for event in window.held():
                count += 1
                beside.discard(event.seq)
        return count + len(beside)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain JSON-able data."""
        from sql.engine.state import pack_events, pack_groups

        store = EventStore()
        store.add(self.held())
        return {
            "version": SNAPSHOT_VERSION,
            "fingerprint": self.plan.fingerprint,
            "now": self.now_ms,
            "seq": self.seq,
            "start": self.start_ms,
            "counts": dict(self.counts),
            "budget": self.budget.snapshot(),
            "analytic": None if self.analytic is None else self.analytic.snapshot(),
            "hits": self.hits.snapshot(),
            "spreads": None if self.spreads is None else self.spreads.snapshot(),
            "groups": pack_groups(self),
            "shared": {str(place): item.snapshot() for place, item in self.shared.items()},
            "windows": [window.snapshot() for window in self.windows],
            "limit": None if self.limit is None else self.limit.snapshot(),
            "patterns": [pattern.snapshot() for pattern in self.matches.values()],
            "recognized": [found.snapshot() for found in self.recognized.values()],
            "posts": [[[event.seq for event in side] for side in post] for post in self.late_posts],
            "prior": [] if self.prior is None else [event.seq for event in self.prior.recent],
            "recent": [{name: encode(item) for name, item in _as_dict(row).items()} for row in self.recent],
            "representatives": [[pack_key(key), event.seq] for key, event in self.representatives.items()],
            "reclaim": None if self.reclaim is None else self.reclaim.snapshot(list(self.groups)),
            **pack_events(self, store),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back into an instance just made; CorruptState where it does not fit."""
        from sql.engine.state import unpack_groups

        if snapshot.get("version") != SNAPSHOT_VERSION:
            raise CorruptState(f"snapshot version {snapshot.get('version')!r} is not {SNAPSHOT_VERSION}")
        if snapshot.get("fingerprint") != self.plan.fingerprint:
            raise CorruptState("the snapshot is of another plan")
        store = EventStore()
        store.unpack(snapshot["events"], self.make_row)
        self.now_ms, self.seq, self.start_ms = snapshot["now"], snapshot["seq"], snapshot["start"]
        self.context.start_ms = self.start_ms
        self.counts |= snapshot["counts"]
        self._begin(self.now_ms)
        self.budget.restore(snapshot["budget"])
        unpack_groups(self, snapshot, store)
        for place, part in snapshot["shared"].items():
            self.shared[int(place)].restore(part, store.find)
        for window, part in zip(self.windows, snapshot["windows"], strict=True):
            window.restore(part, store.find)
        self._restore_stages(snapshot, store)

    def _restore_stages(self, snapshot: dict[str, Any], store: EventStore) -> None:
        """What stands beside windows and groups."""
        find = store.find
        if self.analytic is not None:
            self.analytic.restore(snapshot["analytic"])
        self.hits.restore(snapshot["hits"])
        if self.spreads is not None:
            self.spreads.restore(snapshot["spreads"])
        if self.limit is not None:
            self.limit.restore(snapshot["limit"])
        for pattern, part in zip(self.matches.values(), snapshot["patterns"], strict=True):
            pattern.restore(part, self.make_row)
        for found, part in zip(self.recognized.values(), snapshot["recognized"], strict=True):
            found.restore(part, self.make_row)
        self.late_posts = [Delta(*([find(seq) for seq in side] for side in post)) for post in snapshot["posts"]]
        if self.prior is not None:
            self.prior.recent.extend(find(seq) for seq in snapshot["prior"])
        for row in snapshot["recent"]:
            self.recent.append(self.make_row({name: decode(item) for name, item in row.items()}))
        self.representatives = {unpack_key(key): find(seq) for key, seq in snapshot["representatives"]}
        if self.reclaim is not None:
            self.reclaim.restore(snapshot["reclaim"], list(self.groups))


def _as_dict(row: Any) -> dict[str, Any]:
    from sql.rows import as_dict

    return as_dict(row)


_NOTHING = Event(None, 0, -1)
