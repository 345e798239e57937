"""The hashes of `coalesce by`: stable, so that a partition is the same after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from sql.algebra.event import Event
from sql.errors import DataError
from sql.types import describe


def hash_key(name: str, values: Sequence[Callable[[Event], Any]], granularity: int) -> Callable[[Event], int]:
    """The number of an event's partition, by a hash of values; under any other name a value is one."""
    code = _HASHES.get(name, _whole)
    if len(values) == 1:
        only = values[0]
        return lambda event: abs(code(only(event))) % granularity
    return lambda event: abs(code([value(event) for value in values])) % granularity


def _whole(value: object) -> int:
    if value is None:
        return 0
    if value.__class__ is not int:
        raise DataError(f"the hash of an event is a whole number, not {describe(value)}")
    return int(value)


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
    return json.dumps(value, separators=(",", ":"), sort_keys=True, default=repr).encode(
        "utf-8", "surrogatepass"
    )


_HASHES: dict[str, Callable[[Any], int]] = {"consistent_hash_crc32": crc_code, "hash_code": hash_code}
