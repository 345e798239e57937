"""Snapshots as plain JSON-able data: the events a query retains, once each, and keys of dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import Event, FixedValues
from sql.algebra.row_blocks import RowBlocks
from sql.errors import CorruptState
from sql.rows import as_dict
from sql.types import _FALSE, _NAN, _TRUE, Descending, Plain

_MARKERS = {"true": _TRUE, "false": _FALSE, "nan": _NAN}
_NAMES = {id(marker): name for name, marker in _MARKERS.items()}


PackedRow: TypeAlias = "None | dict[str, Plain] | list[PackedRow]"
"""A row as plain data: its columns, or the rows that it is made of."""


def pack_key(key: object) -> Plain:
    """A group or sort key as JSON: markers, tuples, sets and directions keep what they are."""
    if id(key) in _NAMES:
        return {"m": _NAMES[id(key)]}
    if isinstance(key, Descending):
        return {"d": pack_key(key.key)}
    if isinstance(key, tuple):
        return {"t": [pack_key(part) for part in key]}
    if isinstance(key, frozenset):
        return {"s": [pack_key(part) for part in key]}
    return encode(key)


def unpack_key(packed: object) -> Any:
    """The key `pack_key` packed."""
    if isinstance(packed, dict):
        if "m" in packed:
            return _MARKERS[packed["m"]]
        if "d" in packed:
            return Descending(unpack_key(packed["d"]))
        if "t" in packed:
            return tuple(unpack_key(part) for part in packed["t"])
        if "s" in packed:
            return frozenset(unpack_key(part) for part in packed["s"])
    return decode(packed)


def pack_row(row: object) -> PackedRow:
    """A row of any shape; a row made of several is the list of its sides, one of which
    may be a list of rows."""
    if isinstance(row, tuple | list):
        return [pack_row(side) for side in row]
    return None if row is None else {name: encode(item) for name, item in as_dict(row).items()}


def unpack_row(packed: dict[str, Any]) -> dict[str, Any]:
    """The row `pack_row` packed, as a dict."""
    return {name: decode(value) for name, value in packed.items()}


def made_row(packed: PackedRow, make_row: Callable[[Any], Any], several: type = tuple) -> Any:
    """The row `pack_row` packed: `make_row` makes one of the query's shape from a dict, and a row of several
    is a tuple, a side of which may be a list of rows."""
    if isinstance(packed, list):
        return several(made_row(side, make_row, list) for side in packed)
    return None if packed is None else make_row(unpack_row(packed))


def pack_event(event: Event) -> list[Any]:
    """An event: number, instant, row, what was fixed when it came, and the events before it."""
    priors = event.extra.priors if isinstance(event.extra, FixedValues) else ()
    extra = None if event.extra is None else [encode(value) for value in event.extra]
    before = [[prior.seq, prior.time_ms, pack_row(prior.row)] for prior in priors]
    return [event.seq, event.time_ms, pack_row(event.row), extra, before]


class EventStore:
    """The events of a snapshot by `seq`: each is written once, however many operators hold it."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Remember events that the state refers to."""
        for event in events:
            self.events[event.seq] = event

    def pack(self) -> list[Any]:
        """All events in order of arrival."""
        return [pack_event(self.events[seq]) for seq in sorted(self.events)]

    def in_blocks(self, holder: int) -> RowBlocks:
        """All events in order of arrival. They do not change,
        and their holder gives each a number of its own."""
        numbers = sorted(self.events)
        return RowBlocks(holder, [self.events[seq] for seq in numbers], numbers, (), pack_event)

    def unpack(
        self, packed: list[Any], make_row: Callable[[Any], Any], make: Callable[..., Event] = Event
    ) -> None:
        """Rebuild the events; `make_row` makes a row of the query's shape from a dict, `make` an event."""
        for seq, time_ms, part, extra, before in packed:
            values = None if extra is None else [decode(value) for value in extra]
            priors = [Event(made_row(prior, make_row), at, number) for number, at, prior in before]
            kept = FixedValues(values or (), priors) if priors else values
            self.events[seq] = make(made_row(part, make_row), time_ms, seq, kept)

    def find(self, seq: int) -> Event:
        """The event of a `seq` in the snapshot."""
        event = self.events.get(seq)
        if event is None:
            raise CorruptState(f"the snapshot refers to event {seq}, which it does not hold")
        return event
