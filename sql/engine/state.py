"""Groups and events of a statement as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sql.aggregates.state import decode, encode
from sql.runtime.groups import SKIP
from sql.runtime.state import EventStore, pack_key, unpack_key

if TYPE_CHECKING:
    from sql.engine.statement import Statement


def pack_groups(statement: Statement) -> Any:
    """Each group: key, number of events, first event where it keeps one, what is kept for its aggregates."""
    fold = statement.program.text.fold
    slots = fold.kept.slots
    groups = statement.groups.values() if statement.whole is None else (statement.whole,)
    return [
        [pack_key(group.key), group.n, group.first.seq if fold.keeps_first else None,
         [slot.pack(getattr(group, slot.name)) for slot in slots]]
        for group in groups
    ]  # fmt: skip


def unpack_groups(statement: Statement, snapshot: dict[str, Any], store: EventStore) -> None:
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
        event.values = _unpack_values(values)


def pack_events(statement: Statement, store: EventStore) -> dict[str, Any]:
    """The events a statement holds, and what those that count contributed to which group."""
    members = [
        [seq, pack_key(event.group.key), _pack_values(event.values)]
        for seq, event in sorted(store.events.items())
        if event.group is not None
    ]
    return {"events": store.pack(), "members": members}


def _pack_values(values: Any) -> Any:
    """Contributions: SKIP, tuples, and values as JSON."""
    if values is SKIP:
        return {"skip": True}
    if isinstance(values, tuple):
        return {"tuple": [_pack_values(value) for value in values]}
    return {"value": encode(values)}


def _unpack_values(packed: dict[str, Any]) -> Any:
    if "skip" in packed:
        return SKIP
    if "tuple" in packed:
        return tuple(_unpack_values(value) for value in packed["tuple"])
    return decode(packed["value"])
