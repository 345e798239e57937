"""The values of rows as typed columns."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from cloud_sync.schemas import INT64
from cloud_sync.spark.backfill.slots import TYPES, arrow_type
from sql.emission import Row
from sql.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

CLASSES: Mapping[Type, tuple[type, ...]] = {
    Type.INTEGER: (int,),
    Type.FLOAT: (int, float),
    Type.STRING: (str,),
    Type.BOOLEAN: (bool,),
    Type.BYTES: (bytes,),
}
"""The classes of values that fit a column of a type; a bigint has 64 bits besides.
Columns of other types take any value, as JSON text."""

INFERRED = (Type.INTEGER, Type.STRING, Type.BOOLEAN)
"""Types that Arrow finds only where all values have them, which is a check of its own;
it takes booleans among floats, and text among bytes."""


class Misfit(Exception):
    """A value does not fit its column; the text says why."""


def array_of(values: list[Any], kind: Type) -> pa.Array | None:
    """The values of a column; None if some do not fit it."""
    import pyarrow as pa

    if kind not in CLASSES:
        return strings([None if value is None else json_of(value) for value in values])
    wanted = arrow_type(TYPES[kind])
    if kind in INFERRED:
        try:
            found = pa.array(values)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            found = None
        if found is not None and found.type == wanted:
            return found
    classes = set(map(type, values))
    if not classes <= {*CLASSES[kind], NoneType}:
        return None
    if kind is Type.STRING:
        return strings(values, "replace")
    if kind is Type.FLOAT:
        return _finite(pa.array(map(_as_float, values) if int in classes else values, wanted))
    try:
        return pa.array(values, wanted)
    except OverflowError:
        return None


def _as_float(value: float | None) -> float | None:
    """A number as a float; NULL for an integer beyond all floats, which would be an infinity."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None


def _finite(column: pa.Array) -> pa.Array:
    """A column of floats with NULL for NaN and infinities, as in the sinks."""
    import pyarrow.compute as pc

    is_finite = pc.is_finite(column)
    is_all = is_finite.true_count + column.null_count == len(column)
    return column if is_all else pc.if_else(is_finite, column, None)


def strings(texts: Sequence[str | None], surrogates: str = "backslashreplace") -> pa.Array:
    """A column of texts. A lone surrogate, which UTF-8 cannot hold, becomes its escape in JSON, or in other
    texts a question mark (`replace`)."""
    import pyarrow as pa

    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        encoded = [text and text.encode("utf-8", surrogates) for text in texts]
        return pa.array(encoded, pa.string())


def check(row: Row, columns: Mapping[str, Type]) -> None:
    """Raises Misfit if a value does not fit its column."""
    for name, value in row.items():
        kind = columns.get(name, Type.ANY)
        if value is not None and not _fits(value, kind):
            raise Misfit(f"column '{name}' holds {str(value)[:40]!r}, the plan says {kind.value}")


def _fits(value: object, kind: Type) -> bool:
    allowed = CLASSES.get(kind)
    if allowed is None:
        return True
    return value.__class__ in allowed and (kind is not Type.INTEGER or value in INT64)


def of_event(event: Mapping[str, Any], columns: Mapping[str, Type]) -> Row:
    """The values of an event in the columns of the same name that can hold them; text can hold any."""
    found: Row = {}
    for name, kind in columns.items():
        value = event.get(name)
        if value is not None and not _fits(value, kind):
            value = json_of(value) if kind is Type.STRING else None
        found[name] = value
    return found


def json_of(value: object) -> str:
    """JSON text; NaN and infinities are null as in the sinks, bytes are base64."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_as_text, allow_nan=False)
    except ValueError:
        from sinks.formats.json_text import json_text

        return json_text(value)


def _as_text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
