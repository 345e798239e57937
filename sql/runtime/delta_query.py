"""Queries whose output is change: EPL statements. From-stage, join, rows, output limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.join.joined import Joined
from sql.algebra.table.feed import Feed
from sql.codegen.functions import DATA_ERRORS
from sql.plan.logical import Plan
from sql.runtime.conditions import When
from sql.runtime.emission import Emission, Out, Update
from sql.runtime.limits import LimitBuilder
from sql.runtime.matches import Matches
from sql.runtime.output import Everything
from sql.runtime.query import in_order
from sql.runtime.recognized import Recognized
from sql.runtime.state import EventStore
from sql.runtime.windowed import WindowedQuery
from sql.windows.event import Delta, Event
from sql.windows.operator import earliest
from sql.windows.predicate import WhileTrue


def _is_silent(plan: Plan) -> bool:
    """Whether, in a partition, there is nothing to say at a tick before which nothing has come."""
    mode = None if plan.output is None else plan.output.mode
    return mode in ("last", "all") or (mode == "default" and plan.row_kind in ("group", "group_event"))


Posts = dict[int, list[Delta]]
"""What the windows of a statement have posted in one step, by source."""


class DeltaQuery(WindowedQuery):
    """A statement that posts what enters and leaves."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        self.filters = [
            None if source.filter is None else builder.functions.true(source.filter)
            for source, builder in zip(plan.sources, self.builders, strict=True)
        ]
        for builder in self.builders:  # so that an event that fails there is told with its place in the text, too
            self.functions.spans |= builder.functions.spans
        self.matches = {
            index: Matches(source, plan.options, self.catalog, self.context, self.warnings, self.shape, self.now_ms)
            for index, source in enumerate(plan.sources)
            if source.pattern is not None
        }
        """The patterns among the sources, by their place."""
        self.recognized = {
            index: Recognized(source, plan.options, self.catalog, self.context, self.warnings, self.shape)
            for index, source in enumerate(plan.sources)
            if source.recognize is not None
        }
        """The sources with match_recognize, by their place."""
        self.limit = self._limits().build(plan.output) if plan.output else None
        self.is_silent = self.context.partition is not None and _is_silent(plan)
        self.forced = any("FORCE_UPDATE" in flags or "START_EAGER" in flags for flags in _flags(plan.sources))
        self.late_posts: list[Delta] = []
        self.looked: list[tuple[int, Event]] | None = None
        """By source the event that passed its filter, between `arriving` and `push`."""

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = now_ms
        out: list[Emission] = []
        if len(self.plan.sources) == 1 and self.matches and self.subqueries is None:
            self.counts["events_in"] += len(rows)
            for row in rows:
                found = self._entered(0, stream, row, now_ms)
                if found:
                    out += self._emit(found, now_ms)
            return out + self.take_errors() if self.errors else out
        for row in rows:
            self.counts["events_in"] += 1
            if self.looked is None:
                self.arriving(stream, row, now_ms)
            arrived, self.looked = self.looked, None
            posts: Posts = {}
            for index, event in arrived or ():
                deltas = self._enter(index, event, now_ms)
                if deltas:
                    posts[index] = deltas
            updates = self._updates(posts)
            for index in self.matches:  # last, so that a match meets the event in the windows beside it
                updates += self._entered(index, stream, row, now_ms)
            out += self._emit(updates, now_ms)
        return out + self.take_errors()

    def _entered(self, index: int, stream: str, row: Any, now_ms: int) -> list[Update]:
        """An event for a pattern: what its matches change."""
        self.context.now_ms = now_ms
        try:
            found = self.matches[index].enter(stream, row, now_ms)
        except DATA_ERRORS as error:
            self.functions.spans |= self.matches[index].functions.spans
            self.on_error(Event(row, now_ms, 0), error)
            return []
        return self._matched(index, found, now_ms) if found or self.matches[index].has_failed else []

    def _matched(self, index: int, rows: Iterable[Any], now_ms: int) -> list[Update]:
        """Matches come one by one, whatever has completed several at once; those compared with each other together."""
        plan = self.matches[index].plan
        if plan.suppress or plan.discard:
            out = self._together(index, rows, now_ms)
        else:
            out = [update for row in rows for update in self._match(index, row, now_ms)]
        for failure in self.matches[index].failures():
            self.counts["errors"] += 1
            self.errors.append(Emission(self.name, now_ms, "error", [], (), str(failure)))
        return out

    def _match(self, index: int, row: Any, now_ms: int) -> list[Update]:
        event = self._arrival(index, row, now_ms)
        deltas = [] if event is None else self._enter(index, event, now_ms)
        return self._updates({index: deltas}) if deltas else []

    def _together(self, index: int, rows: Iterable[Any], now_ms: int) -> list[Update]:
        """Matches that are one change."""
        events = [event for row in rows if (event := self.arrive(row, now_ms)) is not None]
        return self._updates({index: self.windows[index].push(Delta(events), now_ms)}) if events else []

    def arriving(self, stream: str, row: Any, now_ms: int) -> None:
        """An event arrives: the windows of subqueries take it, then the filters of the sources are evaluated."""
        self.now_ms = now_ms
        if self.subqueries is not None:
            self.subqueries.push(stream, row, now_ms)
        self.looked = []
        for index, source in enumerate(self.plan.sources):
            if source.stream == stream:
                event = self._arrival(index, row, now_ms)
                if event is not None:
                    self.looked.append((index, event))

    def _arrival(self, index: int, row: Any, now_ms: int) -> Event | None:
        """The event, if it passes the filter of a source."""
        event = self.arrive(row, now_ms)
        if event is None:
            return None
        passes = self.filters[index]
        try:
            return event if passes is None or passes(event) else None
        except DATA_ERRORS as error:
            self.on_error(event, error)
            return None

    def _enter(self, index: int, event: Event, now_ms: int) -> list[Delta]:
        """What the windows of a source post of an event."""
        try:
            if self.plan.sources[index].windows:
                self.budget.admit(self)
            return self.windows[index].push(Delta((event,)), now_ms)
        except DATA_ERRORS as error:
            self.on_error(event, error)
            return []

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed, all of them before anything is computed from one."""
        self.now_ms = now_ms
        self.counts["events_in"] += sum(len(delta.inserted) for delta in changes.values())
        posts: Posts = {}
        for index, source in enumerate(self.plan.sources):
            delta = changes.get(source.stream)
            deltas = [] if delta is None else self.windows[index].push(delta, now_ms)
            if deltas:
                posts[index] = deltas
        return self._emit(self._updates(posts), now_ms) + self.take_errors()

    def fill(self) -> None:
        """Start from the present rows of the named windows, without a post."""
        posts: Posts = {}
        for index, window in enumerate(self.windows):
            if isinstance(window, Feed):
                relation = self.catalog.relations[self.plan.sources[index].stream]
                rows = tuple(relation.rows if relation.kind == "window" else ())
                posts[index] = window.push(Delta(rows), self.now_ms) if rows else []
        self._updates({index: deltas for index, deltas in posts.items() if deltas})
        self.take_errors()

    def _updates(self, posts: Posts) -> list[Update]:
        """The updates of what the windows of one step have posted, by source."""
        for index in self.recognized.keys() & posts.keys():
            posts[index] = [self._recognize(index, delta) for delta in posts[index]]
        if self.joined is None:
            deltas: Iterable[Delta | None] = (delta for found in posts.values() for delta in found)
        else:
            deltas = self._joined_changes(self.joined, posts)
        found = [self._update(delta) for delta in deltas if delta is not None]
        return [update for update in found if update is not None]

    def _update(self, delta: Delta) -> Update | None:
        if self.joined is not None and self.joined.drivers:
            self.changes.reset()  # what each event of a unidirectional stream finds is aggregated anew
        return self.changes.update(delta)

    @staticmethod
    def _joined_changes(joined: Joined, posts: Posts) -> Iterable[Delta | None]:
        if not joined.drivers:
            for turn in range(max(map(len, posts.values()), default=0)):
                yield joined.change({i: deltas[turn] for i, deltas in posts.items() if turn < len(deltas)})
            return
        partners = {index: merged(deltas) for index, deltas in posts.items() if index not in joined.drivers}
        yield joined.change(partners)
        for index in joined.drivers:
            for delta in posts.get(index, ()):
                for event in delta.inserted:
                    yield joined.change({index: Delta((event,))})

    def _recognize(self, index: int, delta: Delta) -> Delta:
        """What a change of the window completes, as a change."""
        return self._shown(self.recognized[index].change(delta, self.now_ms))

    def _shown(self, rows: Iterable[Any]) -> Delta:
        """Rows of matches as events of their own."""
        return Delta([event for row in rows if (event := self.arrive(row, self.now_ms)) is not None])

    def content(self) -> Iterable[Event]:
        content = super().content()
        for found in self.recognized.values():
            rows = found.present(content)
            return [Event(row, self.now_ms, -number) for number, row in enumerate(rows, 1)]
        return content

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = max(self.now_ms, now_ms)
        if self.subqueries is not None:
            self.subqueries.advance(now_ms)
        posts, self.late_posts = self.late_posts, []
        updates = self._updates({0: posts} if posts else {})
        out: list[Emission] = []
        while True:
            due = self._next_due()
            tick = None if self.limit is None else self.limit.next_deadline()
            # In order of their due times; at one instant what leaves and is released comes before the output tick.
            if due is not None and due[0] <= now_ms and (tick is None or due[0] <= tick):
                _, is_pattern, index = due
                if is_pattern and index in self.recognized:
                    delta = self._shown(self.recognized[index].advance(now_ms))
                    update = self.changes.update(delta) if delta.inserted else None
                    updates += [] if update is None else [update]
                elif is_pattern:
                    updates += self._matched(index, self.matches[index].advance(now_ms), now_ms)
                else:
                    updates += self._updates(self._due_posts(index, now_ms))
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

    def _due_posts(self, window: int, now_ms: int) -> Posts:
        """What a window that is due posts; of a join all that are, since they change before the join does."""
        if self.joined is None:
            return {window: self.windows[window].advance(now_ms)}
        posts: Posts = {}
        for index, operator in enumerate(self.windows):
            deltas: list[Delta] = []
            while (due := operator.next_deadline()) is not None and due <= now_ms:
                deltas += operator.advance(now_ms)
            if deltas:
                posts[index] = [merged(deltas)] if posts or len(deltas) > 1 else deltas
        return posts

    def _next_due(self) -> tuple[int, bool, int] | None:
        """The earliest deadline of a window or a pattern, whether it is a pattern's, and the source.

        At one instant what a window lets go comes before the timers of patterns.
        """
        due = [(deadline, False, i) for i, w in enumerate(self.windows) if (deadline := w.next_deadline()) is not None]
        timed: dict[int, Matches | Recognized] = {**self.matches, **self.recognized}
        due += [(deadline, True, i) for i, p in timed.items() if (deadline := p.next_deadline()) is not None]
        return min(due) if due else None

    def _machines(self) -> list[Matches | Recognized]:
        """What finds matches, of patterns over events and over rows."""
        return [*self.matches.values(), *self.recognized.values()]

    def _tick(self, now_ms: int) -> list[Emission]:
        assert self.limit is not None
        outputs = self.limit.advance(now_ms)
        return [e for new, old in outputs for e in self._emission(new, old, now_ms, ticked=not self.is_silent)]

    def next_deadline(self) -> int | None:
        if self.late_posts or (self.limit is not None and self.limit.condition.pending):
            return self.now_ms  # at the next advance of time
        tick = None if self.limit is None else self.limit.next_deadline()
        patterns = [pattern.next_deadline() for pattern in self._machines()]
        return earliest((super().next_deadline(), tick, *patterns))

    def counters(self) -> dict[str, int]:
        counts = super().counters()
        for pattern in self._machines():
            for name, count in pattern.counters().items():
                counts[name] = counts.get(name, 0) + count
        return counts

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

    def _limits(self) -> LimitBuilder:
        def present() -> list[Out]:
            return self.changes.present(self.content())

        zone = self.context.zone
        return LimitBuilder(self.plan, self.functions, self.catalog, self.now_ms, zone, present, self.changes.current)

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        kind, given = self.plan.row_kind, None if self.limit is None else self.limit.given
        if kind == "aggregate" and isinstance(given, Everything):
            return [row.row for row in given.shown]  # what is held back is not in it yet
        if kind == "group" and not any(source.windows for source in self.plan.sources):
            return []
        return super().read(now_ms)

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
        inserted = in_order(new, self.plan, self.row_limit, self.spreads)
        removed = in_order(old, self.plan, self.row_limit, self.spreads) if old else ()
        if not inserted and not removed and (self.spreads is not None or not ticked):
            return []  # unnest made no row of them, or OFFSET skipped them all
        self.counts["rows_out"] += len(inserted)
        return [Emission(self.name, now_ms, "rows", inserted, removed)]

    def terminate(self, now_ms: int) -> list[Emission]:
        """The partition it runs in ends: the output of `when terminated`. Nothing comes after it."""
        self.now_ms = self.context.now_ms = max(self.now_ms, now_ms)
        if self.limit is None:
            return []
        for window in self.windows:
            window.settle()
        outputs = self.limit.terminate(now_ms)
        empty = self.limit.given.ends_empty
        return [e for new, old in outputs for e in self._emission(new, old, now_ms, ticked=empty)] + self.take_errors()

    # --- state --------------------------------------------------------------------------------------------------------

    def beside(self) -> Iterable[Event]:
        yield from super().beside()
        for post in self.late_posts:
            yield from post.inserted
            yield from post.removed

    def _state(self) -> dict[str, Any]:
        return {
            **super()._state(),
            "patterns": [pattern.snapshot() for pattern in self.matches.values()],
            "recognized": [found.snapshot() for found in self.recognized.values()],
            "limit": None if self.limit is None else self.limit.snapshot(),
            "posts": [[[event.seq for event in side] for side in post] for post in self.late_posts],
        }

    def _put_back(self, state: Any, store: EventStore) -> None:
        super()._put_back(state, store)
        for pattern, part in zip(self.matches.values(), state["patterns"], strict=True):
            pattern.restore(part, self.make_row)
        for found, part in zip(self.recognized.values(), state["recognized"], strict=True):
            found.restore(part, self.make_row)
        if self.limit is not None:
            self.limit.restore(state["limit"])
        self.late_posts = [Delta(*([store.find(seq) for seq in side] for side in post)) for post in state["posts"]]


def merged(deltas: Sequence[Delta]) -> Delta:
    """Several changes as one: inserts appended, removes appended."""
    if len(deltas) == 1:
        return deltas[0]
    inserted = [event for delta in deltas for event in delta.inserted]
    return Delta(inserted, [event for delta in deltas for event in delta.removed])


def _flags(sources: Iterable[Any]) -> Iterable[frozenset[str]]:
    for source in sources:
        for window in source.windows:
            yield window.arguments.get("flags") or frozenset()
