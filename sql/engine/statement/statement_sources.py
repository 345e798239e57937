"""The sources of a statement: what an event, a match, a relation or time changes in their
windows, and in their join.

Changes come as deltas of events that the compiled text takes in. A source of a join changes first, with all
others that the step changes, then the join does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sql.algebra.event import Delta, Event, merged
from sql.algebra.event_store import EventStore
from sql.algebra.join.joined import Joined
from sql.algebra.join.passing import Passing
from sql.algebra.operator import earliest
from sql.algebra.recognize import HeldRecognizer, Recognizer
from sql.algebra.table.feed import Feed
from sql.codegen.functions import DATA_ERRORS
from sql.engine.statement.matches import Matches
from sql.engine.statement.recognized import Recognized
from sql.engine.statement.statement_core import Change, StatementCore
from sql.engine.statement.subqueries import Run, Subqueries
from sql.rows import MakeRow

Posts = dict[int, list[Delta]]
"""The changes that the windows of a statement have posted in one step, by source."""

SUBQUERIES, WINDOW, MACHINE = range(3)
"""What may be due, in the order of what is due at one instant: the windows of subqueries, a window of the
statement, a pattern or match_recognize."""


class Sources:
    """The windows, patterns, relations and subqueries of one running statement."""

    def __init__(self, statement: StatementCore, run: Run) -> None:
        """`run` starts the statement of a subquery, which only looks into named windows."""
        self.statement = statement
        program, plan = statement.program, statement.plan
        self.plan = plan
        self.subqueries: Subqueries | None = None
        if plan.subqueries:
            settings = program.subqueries, program.warnings, statement.env
            self.subqueries = Subqueries(*settings, run, statement.report)
        self.windows = statement.windows
        self.joined = statement.joined
        self.starts_anew = self.joined is not None and bool(self.joined.drivers)
        """True if aggregates begin anew with each change: what each event of a
        unidirectional stream finds."""
        uses_first = statement.env.partition is not None
        self.matches = {
            index: Matches(code, statement.start_ms, statement.report, uses_first=uses_first)
            for index, code in program.patterns.items()
        }
        """The patterns among the sources, by their place."""
        for matches in self.matches.values():
            if plan.where is not None and not plan.subqueries:
                matches.filter_by(program.functions.true(plan.where))
        self.recognized = {index: Recognized(code, statement) for index, code in program.recognized.items()}
        """The sources with match_recognize, by their place."""
        recognizers = {index: found.recognizer for index, found in self.recognized.items()}
        self.machines: dict[int, Matches | Recognizer | HeldRecognizer] = {**self.matches, **recognizers}
        """The finders of matches, of patterns over events and over rows, by the place of their source."""
        self.items: list[tuple[int, Event]] = []
        """The items without window of a stream query, which are there during their activation,
        each with its source."""
        self.late: set[int] = set()
        """The places of the windows that a changed variable may change at the next advance of time."""
        self.arrived: list[tuple[int, Event]] | None = None
        """The events that passed their filters, by source, between `arriving` and `enter`."""

    # --- events ---------------------------------------------------------------------------------------------

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        """An event arrives: the windows of subqueries take it, then the filters of the sources are
        evaluated."""
        if self.subqueries is not None:
            self.subqueries.push(stream, row, now_ms)
        self.arrived = []
        for index, source in enumerate(self.plan.sources):
            if source.stream == stream and source.relation is None:
                event = self.statement.arrival(index, row, now_ms)
                if event is not None:
                    self.arrived.append((index, event))

    def enter(self, stream: str, row: object, now_ms: int) -> Iterator[Change]:
        """The changes by an event, in order. A match meets the event in the windows beside it: in a join all
        sources change before the join does."""
        if self.arrived is None:
            self.arriving(stream, row, now_ms)
        arrived, self.arrived = self.arrived, None
        posts: Posts = {}
        for index, event in arrived or ():
            deltas = self._admitted(index, event, now_ms)
            if deltas:
                posts[index] = deltas
        found = {index: each.enter(stream, row, now_ms) for index, each in self.matches.items()}
        yield from self._with_matches(posts, found, now_ms)

    def _admitted(self, index: int, event: Event, now_ms: int) -> list[Delta]:
        """The posts of a source's windows for an event."""
        statement = self.statement
        try:
            if self.plan.sources[index].windows:
                statement.budget.admit()
            return self.windows[index].push(Delta((event,)), now_ms)
        except DATA_ERRORS as error:
            statement.fail(event.row, error)
            return []

    def _with_matches(
        self, posts: Posts, found: Mapping[int, Iterable[Any]], now_ms: int
    ) -> Iterator[Change]:
        """The changes by posts of windows and by matches. In a join all of them change its sources before the
        join does; elsewhere each match is a change, whatever has completed several at once."""
        if self.joined is None:
            yield from self.changes(posts)
            for index, rows in found.items():
                for deltas in self._matched(index, rows, now_ms):
                    yield from self.changes({index: deltas})
            return
        for index, rows in found.items():
            matched = [delta for deltas in self._matched(index, rows, now_ms) for delta in deltas]
            if matched:
                posts[index] = [merged([*posts.get(index, ()), *matched])]
        yield from self.changes(posts)

    def _matched(self, index: int, rows: Iterable[Any], now_ms: int) -> Iterator[list[Delta]]:
        """The posts of a source's windows for each match; for all at once where they are compared with each
        other."""
        matches = self.matches[index]
        if matches.plan.suppress or matches.plan.discard:
            events = [self.statement.new_event(row, now_ms) for row in rows]
            if events:
                yield self.windows[index].push(Delta(events), now_ms)
        else:
            for row in rows:
                event = self.statement.arrival(index, row, now_ms)
                if event is not None:
                    yield self._admitted(index, event, now_ms)

    # --- relations ------------------------------------------------------------------------------------------

    def fed(self, changes: Mapping[str, Delta], now_ms: int) -> Iterator[Change]:
        """Named windows have changed, all of them before anything is computed from one."""
        posts: Posts = {}
        for index, source in enumerate(self.plan.sources):
            delta = changes.get(source.stream)
            deltas = [] if delta is None else self.windows[index].push(delta, now_ms)
            if deltas:
                posts[index] = deltas
        return self.changes(posts)

    def present(self) -> Iterator[Change]:
        """The present rows of the named windows that feed the statement, as it starts."""
        posts: Posts = {}
        for index, window in enumerate(self.windows):
            if isinstance(window, Feed):
                relation = self.statement.catalog.relations[self.plan.sources[index].stream]
                rows = tuple(relation.rows if relation.kind == "window" else ())
                posts[index] = window.push(Delta(rows), self.statement.now_ms) if rows else []
        return self.changes({index: deltas for index, deltas in posts.items() if deltas})

    # --- what windows post ----------------------------------------------------------------------------------

    def changes(self, posts: Posts) -> Iterator[Change]:
        """The changes of the statement's rows that the posts of one step make."""
        for index in self.recognized.keys() & posts.keys():
            found = (self.recognized[index].change(delta) for delta in posts[index])
            posts[index] = [delta for delta in found if delta.inserted]
        if self.joined is None:
            for deltas in posts.values():
                yield from deltas
        else:
            yield from filter(None, _joined_changes(self.joined, posts, self.matches))

    # --- time -----------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        deadlines = [window.next_deadline() for window in self.windows]
        deadlines += [machine.next_deadline() for machine in self.machines.values()]
        if self.subqueries is not None:
            deadlines.append(self.subqueries.next_deadline())
        return earliest(deadlines)

    def next_due(self) -> tuple[int, int, int] | None:
        """The earliest deadline, what is due then, and the place of its source."""
        deadlines = [(window.next_deadline(), WINDOW, i) for i, window in enumerate(self.windows)]
        deadlines += [(machine.next_deadline(), MACHINE, i) for i, machine in self.machines.items()]
        if self.subqueries is not None:
            deadlines.append((self.subqueries.next_deadline(), SUBQUERIES, 0))
        return min(((due, kind, i) for due, kind, i in deadlines if due is not None), default=None)

    def due(self, kind: int, index: int, now_ms: int) -> Iterator[Change]:
        """The changes of what is due."""
        if kind == SUBQUERIES:
            assert self.subqueries is not None
            self.subqueries.advance(now_ms)
            return iter(())
        if self.joined is not None:
            return self._due_in_join(now_ms)
        if kind == WINDOW:
            return self.changes({index: self.windows[index].advance(now_ms)})
        if index not in self.recognized:
            return self._with_matches({}, {index: self.matches[index].advance(now_ms)}, now_ms)
        delta = self.recognized[index].advance(now_ms)
        return iter((delta,) if delta.inserted else ())

    def _due_in_join(self, now_ms: int) -> Iterator[Change]:
        """The changes of all that is due: every source changes before the join does."""
        posts: Posts = {}
        for place, window in enumerate(self.windows):
            deltas: list[Delta] = []
            while (due := window.next_deadline()) is not None and due <= now_ms:
                deltas += window.advance(now_ms)
            if deltas:
                posts[place] = [merged(deltas)] if posts or len(deltas) > 1 else deltas
        found = {
            index: matches.advance(now_ms)
            for index, matches in self.matches.items()
            if (due := matches.next_deadline()) is not None and due <= now_ms
        }
        return self._with_matches(posts, found, now_ms)

    def variable_changed(self, name: str, now_ms: int) -> None:
        """A variable has a new value, and windows may let go of rows because of it when time goes on."""
        if self.subqueries is not None:
            self.subqueries.variable_changed(name, now_ms)
        self.late.update(place for place, window in enumerate(self.windows) if window.depends_on(name))

    def late_changes(self, now_ms: int) -> Iterator[Change]:
        """The changes caused by changed variables since the last call."""
        late, self.late = self.late, set()
        posts = {place: self.windows[place].variable_changed(now_ms) for place in sorted(late)}
        return self.changes({place: deltas for place, deltas in posts.items() if deltas})

    # --- state ----------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        """The present content of the window, or of the join."""
        if self.joined is not None:
            return self.joined.content()
        content = self.windows[0].content()
        for found in self.recognized.values():
            return found.present(content)
        return content

    def held(self) -> Iterator[Event]:
        """The events without window, and those of the join."""
        yield from (event for _, event in self.items)
        if self.joined is not None:
            yield from self.joined.held()

    def snapshot(self) -> dict[str, Any]:
        return {
            "windows": [window.snapshot() for window in self.windows],
            "joined": None if self.joined is None else self.joined.snapshot(),
            "subqueries": None if self.subqueries is None else self.subqueries.snapshot(),
            "patterns": [pattern.snapshot() for pattern in self.matches.values()],
            "recognized": [found.recognizer.snapshot() for found in self.recognized.values()],
        }

    def waiting(self) -> dict[str, Any]:
        """The windows that wait for the next advance of time, and the items without window, by number."""
        return {"late": sorted(self.late), "current": [[place, event.seq] for place, event in self.items]}

    def restore(self, state: dict[str, Any], store: EventStore, make_row: MakeRow) -> None:
        """Put the state of a statement's sources back into sources just made."""
        snapshot, find = state["sources"], store.find
        self.late = set(state.get("late", ()))
        current = state.get("current", [(0, seq) for seq in state.get("items", ())])
        self.items = [(place, find(seq)) for place, seq in current]
        for window, part in zip(self.windows, snapshot["windows"], strict=True):
            window.restore(part, find)
        if self.joined is not None:
            self.joined.restore(snapshot["joined"], find)
        if self.subqueries is not None:
            self.subqueries.restore(snapshot["subqueries"])
        for pattern, part in zip(self.matches.values(), snapshot["patterns"], strict=True):
            pattern.restore(part, make_row)
        for found, part in zip(self.recognized.values(), snapshot["recognized"], strict=True):
            found.recognizer.restore(part, make_row)


def _joined_changes(
    joined: Joined | Passing, posts: Posts, patterns: Collection[int]
) -> Iterator[Change | None]:
    if not joined.drivers:
        for turn in range(max(map(len, posts.values()), default=0)):
            yield joined.change({i: deltas[turn] for i, deltas in posts.items() if turn < len(deltas)})
        return
    yield joined.change({i: merged(deltas) for i, deltas in posts.items() if i not in joined.drivers})
    for index in joined.drivers:
        for delta in posts.get(index, ()):
            at_once = [delta.inserted] if index in patterns else [(event,) for event in delta.inserted]
            for events in at_once:
                yield joined.change({index: Delta(events)})
