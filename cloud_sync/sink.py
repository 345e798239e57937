"""The `cloud` sink: a rule's rows become partial aggregates in the spool, which the cloud job
merges over all gateways.

The action says which columns identify a row and how each of the others merges; the job reads the same
declaration from the record, so the query on the edge and the merge in the cloud cannot drift apart. The
record is described in docs/cloud.md.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from cloud_sync.binding import bind, widen
from cloud_sync.columns import value_maker
from cloud_sync.declaration import CloudSettings
from cloud_sync.names import utc_date
from cloud_sync.records import Record
from cloud_sync.schemas import INT64
from cloud_sync.spool_sink import SpoolSink
from sinks.base import Row, register_sink
from sql.errors import DataError


class RecordMaker:
    """Makes the records of an action's rows. What follows from the settings is worked out once."""

    def __init__(self, settings: CloudSettings, rule: str) -> None:
        self._settings = settings
        self._rule = rule
        self._bounds = settings.window_start, settings.window_end
        self._zone = ZoneInfo(settings.zone)
        self._keys = tuple(settings.keys or ())
        self._hashed = frozenset(settings.hashed)
        self._values = [value_maker(name, merge, settings) for name, merge in (settings.merge or {}).items()]
        self._checks = settings.checks
        self._told = {"rule_hash": settings.rule_hash} if settings.rule_hash else {}
        self._schema = settings.schema_file
        self._window = -1, _Windows([], "", 0)

    def record(self, row: Row, at_ms: int) -> Record:
        """The record of one row. `at_ms` is both bounds of a row without window columns (an alert).

        Raises ValueError with the column and the reason if the row does not fit the settings.
        """
        start_ms = _instant(row, self._bounds[0], at_ms)
        end_ms = _instant(row, self._bounds[1], start_ms)
        windows = self._windows(start_ms)
        if not start_ms <= end_ms <= start_ms + windows.length_ms:
            raise ValueError(
                f"window [{start_ms}, {end_ms}) does not fit the fleet window of {windows.levels[0][0]}; "
                "make 'window' of the cloud action a multiple of the rule's window"
            )
        body: dict[str, Any] = {
            "windows": windows.levels,
            "window_start": start_ms,
            "window_end": end_ms,
            "keys": {name: self._key(row, name) for name in self._keys},
            "values": [make(row) for make in self._values],
            **self._told,
        }
        if self._settings.restates:
            body["revision"] = at_ms
        if self._checks and (
            found := [at for at, check in self._checks if check.is_broken_by(row.get(check.name))]
        ):
            body["broken"] = found
        return Record(self._rule, windows.date, msgspec.json.encode(body), self._schema)

    def _windows(self, start_ms: int) -> _Windows:
        """The fleet windows that hold an instant; those of the last row, if it began then too."""
        if self._window[0] != start_ms:
            self._window = start_ms, _windows_around(self._settings, self._zone, start_ms)
        return self._window[1]

    def _key(self, row: Row, column: str) -> Any:
        """A key's value as it is uploaded: hashed if the settings say so. NULL stays NULL."""
        value = _key(row, column)
        if column not in self._hashed or value is None:
            return value
        secret = self._settings.hash_key
        key = secret.reveal() if secret else ""  # the settings require one
        return hmac.new(key.encode(), msgspec.json.encode(value), hashlib.sha256).hexdigest()[:32]


class _Windows(NamedTuple):
    """The fleet window of each level, from fine to coarse: label, start, end;
    UTC date and length of the finest."""

    levels: list[tuple[str, int, int]]
    date: str
    length_ms: int


def _windows_around(settings: CloudSettings, zone: ZoneInfo, start_ms: int) -> _Windows:
    try:
        levels = [(level.label, *level.around(start_ms, zone)) for level in settings.window]
        _, finest_ms, end_ms = levels[0]
        return _Windows(levels, utc_date(finest_ms), end_ms - finest_ms)
    except (DataError, ValueError, OverflowError):
        raise ValueError(f"window start {start_ms} is not an instant in milliseconds since 1970") from None


def _instant(row: Row, column: str, default_ms: int) -> int:
    value = row.get(column)
    if value is None:
        return default_ms
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError(f"column {column!r} must hold milliseconds since 1970, not {value!r}")
    return value


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


register_sink("cloud", CloudSettings, SpoolSink, bind, widen)
