"""The `cloud` sink: a rule's rows become partial aggregates in the spool, which the cloud job
merges over all gateways.

The action says which columns identify a row and how each of the others merges; the job reads the same
declaration from the record, so the query on the edge and the merge in the cloud cannot drift apart. The
record is described in docs/cloud.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from cloud_sync.binding import bind
from cloud_sync.columns import column_of
from cloud_sync.declaration import Average, CloudSettings, How, Sketched, Spread
from cloud_sync.errors import SpoolError, SpoolFull
from cloud_sync.moments import squares
from cloud_sync.records import Record
from cloud_sync.sketches import SKETCHES, BadSketch, check
from cloud_sync.spool import Spool
from sinks.base import Message, Reject, Retry, Row, SinkContext, register_sink
from sql.errors import DataError

SPOOL_SERVICE = "spool"
"""The name under which the process offers its spool in `Environment.services`."""

DAY_MS = 86_400_000

INT64 = range(-(2**63), 2**63)
"""Whole numbers beyond these do not fit the cloud's columns."""


class CloudSink:
    """A sink that appends rows to the spool. They become durable with the gateway's next commit, together
    with the rule's state; the receipt of a message therefore only means that the next commit will contain
    it."""

    def __init__(self, settings: CloudSettings, context: SinkContext) -> None:
        self._settings = settings
        self._context = context
        self._spool: Spool | None = None

    def open(self) -> None:
        """Find the process's spool; a process without one (a dry run) cannot use this sink."""
        spool = self._context.environment.services.get(SPOOL_SERVICE)
        if spool is None:
            raise Retry("this process has no spool; run the rule in the daemon")
        self._spool = spool

    def send(self, messages: Sequence[Message]) -> None:
        """Append every row in order. `Retry` while the spool is full, `Reject` for a row
        that cannot be merged."""
        assert self._spool is not None, "send before open"
        now_ms = self._context.environment.clock.now_ms()
        for done, message in enumerate(messages):
            try:
                records = [
                    partial(row, self._settings, self._context.rule_id, message.at_ms) for row in message.rows
                ]
                self._spool.append(records, now_ms)
            except SpoolFull as full:
                raise Retry(str(full), done=done) from full
            except SpoolError as error:
                raise Retry(str(error), done=done) from error
            except ValueError as error:
                raise Reject(str(error), done=done) from error

    def close(self) -> None:
        """Do nothing: the spool belongs to the process and stays open."""
        self._spool = None


def partial(row: Row, settings: CloudSettings, rule: str, at_ms: int) -> Record:
    """The record of one row. `at_ms` is both bounds of a row without window columns (an alert).

    Raises ValueError with the column and the reason if the row does not fit the settings.
    """
    start_ms = _instant(row, settings.window_start, at_ms)
    end_ms = _instant(row, settings.window_end, start_ms)
    windows = _fleet_windows(settings, start_ms)
    _, fleet_start_ms, fleet_end_ms = windows[0]
    if not start_ms <= end_ms <= start_ms + (fleet_end_ms - fleet_start_ms):
        raise ValueError(
            f"window [{start_ms}, {end_ms}) does not fit the fleet window of {settings.window[0].label}; "
            "make 'window' of the cloud action a multiple of the rule's window"
        )
    body: dict[str, Any] = {
        "windows": windows,
        "window_start": start_ms,
        "window_end": end_ms,
        "keys": {name: _sent_key(row, name, settings) for name in settings.keys or ()},
        "values": [_value(row, name, merge, settings) for name, merge in (settings.merge or {}).items()],
    }
    if settings.rule_hash:
        body["rule_hash"] = settings.rule_hash
    if settings.restates:
        body["revision"] = at_ms
    if broken := settings.broken_by(row):
        body["broken"] = broken
    return Record(rule, _utc_date(fleet_start_ms), msgspec.json.encode(body), settings.schema_file)


def _fleet_windows(settings: CloudSettings, start_ms: int) -> list[tuple[str, int, int]]:
    """The fleet window of each level, from fine to coarse, that holds an instant: label, start, end."""
    zone = ZoneInfo(settings.zone)
    try:
        return [(level.label, *level.around(start_ms, zone)) for level in settings.window]
    except (DataError, ValueError, OverflowError):
        raise ValueError(_no_instant(start_ms)) from None


def _no_instant(instant_ms: int) -> str:
    return f"window start {instant_ms} is not an instant in milliseconds since 1970"


def _utc_date(instant_ms: int) -> str:
    try:
        return datetime.fromtimestamp(instant_ms // DAY_MS * 86_400, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise ValueError(_no_instant(instant_ms)) from None


def _instant(row: Row, column: str, default_ms: int) -> int:
    value = row.get(column)
    if value is None:
        return default_ms
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError(f"column {column!r} must hold milliseconds since 1970, not {value!r}")
    return value


def _sent_key(row: Row, column: str, settings: CloudSettings) -> Any:
    """A key's value as it is uploaded: hashed if the settings say so. NULL stays NULL."""
    value = _key(row, column)
    if column not in settings.hashed or value is None:
        return value
    key = settings.hash_key.reveal() if settings.hash_key else ""  # the settings require one
    return hmac.new(key.encode(), msgspec.json.encode(value), hashlib.sha256).hexdigest()[:32]


def _key(row: Row, column: str) -> Any:
    """A key's value in one spelling: whole floats as integers, so that 1 and 1.0 are one
    group as they are in SQL."""
    value = row.get(column)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"key column {column!r} holds {value}, which JSON cannot carry")
        return int(value) if value.is_integer() and int(value) in INT64 else value
    if isinstance(value, int) and value not in INT64:
        raise ValueError(f"key column {column!r} holds {value}, which does not fit 64 bits")
    if value is None or isinstance(value, str | bool | int):
        return value
    raise ValueError(
        f"key column {column!r} must hold text, a number or a boolean, not {type(value).__name__}"
    )


def _value(row: Row, column: str, merge: How, settings: CloudSettings) -> dict[str, object]:
    told = column_of(column, merge, settings)
    kind = told.type
    head: dict[str, object] = {"as": column, "merge": told.merge, "type": kind}
    if isinstance(merge, Sketched):
        return head | {"of": told.of} | ({} if told.part is None else {"part": told.part})
    if merge in SKETCHES:
        return head | {"sketch": _sketch(row, column, merge)}
    if isinstance(merge, Spread):
        return head | _moments(row, column, merge)
    if isinstance(merge, Average):
        return head | {kind: _number(row, merge.sum, kind), "count": _number(row, merge.count, "int")}
    return head | {kind: _number(row, column, kind)}


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


def _number(row: Row, column: str, kind: str) -> int | float | None:
    """A number of the declared type, so that the cloud's column has one type."""
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
        raise ValueError(
            f"value column {column!r} holds {value}, declared int; write types: {{{column}: float}} if it is not"
        )
    return int(value)


register_sink("cloud", CloudSettings, CloudSink, bind)
