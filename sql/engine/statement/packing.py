"""The contributions of events to aggregates, as plain data."""

from __future__ import annotations

from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.accumulators import SKIP
from sql.types import Descending


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
