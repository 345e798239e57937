"""The groups of a running statement: what is accumulated of its events, by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sql.aggregates.base import Accumulator
from sql.aggregates.plain_values import decode, encode
from sql.algebra.accumulators import SKIP
from sql.algebra.event import Event
from sql.algebra.event_store import EventStore, pack_key, unpack_key
from sql.algebra.key import Reclaim
from sql.algebra.operator import FindEvent
from sql.algebra.row_blocks import RowBlocks, new_holder
from sql.compiler.statement.statement_text import StatementText
from sql.types import Descending


class Groups:
    """The groups by key; without GROUP BY there is one, `whole`."""

    def __init__(self, text: StatementText) -> None:
        plan = text.plan
        self.fold = text.fold
        self.new = text.code["Group"]
        self.holder = new_holder()
        self.by_key: dict[Any, Any] = {}
        self.whole = None if self.fold.is_grouped else self.new(())
        self.shared = text.shared_accumulators()
        """The accumulators of aggregates with dimensions of their own, by place."""
        self.shows_all = plan.output is not None and plan.output.mode == "all"
        """True if `output all` shows every group ever seen: each keeps an event to read its columns from."""
        self.representatives: dict[Any, Event] = {}
        hint = plan.sources[0].reclaim_ms if plan.keeps_groups else None
        self.reclaim = Reclaim(*hint) if hint else None

    @property
    def all(self) -> Iterable[Any]:
        return self.by_key.values() if self.whole is None else (self.whole,)

    def reset(self) -> None:
        """Begin with new groups. In a context the present ones may belong to a cell, which keeps them."""
        self.by_key = {}
        if self.whole is not None:
            self.whole = self.new(())
        for accumulator in self.shared.values():
            accumulator.reset()

    def of(self, key: object, event: Event) -> Any:
        """The group of a key; an empty one where it has none."""
        return self.whole or self.by_key.get(key) or self.empty(key, event)

    def empty(self, key: object, event: Event) -> Any:
        """A group without events."""
        return self.new(key, event) if self.fold.keeps_first else self.new(key)

    def around(self, key: object, event: Event, accumulators: Iterable[Accumulator]) -> Any:
        """A group of accumulators that exist already, those of a table's row."""
        group = object.__new__(self.new)
        group.key, group.n = key, 0
        if self.fold.keeps_first:
            group.first = event
        for slot, accumulator in zip(self.fold.kept.slots, accumulators, strict=True):
            setattr(group, slot.name, accumulator)
        return group

    def remember(self, changed: Mapping[Any, Event]) -> None:
        """The events that stand for groups, by group, from now on."""
        if self.shows_all:
            self.representatives.update((group.key, event) for group, event in changed.items())

    def forget_idle(self, now_ms: int) -> None:
        """Drop groups without a window that no event has touched for long: they begin anew, without a row."""
        assert self.reclaim is not None
        for key in self.reclaim.aged(now_ms):
            self.by_key.pop(key, None)
            self.representatives.pop(key, None)

    # --- state ----------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        yield from self.representatives.values()
        for group in self.all:
            yield from self.fold.held(group)
        for accumulator in self.shared.values():
            yield from accumulator.held()

    def snapshot(self) -> dict[str, Any]:
        return {
            "groups": [self.pack(group) for group in self.all],
            "shared": {str(place): item.snapshot() for place, item in self.shared.items()},
            "representatives": [[pack_key(key), event.seq] for key, event in self.representatives.items()],
            "reclaim": None if self.reclaim is None else self.reclaim.snapshot(list(self.by_key)),
        }

    def pack(self, group: Any) -> list[Any]:
        """A group: key, number of events, first event where it keeps one, what is kept for its aggregates."""
        first = group.first.seq if self.fold.keeps_first else None
        parts = [slot.pack(getattr(group, slot.name)) for slot in self.fold.kept.slots]
        return [pack_key(group.key), group.n, first, parts]

    def unpack(self, packed: Sequence[Any], find: FindEvent) -> Any:
        """The group that `pack` packed."""
        packed_key, number, first, parts = packed
        key = unpack_key(packed_key)
        group = self.new(key, find(first)) if self.fold.keeps_first else self.new(key)
        group.n = number
        for slot, part in zip(self.fold.kept.slots, parts, strict=True):
            setattr(group, slot.name, slot.unpack(part, find))
        return group

    def members(self, store: EventStore) -> RowBlocks:
        """The counted events, each with the key of its group and the values it contributed."""
        counted = sorted(seq for seq, event in store.events.items() if event.group is not None)
        return RowBlocks(self.holder, [store.events[seq] for seq in counted], counted, (), _pack_member)

    def _group_of(self, packed: Any) -> Any:
        """The group of an event, or one of each grouping set; None of an event that has left, and its group
        with it."""
        if not self.fold.plan.grouping_sets:
            return self.by_key.get(unpack_key(packed)) if self.whole is None else self.whole
        groups = [self.by_key.get(unpack_key(key)) for key in packed]
        return None if None in groups else groups

    def restore(self, snapshot: dict[str, Any], store: EventStore) -> None:
        """Put groups back, and the events into their groups."""
        find = store.find
        for packed in snapshot["groups"]:
            group = self.unpack(packed, find)
            if self.whole is None:
                self.by_key[group.key] = group
            else:
                self.whole = group
        for seq, key, values in snapshot["members"]:
            event = find(seq)
            event.group = self._group_of(key)
            event.values = unpack_values(values)
        for place, part in snapshot["shared"].items():
            self.shared[int(place)].restore(part, find)
        self.representatives = {unpack_key(key): find(seq) for key, seq in snapshot["representatives"]}
        if self.reclaim is not None:
            self.reclaim.restore(snapshot["reclaim"], list(self.by_key))


def _pack_member(event: Event) -> list[Any]:
    group = event.group
    key = [pack_key(one.key) for one in group] if group.__class__ is list else pack_key(group.key)
    return [event.seq, key, pack_values(event.values)]


def pack_values(values: object) -> Any:
    """Contributions: SKIP, tuples, criteria with `desc`, and values as JSON."""
    if values is SKIP:
        return {"skip": True}
    if isinstance(values, Descending):
        return {"descending": pack_values(values.key)}
    if isinstance(values, tuple):
        return {"tuple": [pack_values(value) for value in values]}
    return {"value": encode(values)}


def unpack_values(packed: dict[str, Any]) -> Any:
    if "skip" in packed:
        return SKIP
    if "descending" in packed:
        return Descending(unpack_values(packed["descending"]))
    if "tuple" in packed:
        return tuple(unpack_values(value) for value in packed["tuple"])
    return decode(packed["value"])
