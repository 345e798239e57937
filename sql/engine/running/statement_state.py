"""The state of a statement as plain data, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import Delta
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.engine.running.packing import pack_values, unpack_values
from sql.engine.running.running_query import SNAPSHOT_VERSION
from sql.errors import CorruptState
from sql.rows import as_dict

if TYPE_CHECKING:
    from sql.engine.running.running_statement import RunningStatement


def snapshot(statement: RunningStatement) -> dict[str, Any]:
    """The whole state as JSON-able data."""
    store = EventStore()
    store.add(statement.held())
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
        "groups": pack_groups(statement),
        "shared": {str(place): item.snapshot() for place, item in statement.shared.items()},
        "sources": statement.sources.snapshot(),
        "output": statement.output.snapshot(),
        "into": None if statement.into is None else statement.into.snapshot(),
        "posts": [
            [*([event.seq for event in side] for side in post), place]
            for place, posts in statement.sources.late.items()
            for post in posts
        ],
        "prior": [] if statement.prior is None else [event.seq for event in statement.prior.recent],
        "recent": [_packed(row) for row in statement.recent],
        "older": [_packed(row) for row in statement.older],
        "representatives": [[pack_key(key), event.seq] for key, event in statement.representatives.items()],
        "reclaim": None if statement.reclaim is None else statement.reclaim.snapshot(list(statement.groups)),
        **pack_events(statement, store),
    }


def _packed(row: object) -> dict[str, Any]:
    return {name: encode(item) for name, item in as_dict(row).items()}


def restore(statement: RunningStatement, snapshot: dict[str, Any]) -> EventStore:
    """Put a snapshot back into an instance just made; its events. CorruptState where it does not fit."""
    if snapshot.get("version") != SNAPSHOT_VERSION:
        raise CorruptState(f"snapshot version {snapshot.get('version')!r} is not {SNAPSHOT_VERSION}")
    if snapshot.get("fingerprint") != statement.plan.fingerprint:
        raise CorruptState("the snapshot is of another plan")
    store = EventStore()
    store.unpack(snapshot["events"], statement.make_row)
    statement.now_ms, statement.seq = snapshot["now"], snapshot["seq"]
    statement.start_ms = statement.context.start_ms = snapshot["start"]
    statement.counts |= snapshot["counts"]
    statement.begin(statement.now_ms)
    statement.budget.restore(snapshot["budget"])
    unpack_groups(statement, snapshot, store)
    for place, part in snapshot["shared"].items():
        statement.shared[int(place)].restore(part, store.find)
    statement.sources.restore(snapshot["sources"], store, statement.make_row)
    statement.output.restore(snapshot["output"])
    if statement.into is not None:
        statement.into.restore(snapshot["into"], store.find)
    _restore_memory(statement, snapshot, store)
    return store


def _restore_memory(statement: RunningStatement, snapshot: dict[str, Any], store: EventStore) -> None:
    """The state of a statement beside windows and groups."""
    find = store.find
    if statement.analytic is not None:
        statement.analytic.restore(snapshot["analytic"])
    statement.hits.restore(snapshot["hits"])
    for inserted, removed, *place in snapshot["posts"]:
        post = Delta([find(seq) for seq in inserted], [find(seq) for seq in removed])
        statement.sources.late.setdefault(place[0] if place else 0, []).append(post)
    if statement.prior is not None:
        statement.prior.recent.extend(find(seq) for seq in snapshot["prior"])
    for kept, rows in ((statement.recent, snapshot["recent"]), (statement.older, snapshot.get("older", ()))):
        kept.extend(statement.make_row({name: decode(item) for name, item in row.items()}) for row in rows)
    statement.representatives = {unpack_key(key): find(seq) for key, seq in snapshot["representatives"]}
    if statement.reclaim is not None:
        statement.reclaim.restore(snapshot["reclaim"], list(statement.groups))


def pack_groups(statement: RunningStatement) -> Any:
    """Each group: key, number of events, first event where it keeps one, what is kept for its aggregates."""
    fold = statement.program.text.fold
    slots = fold.kept.slots
    groups = statement.groups.values() if statement.whole is None else (statement.whole,)
    return [
        [
            pack_key(group.key),
            group.n,
            group.first.seq if fold.keeps_first else None,
            [slot.pack(getattr(group, slot.name)) for slot in slots],
        ]
        for group in groups
    ]


def unpack_groups(statement: RunningStatement, snapshot: dict[str, Any], store: EventStore) -> None:
    """Put groups back, and the events into their groups."""
    fold, find = statement.program.text.fold, store.find
    slots, make = fold.kept.slots, statement.code["Group"]
    for packed, number, first, parts in snapshot["groups"]:
        key = unpack_key(packed)
        group = make(key, find(first)) if fold.keeps_first else make(key)
        group.n = number
        for slot, part in zip(slots, parts, strict=True):
            setattr(group, slot.name, slot.unpack(part, find))
        if statement.whole is None:
            statement.groups[key] = group
        else:
            statement.whole = group
    for seq, key, values in snapshot["members"]:
        event = find(seq)
        event.group = statement.groups.get(unpack_key(key)) if statement.whole is None else statement.whole
        event.values = unpack_values(values)


def pack_events(statement: RunningStatement, store: EventStore) -> dict[str, Any]:
    """The events a statement holds, and what those that count contributed to which group."""
    members = [
        [seq, pack_key(event.group.key), pack_values(event.values)]
        for seq, event in sorted(store.events.items())
        if event.group is not None
    ]
    return {"events": store.pack(), "members": members}
