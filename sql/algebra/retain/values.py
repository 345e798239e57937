"""The items of a queue that keeps contributions to aggregates instead of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import Delta
from sql.types import Plain

ABSENT: Final[Any] = object()
"""The value of an event that contributes nothing: WHERE drops it, or it could not be evaluated."""


def pack_value(value: object) -> Plain:
    """A value as plain data, which is no list but for ABSENT."""
    return [] if value is ABSENT else encode(value)


def unpack_value(packed: Plain) -> Any:
    return ABSENT if packed == [] else decode(packed)


def net_of_values(deltas: Sequence[Delta], shown: int) -> Delta:
    """One delta for several, after which so many values are `shown`: without those that came and went inside
    them, which are the first that came and the last that went."""
    inserted = [value for delta in deltas for value in delta.inserted]
    removed = [value for delta in deltas for value in delta.removed]
    passing = max(0, len(inserted) - shown)
    return Delta(inserted[passing:], removed[: len(removed) - passing])
