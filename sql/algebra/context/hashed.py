"""Levels with a partition per hash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

from sql.algebra.context.level import Arrival, Level
from sql.algebra.context.level_definitions import HashedDefinition
from sql.algebra.context.partition import Partition


class HashedLevel(Level):
    """A partition per hash modulo the granularity, allocated by its first event or all at the start."""

    definition: HashedDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.by_hash: dict[int, Partition] = {}

    def watch(self, now_ms: int) -> None:
        if self.definition.preallocate:
            for number in range(self.definition.granularity):
                self.life.open(self, number, self.values(), now_ms)

    def act(self, arrival: Arrival) -> None:
        listed = self.definition.types.get(arrival.stream)
        if listed is None:
            self.visit_all(arrival)
            return
        if listed.passes is not None and not listed.passes(arrival.event):
            return
        number = listed.key(arrival.event)
        partition = self.by_hash.get(number)
        if partition is None:
            self.life.open(self, number, self.values(), arrival.now_ms, arrival)
        else:
            self.visit(partition, arrival)

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        listed = self.definition.types.get(arrival.stream)
        if listed is None:
            return self.partitions()
        if listed.passes is not None and not listed.passes(arrival.event):
            return ()
        found = self.by_hash.get(listed.key(arrival.event))
        return () if found is None else (found,)

    def partitions(self) -> list[Partition]:
        return list(self.by_hash.values())

    def add(self, partition: Partition) -> None:
        self.by_hash[partition.key] = partition

    def discard(self, partition: Partition) -> None:
        del self.by_hash[partition.key]


def hash_code(value: object) -> int:
    """A stable hash: a whole number is its own, a text the polynomial h = 31 h + unit
    of UTF-16 in 32 bits."""
    if value is None:
        return 0
    if value.__class__ is int:
        return int(value)
    if value.__class__ is str:
        units = value.encode("utf-16-le", "surrogatepass")
        found = 0
        for low, high in zip(units[::2], units[1::2], strict=True):
            found = (31 * found + low + 256 * high) & 0xFFFFFFFF
        return found - 0x100000000 if found & 0x80000000 else found
    return crc32(_text(value))


def crc_code(value: object) -> int:
    """The CRC-32 of the UTF-8 text of a string, of the compact JSON of anything else; 0 of NULL."""
    if value is None:
        return 0
    return crc32(value.encode("utf-8", "surrogatepass") if value.__class__ is str else _text(value))


def _text(value: object) -> bytes:
    import json

    return json.dumps(value, separators=(",", ":"), sort_keys=True, default=repr).encode(
        "utf-8", "surrogatepass"
    )
