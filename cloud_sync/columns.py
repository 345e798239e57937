"""The columns of a cloud action as the contract describes them: in each record, and in the schema of all."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable

from cloud_sync.declaration import Average, CloudSettings, How, Sketched, Spread, Timed
from cloud_sync.moments import squares
from cloud_sync.schemas import HASHED, INT64, TEXT_CHARS_MAX, Column, Key, Schema
from cloud_sync.sketches import SKETCHES, BadSketch, check
from sinks.base import Row
from sql import Plan
from sql.types import Type


def column_of(name: str, merge: How, settings: CloudSettings) -> Column:
    """A value column: the name of its merge and its type in the contract."""
    if isinstance(merge, Sketched):
        is_distinct = merge.kind == "distinct"
        part = None if is_distinct else merge.part
        return Column(name, merge.kind, "int" if is_distinct else "float", merge.sketch, part)
    if isinstance(merge, Spread):
        return Column(name, merge.kind, "float")
    if isinstance(merge, Timed):
        return Column(name, merge.kind, settings.type_of(name))
    if isinstance(merge, Average):
        return Column(name, "avg", settings.type_of(name))
    return Column(name, merge, "sketch" if merge in SKETCHES else settings.type_of(name))


def value_maker(name: str, merge: How, settings: CloudSettings) -> Callable[[Row], dict[str, object]]:
    """The function that makes a value column of a record from a row.
    It raises ValueError with the column and the reason if the row does not fit."""
    column = column_of(name, merge, settings)
    kind = column.type
    head: dict[str, object] = {"as": name, "merge": column.merge, "type": kind}
    match merge:
        case Sketched():
            follows = head | {"of": column.of} | ({} if column.part is None else {"part": column.part})
            return lambda row: follows
        case Spread():
            return lambda row: {**head, **_moments(row, name, merge)}
        case Average():
            total, count = merge.sum, merge.count
            return lambda row: {
                **head,
                kind: _number(row, total, kind, name),
                "count": _number(row, count, "int"),
            }
        case Timed():
            return lambda row: {**head, **_timed(row, name, merge.at, kind)}
        case _ if kind == "sketch":
            return lambda row: {**head, "sketch": _sketch(row, name, column.merge)}
        case _:
            declared = "" if merge == "count" else name
            return lambda row: {**head, kind: _number(row, name, kind, declared)}


def schema_of(settings: CloudSettings, plan: Plan) -> Schema:
    """The schema of settings that are completed from the plan of their rule."""
    types = {item.name: item.value.type for item in plan.items}

    def key(name: str) -> Key:
        if name in settings.hashed:
            return Key(name, Type.STRING.value, HASHED)
        return Key(name, types.get(name, Type.ANY).value)

    return Schema(
        rule=plan.options.rule_id,
        rule_hash=settings.rule_hash,
        windows=tuple(level.label for level in settings.window),
        zone=settings.zone,
        restates=settings.restates,
        keys=tuple(map(key, settings.keys or ())),
        values=tuple(column_of(name, merge, settings) for name, merge in (settings.merge or {}).items()),
        secret=tuple(settings.secret),
    )


def _moments(row: Row, column: str, merge: Spread) -> dict[str, object]:
    """Sum, count and sum of squares of a deviation; all NULL over no values."""
    count, total = _number(row, merge.count, "int"), _number(row, merge.sum, "float")
    if not count or total is None:
        return {"float": None, "count": 0, "squares": None}
    result = _number(row, column, "float")
    found = squares(merge.kind, result, int(count), float(total)) if count > 0 else None
    if found is None:
        raise ValueError(
            f"value column {column!r} holds {result} over {count} values, from which no squares follow"
        )
    return {"float": total, "count": count, "squares": found}


def _timed(row: Row, column: str, at: str, kind: str) -> dict[str, object]:
    """A value and the instant of its event; both are NULL if there was none."""
    instant = _number(row, at, "int")
    if instant is None:
        return {kind: None, "at": None}
    if instant < 0:
        raise ValueError(f"column {at!r} must hold milliseconds since 1970, not {instant}")
    return {kind: _text(row, column) if kind == "text" else _number(row, column, kind, column), "at": instant}


def _text(row: Row, column: str) -> str | None:
    value = row.get(column)
    if value is not None and not (isinstance(value, str) and len(value) <= TEXT_CHARS_MAX):
        raise ValueError(
            f"value column {column!r} must hold text of {TEXT_CHARS_MAX} characters at most, "
            f"not {value!r:.40}"
        )
    return value


def _sketch(row: Row, column: str, kind: str) -> str | None:
    """A sketch as base64 text; None if it has no values."""
    value = row.get(column)
    if value is None:
        return None
    try:
        content = base64.b64decode(value, validate=True) if isinstance(value, str) else value
        if not isinstance(content, bytes):
            raise BadSketch(f"it is {type(value).__name__}")
        check(kind, content)
    except (BadSketch, binascii.Error) as error:
        raise ValueError(f"value column {column!r} must hold a {kind} sketch: {error}") from None
    return base64.b64encode(content).decode()


def _number(row: Row, column: str, kind: str, declared: str = "") -> int | float | None:
    """A number of type `kind`, so that the cloud's column has one type. `declared`: the column whose type the
    action may declare otherwise; empty for counts and instants, which are always whole."""
    value = row.get(column)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"value column {column!r} must hold a number, not {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"value column {column!r} holds {value}, which cannot be merged")
    if kind == "float":
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"value column {column!r} holds a number beyond the range of a float") from None
    if value != int(value) or int(value) not in INT64:
        remedy = f"; write types: {{{declared}: float}} to send it as a float" if declared else ""
        raise ValueError(f"value column {column!r} holds {value}, which is no integer of 64 bits{remedy}")
    return int(value)
