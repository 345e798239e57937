"""Queries whose output is change: EPL statements. From-stage, join, rows, output limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.codegen.functions import DATA_ERRORS, constant_value
from sql.plan.plan import OutputPlan
from sql.runtime.build import WindowBuilder, period, size
from sql.runtime.changes import Changes
from sql.runtime.emission import Emission, Out, Update
from sql.runtime.joins import Joined
from sql.runtime.output import (
    After,
    AllGroupEvents,
    AllGroups,
    Always,
    At,
    Condition,
    Counters,
    EveryEvents,
    EveryPeriod,
    Everything,
    FirstPerGroup,
    FirstUpdate,
    Given,
    LastPerGroup,
    LastRow,
    LastValue,
    OutputLimit,
    Snapshot,
    When,
)  # fmt: skip
from sql.runtime.query import Query, in_order, row_limit
from sql.runtime.state import EventStore
from sql.runtime.subquery import Subqueries
from sql.windows.event import Delta, Event
from sql.windows.operator import Operator, earliest
from sql.windows.predicate import WhileTrue


class DeltaQuery(Query):
    """A statement that posts what enters and leaves."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        self.builders = [
            WindowBuilder(source, plan.options, self.catalog, self.context, self.warnings, self.shape, self.new_event)
            for source in plan.sources
        ]
        self.windows: list[Operator] = [builder.build(self.now_ms) for builder in self.builders]
        self.filters = [
            None if source.filter is None else builder.functions.true(source.filter)
            for source, builder in zip(plan.sources, self.builders, strict=True)
        ]
        self.joined = Joined(plan, self.functions, self.new_event) if plan.joins else None
        self.subqueries = Subqueries(plan, self.catalog, self.context, self.warnings, self.now_ms, self.shape) \
            if plan.subqueries else None  # fmt: skip
        window = self.windows[0] if self.windows else None
        assert window is not None
        self.changes = Changes(plan, self.functions, window, self.windows,
                               self.subqueries.values if self.subqueries else None, self.on_error)  # fmt: skip
        self.limit = self._limit(plan.output) if plan.output else None
        self.row_limit = row_limit(plan, self.functions)
        self.forced = any("FORCE_UPDATE" in flags or "START_EAGER" in flags for flags in _flags(plan.sources))
        self.late_posts: list[Delta] = []
        self.variable_posts = False

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = now_ms
        out: list[Emission] = []
        for row in rows:
            self.counts["events_in"] += 1
            if self.subqueries is not None:
                self.subqueries.push(stream, row, now_ms)
            updates: list[Update] = []
            for index, source in enumerate(self.plan.sources):
                if source.stream == stream:
                    updates += self._arrival(index, row, now_ms)
            out += self._emit(updates, now_ms)
        return out + self.take_errors()

    def _arrival(self, index: int, row: Any, now_ms: int) -> list[Update]:
        event = self.arrive(row, now_ms)
        if event is None:
            return []
        try:
            passes = self.filters[index]
            if passes is not None and not passes(event):
                return []
            if self.plan.sources[index].windows:
                self.budget.admit(self)
            deltas = self.windows[index].push(Delta((event,)), now_ms)
        except DATA_ERRORS as error:
            self.on_error(event, error)
            return []
        return self._updates(index, deltas)

    def _updates(self, index: int, deltas: Iterable[Delta]) -> list[Update]:
        out = []
        for delta in deltas:
            joined = delta if self.joined is None else self.joined.change(index, delta)
            if joined is None:
                continue
            update = self.changes.update(joined)
            if update is not None:
                out.append(update)
        return out

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = max(self.now_ms, now_ms)
        if self.subqueries is not None:
            self.subqueries.advance(now_ms)
        posts, self.late_posts = self.late_posts, []
        updates = self._updates(0, posts)
        out: list[Emission] = []
        while True:
            window = self._window_due()
            due = None if window is None else self.windows[window].next_deadline()
            tick = None if self.limit is None else self.limit.next_deadline()
            # In order of their due times; at one instant what leaves and is released comes before the output tick.
            if due is not None and due <= now_ms and (tick is None or due <= tick):
                assert window is not None
                updates += self._updates(window, self.windows[window].advance(now_ms))
            elif tick is not None and tick <= now_ms:
                out += self._emit(updates, now_ms, ticked=self.forced) + self._tick(now_ms)
                updates = []
            else:
                break
        if self.limit is not None and self.limit.condition.pending:
            out += self._emit(updates, now_ms) + self._tick(now_ms)
            updates = []
        # A release at a grid point of a FORCE_UPDATE window is given out whatever it holds.
        return out + self._emit(updates, now_ms, ticked=self.forced) + self.take_errors()

    def _window_due(self) -> int | None:
        """The source whose window has the earliest deadline."""
        due = [(deadline, i) for i, w in enumerate(self.windows) if (deadline := w.next_deadline()) is not None]
        return min(due)[1] if due else None

    def _tick(self, now_ms: int) -> list[Emission]:
        assert self.limit is not None
        outputs = self.limit.advance(now_ms)
        return [e for new, old in outputs for e in self._emission(new, old, now_ms, ticked=True)]

    def next_deadline(self) -> int | None:
        if self.late_posts or (self.limit is not None and self.limit.condition.pending):
            return self.now_ms  # at the next advance of time
        deadlines = [window.next_deadline() for window in self.windows]
        if self.limit is not None:
            deadlines.append(self.limit.next_deadline())
        if self.subqueries is not None:
            deadlines.append(self.subqueries.next_deadline())
        return earliest(deadlines)

    def variable_changed(self, name: str) -> None:
        for builder, window in zip(self.builders, self.windows, strict=True):
            for watcher in builder.watchers:
                if isinstance(watcher, WhileTrue):
                    removed = watcher.variable_changed()
                    if removed:
                        self.late_posts.append(Delta((), removed))
                else:
                    batch = getattr(window, "batch", None)
                    post = batch.changed(self.now_ms) if batch is not None else None
                    if post is not None:
                        self.late_posts.append(post)
        if self.limit is not None and isinstance(self.limit.condition, When):
            self.limit.condition.variable_changed()

    def read(self) -> list[dict[str, Any]]:
        return in_order(self.changes.present(self._content()), self.plan, (None, 0))

    def _content(self) -> Iterable[Event]:
        return self.windows[0].content() if self.joined is None else self.joined.content()

    # --- output -------------------------------------------------------------------------------------------------------

    def _emit(self, updates: list[Update], now_ms: int, *, ticked: bool = False) -> list[Emission]:
        if not updates:
            return []
        if self.limit is not None:
            out = [
                emission
                for new, old in self.limit.update(updates, now_ms)
                for emission in self._emission(new, old, now_ms, ticked=self.limit.forces)
            ]
            if self.limit.looks:
                for window in self.windows:
                    window.settle()
            return out
        new = [row for update in updates for row in update.new]
        old = [row for update in updates for row in update.old]
        # An rstream that has only seen inserts has nothing to say, not even that.
        silent = self.plan.having is not None or (self.plan.selector == "rstream" and any(u.inserted for u in updates))
        return self._emission(new, old, now_ms, ticked=ticked and not silent)

    def _emission(self, new: list[Out], old: list[Out], now_ms: int, *, ticked: bool) -> list[Emission]:
        """The emission of one output; `ticked`: given out even without rows."""
        selector = self.plan.selector
        if selector == "rstream":
            new, old = old, []
        elif selector == "istream":
            old = []
        if not new and not old and not ticked:
            return []
        inserted = in_order(new, self.plan, self.row_limit)
        removed = in_order(old, self.plan, self.row_limit)
        self.counts["rows_out"] += len(inserted)
        return [Emission(self.name, now_ms, "rows", inserted, removed)]

    def _limit(self, output: OutputPlan) -> OutputLimit:
        functions = self.functions
        opens = None if output.after is None else period(output.after, functions).add(self.now_ms, self.context.zone)
        swallowed = constant_value(output.after_events, functions)
        after = After(swallowed, opens) if opens is not None or swallowed else None
        return OutputLimit(self._condition(output), self._given(output), after)

    def _condition(self, output: OutputPlan) -> Condition:
        functions = self.functions
        if output.every is not None:
            every = output.every
            return EveryPeriod(lambda: period(every, functions), self.context.zone)
        if output.every_events is not None:
            count = output.every_events
            return EveryEvents(lambda: size(count, functions))
        if output.at:
            from sql.calendar.crontab import Crontab

            return At(Crontab.parse([field.text for field in output.at], self.context.zone), self.now_ms)
        if output.when is not None:
            return self._when(output)
        return Always()

    def _when(self, output: OutputPlan) -> Condition:
        assert output.when is not None
        test = self.functions.true(output.when)
        setters = [(name, self.functions.value(value)) for name, value in output.then_set]

        def then_set(counters: Counters) -> None:
            for name, value in setters:
                self.catalog.variables[name].value = value(None, None, counters)

        return When(lambda counters: bool(test(None, None, counters)), then_set)

    def _given(self, output: OutputPlan) -> Given:
        kind, mode = self.plan.row_kind, output.mode
        grouped = kind in ("group", "group_event") and bool(self.plan.group_by)

        def present() -> list[Out]:
            return self.changes.present(self._content())

        if mode == "snapshot":
            return Snapshot(present)
        if mode == "first":
            return self._first_per_group(output) if grouped else FirstUpdate()
        if mode == "all" and grouped:
            return (AllGroups if kind == "group" else AllGroupEvents)(self.changes.current)
        if mode == "last" and grouped:
            return LastPerGroup(first_old=kind == "group")
        if mode == "last":
            return LastValue(present) if kind == "aggregate" else LastRow()
        return Everything(present if kind == "aggregate" else None)

    def _first_per_group(self, output: OutputPlan) -> Given:
        every, count = output.every, output.every_events
        if every is not None:
            return FirstPerGroup(lambda now: period(every, self.functions).add(now, self.context.zone), None)
        if count is not None:
            return FirstPerGroup(None, lambda: size(count, self.functions))
        return FirstUpdate()

    # --- state --------------------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        for window in self.windows:
            yield from window.held()
        if self.joined is not None:
            yield from self.joined.held()
        yield from self.changes.held()
        for post in self.late_posts:
            yield from post.inserted
            yield from post.removed

    def _state(self) -> Any:
        return {
            "windows": [window.snapshot() for window in self.windows],
            "joined": None if self.joined is None else self.joined.snapshot(),
            "changes": self.changes.snapshot(),
            "limit": None if self.limit is None else self.limit.snapshot(),
            "posts": [[[e.seq for e in side] for side in post] for post in self.late_posts],
            "subqueries": None if self.subqueries is None else self.subqueries.snapshot(),
        }

    def _put_back(self, state: Any, store: EventStore) -> None:
        for window, part in zip(self.windows, state["windows"], strict=True):
            window.restore(part, store.find)
        if self.joined is not None:
            self.joined.restore(state["joined"], store.find)
        self.changes.restore(state["changes"], store.find)
        if self.limit is not None:
            self.limit.restore(state["limit"])
        self.late_posts = [Delta(*([store.find(seq) for seq in side] for side in post)) for post in state["posts"]]
        if self.subqueries is not None:
            self.subqueries.restore(state["subqueries"])


def _flags(sources: Iterable[Any]) -> Iterable[frozenset[str]]:
    for source in sources:
        for window in source.windows:
            yield window.arguments.get("flags") or frozenset()
