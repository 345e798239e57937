"""The value columns of an uploaded record: the fields that each merge needs, checked for their ranges."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from cloud_sync.moments import SAMPLE
from cloud_sync.schemas import TEXT_CHARS_MAX
from cloud_sync.sketches import SKETCH_BYTES_MAX, SKETCHES, BadSketch, check
from cloud_sync.spark.contract.fields import LAST_MS, Bad, check_number, check_text, text, whole
from cloud_sync.spark.exact import units

VALUES_MAX = 1_000
TIMED = ("first", "last")
MERGES = {
    "count": ("int",),
    **dict.fromkeys(("sum", "min", "max", "avg"), ("int", "float")),
    **dict.fromkeys(SAMPLE, ("float",)),
    **dict.fromkeys(SKETCHES, ("sketch",)),
    "distinct": ("int",),
    "percentile": ("float",),
    **dict.fromkeys(TIMED, ("int", "float", "text")),
}
"""The merges of the contract and the types that each takes."""
FOLLOWS = {"distinct": "theta", "percentile": "kll"}
"""Merges that hold nothing themselves and follow from a sketch of the same record."""


class UploadedValue(NamedTuple):
    """One value column of a record. A float is stored as whole units too (`exact.units`), and so are the two
    parts of a sum of squares. A value that follows from a sketch names its column in `of`; `part` is that of
    a percentile. A first or last value has the `instant` of its event, in milliseconds;
    NULL if there was none."""

    name: str
    merge: str
    type: str
    whole: int | None
    real: float | None
    counted: int | None
    bin: int | None
    units: int | None
    squares: tuple[tuple[int, int], ...] | None = None
    sketch: bytes | None = None
    of: str | None = None
    part: float | None = None
    text: str | None = None
    instant: int | None = None

    def digested(self) -> tuple[object, ...]:
        """The fields that the digest of a record covers: the first eight, and the others if they are set."""
        if self.sketch is not None or self.of is not None:
            return (*self[:8], (self.sketch or b"").hex(), self.of, self.part)
        if self.instant is not None:
            return (*self[:8], self.text, self.instant)
        return self[:9] if self.squares else self[:8]


def values_of(found: object) -> tuple[UploadedValue, ...]:
    """The value columns of a record. Raises Bad."""
    if not isinstance(found, list) or len(found) > VALUES_MAX:
        raise Bad("'values' is no list of values")
    values = tuple(_value(item) for item in found)
    if len({value[:3] for value in values}) < len(values):
        raise Bad("'values' names a column twice")
    there = {(value.name, value.merge) for value in values}
    for value in values:
        if value.of is not None and (value.of, FOLLOWS[value.merge]) not in there:
            raise Bad(
                f"column '{value.name}' follows from '{value.of}', which is no {FOLLOWS[value.merge]} sketch"
            )
    return values


def _value(item: object) -> UploadedValue:
    if not isinstance(item, dict):
        raise Bad("'values' holds what is no object")
    name, merge, kind = text(item, "as"), item.get("merge"), item.get("type")
    if not isinstance(merge, str) or not isinstance(kind, str) or kind not in MERGES.get(merge, ()):
        raise Bad(
            f"column '{name}' merges as {str(merge)[:20]!r} of {str(kind)[:20]!r}, "
            "which is not in the contract"
        )
    value = UploadedValue(name, merge, kind, None, None, None, None, None)
    if kind == "sketch":
        return value._replace(sketch=_sketch(item, name, merge))
    if merge in FOLLOWS:
        return value._replace(of=text(item, "of"), part=_part(item, name) if merge == "percentile" else None)
    if merge in TIMED:
        return _timed(item, value)
    return _numeric(item, value)


def _timed(item: Mapping[str, Any], value: UploadedValue) -> UploadedValue:
    """A first or last value; without an instant there is none."""
    if item.get("at") is None:
        return value
    instant = whole(item, "at", 0, LAST_MS)
    if value.type != "text":
        return _numeric(item, value)._replace(instant=instant)
    found = item.get("text")
    if found is None:
        return value._replace(instant=instant)
    if not isinstance(found, str):
        raise Bad(f"column '{value.name}' is no text")
    check_text(found, f"column '{value.name}'", TEXT_CHARS_MAX)
    return value._replace(text=found, instant=instant)


def _numeric(item: Mapping[str, Any], value: UploadedValue) -> UploadedValue:
    name, merge, kind = value[:3]
    number = item.get(kind)
    count = item.get("count") if merge == "avg" or merge in SAMPLE else None
    if number is not None:
        check_number(number, f"column '{name}'")
    if count is not None:
        whole(item, "count", 0)
    if merge == "count" and number is not None and number < 0:
        raise Bad(f"column '{name}' is a count below 0")
    if number is None:
        return value._replace(counted=count)
    if kind == "int":
        if isinstance(number, float):
            raise Bad(f"column '{name}' is an int with a fraction")
        return value._replace(whole=number, counted=count)
    bin_, units_ = units(float(number))
    squared = _squares(item, name) if merge in SAMPLE else None
    return value._replace(real=float(number) + 0.0, counted=count, bin=bin_, units=units_, squares=squared)


def _sketch(item: Mapping[str, Any], name: str, kind: str) -> bytes | None:
    """The bytes of a sketch, which travel as base64 text."""
    found = item.get("sketch")
    if found is None:
        return None
    if not isinstance(found, str) or len(found) > 2 * SKETCH_BYTES_MAX:
        raise Bad(f"'sketch' of column '{name}' is no text, or longer than a sketch")
    try:
        content = base64.b64decode(found, validate=True)
        check(kind, content)
    except (BadSketch, binascii.Error, ValueError) as error:
        raise Bad(f"column '{name}' is no {kind} sketch: {error}") from None
    return content


def _part(item: Mapping[str, Any], name: str) -> float:
    part = item.get("part")
    check_number(part, f"'part' of column '{name}'")
    if not isinstance(part, int | float) or not 0 <= part <= 1:
        raise Bad(f"'part' of column '{name}' is not from 0 to 1")
    return float(part)


def _squares(item: Mapping[str, Any], name: str) -> tuple[tuple[int, int], ...]:
    """The two parts of a sum of squares."""
    parts = item.get("squares")
    whole(item, "count", 1)
    if not isinstance(parts, list) or len(parts) != 2:
        raise Bad(f"'squares' of column '{name}' is no list of two numbers")
    for part in parts:
        check_number(part, f"'squares' of column '{name}'")
    return tuple(units(float(part)) for part in parts)
