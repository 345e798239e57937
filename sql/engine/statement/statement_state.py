"""The state of a statement: the events it refers to, all of it as plain data, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.event_store import EventStore
from sql.engine.statement.into import TableFold
from sql.engine.statement.statement_core import StatementCore
from sql.engine.statement.statement_output import Output
from sql.engine.statement.statement_sources import Sources


class StatementState:
    """Reads and restores the state of one running statement."""

    def __init__(
        self, statement: StatementCore, sources: Sources, into: TableFold | None, output: Output
    ) -> None:
        self.statement = statement
        self.sources = sources
        self.into = into
        self.output = output

    def _beside_windows(self) -> Iterable[Event]:
        """The events the state refers to beside the windows: mostly those that are in them as well."""
        statement = self.statement
        yield from self.sources.held()
        yield from statement.earlier.held()
        yield from statement.groups.held()
        if self.into is not None:
            yield from self.into.held()

    def held(self) -> Iterable[Event]:
        """Every event the state refers to."""
        statement = self.statement
        if not statement.program.text.keeps_values:
            for window in statement.windows:
                yield from window.held()
        yield from self._beside_windows()

    def retained(self) -> int:
        """The number of events the statement holds, or of which it holds what they contributed."""
        statement = self.statement
        if statement.program.text.keeps_values:
            return sum(1 for window in statement.windows for _ in window.held())
        beside = {event.seq for event in self._beside_windows()}
        count = 0
        for window in statement.windows:
            for event in window.held():
                count += 1
                beside.discard(event.seq)
        return count + len(beside)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as JSON-able data, but for the events and what they contributed: they never change
        once they are here, and come in blocks. Only `prior` is known later, when an event leaves a gate."""
        statement = self.statement
        store = EventStore()
        store.add(self.held())
        is_final = statement.earlier.noted is None
        return {
            **statement.head(),
            "seq": statement.seq,
            "start": statement.start_ms,
            "budget": statement.budget.snapshot(),
            "analytic": None if statement.analytic is None else statement.analytic.snapshot(),
            "hits": statement.hits.snapshot(),
            "sources": self.sources.snapshot(),
            "output": self.output.snapshot(),
            "into": None if self.into is None else self.into.snapshot(),
            "posts": [
                [*([event.seq for event in side] for side in post), place]
                for place, posts in self.sources.late.items()
                for post in posts
            ],
            "items": [event.seq for event in self.sources.items],
            **statement.groups.snapshot(),
            **statement.earlier.snapshot(),
            "events": store.in_blocks(statement.holder) if is_final else store.pack(),
            "members": statement.groups.members(store),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back into an instance just made. CorruptState where it does not fit."""
        statement = self.statement
        statement.restore_head(snapshot)
        store = EventStore()
        store.unpack(snapshot["events"], statement.make_row)
        sources, find = self.sources, store.find
        statement.seq = snapshot["seq"]
        statement.start_ms = statement.context.start_ms = snapshot["start"]
        statement.begin(statement.now_ms)
        statement.budget.restore(snapshot["budget"])
        statement.groups.restore(snapshot, store)
        sources.restore(snapshot["sources"], store, statement.make_row)
        for inserted, removed, *place in snapshot["posts"]:
            post = Delta([find(seq) for seq in inserted], [find(seq) for seq in removed])
            sources.late.setdefault(place[0] if place else 0, []).append(post)
        sources.items = [find(seq) for seq in snapshot.get("items", ())]
        self.output.restore(snapshot["output"])
        if self.into is not None:
            self.into.restore(snapshot["into"], find)
        if statement.analytic is not None:
            statement.analytic.restore(snapshot["analytic"])
        statement.hits.restore(snapshot["hits"])
        statement.earlier.restore(snapshot, store, statement.make_row)
