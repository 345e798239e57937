"""The state of a statement: the events it refers to, all of it as plain data, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sql.algebra.event import Delta, Event
from sql.algebra.event_store import EventStore
from sql.engine.running.running_query import SNAPSHOT_VERSION

if TYPE_CHECKING:
    from sql.engine.running.running_statement import RunningStatement


def beside_windows(statement: RunningStatement) -> Iterable[Event]:
    """The events the state refers to beside the windows: mostly those that are in them as well."""
    yield from statement.sources.held()
    yield from statement.earlier.held()
    yield from statement.groups.held()
    if statement.into is not None:
        yield from statement.into.held()


def held(statement: RunningStatement) -> Iterable[Event]:
    """Every event the state refers to."""
    if not statement.program.text.keeps_values:
        for window in statement.windows:
            yield from window.held()
    yield from beside_windows(statement)


def retained(statement: RunningStatement) -> int:
    """The number of events the statement holds, or of which it holds what they contributed."""
    if statement.program.text.keeps_values:
        return sum(1 for window in statement.windows for _ in window.held())
    beside = {event.seq for event in beside_windows(statement)}
    count = 0
    for window in statement.windows:
        for event in window.held():
            count += 1
            beside.discard(event.seq)
    return count + len(beside)


def snapshot(statement: RunningStatement) -> dict[str, Any]:
    """The whole state as JSON-able data, but for the events and what they contributed: they never change once
    they are here, and come in blocks. Only `prior` is known later, when an event leaves a gate."""
    store = EventStore()
    store.add(held(statement))
    is_final = statement.earlier.noted is None
    return {
        "version": SNAPSHOT_VERSION,
        "fingerprint": statement.plan.fingerprint,
        "now": statement.now_ms,
        "seq": statement.seq,
        "start": statement.start_ms,
        "counts": dict(statement.counts),
        "budget": statement.budget.snapshot(),
        "analytic": None if statement.analytic is None else statement.analytic.snapshot(),
        "hits": statement.hits.snapshot(),
        "sources": statement.sources.snapshot(),
        "output": statement.output.snapshot(),
        "into": None if statement.into is None else statement.into.snapshot(),
        "posts": [
            [*([event.seq for event in side] for side in post), place]
            for place, posts in statement.sources.late.items()
            for post in posts
        ],
        "items": [event.seq for event in statement.sources.items],
        **statement.groups.snapshot(),
        **statement.earlier.snapshot(),
        "events": store.in_blocks(statement.holder) if is_final else store.pack(),
        "members": statement.groups.members(store),
    }


def restore(statement: RunningStatement, snapshot: dict[str, Any]) -> None:
    """Put a snapshot back into an instance just made. CorruptState where it does not fit."""
    statement.check_kept(snapshot)
    store = EventStore()
    store.unpack(snapshot["events"], statement.make_row)
    sources, find = statement.sources, store.find
    statement.now_ms, statement.seq = snapshot["now"], snapshot["seq"]
    statement.start_ms = statement.context.start_ms = snapshot["start"]
    statement.counts |= snapshot["counts"]
    statement.begin(statement.now_ms)
    statement.budget.restore(snapshot["budget"])
    statement.groups.restore(snapshot, store)
    sources.restore(snapshot["sources"], store, statement.make_row)
    for inserted, removed, *place in snapshot["posts"]:
        post = Delta([find(seq) for seq in inserted], [find(seq) for seq in removed])
        sources.late.setdefault(place[0] if place else 0, []).append(post)
    sources.items = [find(seq) for seq in snapshot.get("items", ())]
    statement.output.restore(snapshot["output"])
    if statement.into is not None:
        statement.into.restore(snapshot["into"], find)
    if statement.analytic is not None:
        statement.analytic.restore(snapshot["analytic"])
    statement.hits.restore(snapshot["hits"])
    statement.earlier.restore(snapshot, store, statement.make_row)
