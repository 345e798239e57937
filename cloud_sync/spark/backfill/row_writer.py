"""The rows of a backfill from what a rule emits."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from cloud_sync.declaration import rule_hash
from sql import Emission, Plan
from sql.types import Type

TYPES = {
    Type.INTEGER: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.STRING: "STRING",
    Type.BOOLEAN: "BOOLEAN",
    Type.BYTES: "BINARY",
}
"""Types that a column has in SQL too; JSON holds bytes as base64. Columns of other types hold JSON text."""

CLASSES: Mapping[Type, tuple[type, ...]] = {
    Type.INTEGER: (int,),
    Type.FLOAT: (int, float),
    Type.STRING: (str,),
    Type.BOOLEAN: (bool,),
    Type.BYTES: (bytes,),
}
"""The classes of values that fit a column of a type; a bigint has 64 bits besides."""

INTEGERS = range(-(2**63), 2**63)

_encode_cells = msgspec.json.Encoder().encode


FOUND = (
    "rule STRING, gateway STRING, number BIGINT, at_ms BIGINT, kind STRING, reason STRING, is_open BOOLEAN, "
    "rule_hash STRING, row STRING"
)
"""The rows that a worker returns. `kind` is insert, remove, late or error, or state (`handover`),
which belongs to no rule; `number` counts the rows of a gateway, those of a rule in their order;
`reason` is that of an error, or the late event as JSON; `is_open`: the end of the raw events made the row,
which closes the windows that are open; `rule_hash` is that of the records that gateways upload;
`row` is JSON."""

EMPTY: dict[str, Any] = dict.fromkeys(column.split()[0] for column in FOUND.split(", "))
"""A row whose fields are all NULL, in the order of the columns."""

SHAPES_MAX = 1_000
"""So many shapes of rows are remembered."""


class Misfit(Exception):
    """A value does not fit its column; the text says why."""


Found = tuple[str, int, str, str | None, str, str | None]
"""The fields that differ between the rows of a gateway: rule, at_ms, kind, reason, rule_hash, row."""


class RowWriter:
    """The rows of one rule.

    Names and classes of a row's values, its shape, decide whether they fit their columns,
    but for the size of integers. So a shape is looked at once.
    """

    def __init__(self, rule: str, plan: Plan) -> None:
        self._rule = rule
        self._hash = rule_hash(plan.text)
        self._columns = plan.columns_with_states
        self._integers: dict[tuple[object, ...], tuple[str, ...] | None] = {}
        """By shape the columns with integers; None for rows that are not written as they are."""

    def rows(self, emission: Emission) -> list[Found]:
        """The rows of an emission of the rule, inserted ones first."""
        at_ms, inserted = emission.at_ms, emission.with_states()
        if emission.kind == "rows":
            found = [self._of_table(at_ms, "insert", row) for row in inserted]
        elif emission.kind == "late":
            found = [self._found(at_ms, "late", json_of(_shown(row)), None) for row in inserted]
        else:
            why = emission.error
            found = [self._found(at_ms, "error", why, json_of(_shown(row))) for row in inserted or ({},)]
        if emission.removed:
            found += [self._of_table(at_ms, "remove", row) for row in emission.removed]
        return found

    def _of_table(self, at_ms: int, kind: str, row: Mapping[str, Any]) -> Found:
        """A row of the SELECT; an error in place of one that does not fit the columns."""
        if self._columns is None:
            return self._found(at_ms, kind, None, json_of(_shown(row)))
        shape = (*row, *map(type, row.values()))
        try:
            integers = self._integers[shape]
        except KeyError:
            integers = _integers(row, self._columns)
            if len(self._integers) < SHAPES_MAX:
                self._integers[shape] = integers
        try:
            if integers is None:
                row = _cells(row, self._columns)
            else:
                for name in integers:
                    if row[name] not in INTEGERS:
                        row = _cells(row, self._columns)
            return self._rule, at_ms, kind, None, self._hash, _encode_cells(row).decode()
        except Misfit as error:
            return self._found(at_ms, "error", str(error), None)
        except (OverflowError, UnicodeEncodeError):  # integers of more than 64 bits, lone surrogates
            return self._found(at_ms, kind, None, json_of(row))

    def _found(self, at_ms: int, kind: str, reason: str | None, row: str | None) -> Found:
        return self._rule, at_ms, kind, reason, self._hash, row


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without NULL columns and metadata."""
    return {name: value for name, value in row.items() if value is not None and name != "$meta"}


def _cells(row: Mapping[str, Any], columns: Mapping[str, Type]) -> dict[str, Any]:
    """The values of a row by the types of its columns. Raises Misfit."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if value is None or name == "$meta":
            continue
        kind = columns.get(name, Type.ANY)
        classes = CLASSES.get(kind)
        if classes is None:
            cells[name] = json_of(value)
        elif value.__class__ not in classes or (kind is Type.INTEGER and value not in INTEGERS):
            raise Misfit(f"column '{name}' holds {str(value)[:40]!r}, the plan says {kind.value}")
        else:
            cells[name] = value
    return cells


def _integers(row: Mapping[str, Any], columns: Mapping[str, Type]) -> tuple[str, ...] | None:
    """The columns with integers; None if some value does not fit, or becomes JSON text, or is metadata."""
    for name, value in row.items():
        classes = CLASSES.get(columns.get(name, Type.ANY))
        if classes is None or not (value is None or value.__class__ in classes):
            return None
    return tuple(name for name, value in row.items() if value.__class__ is int)


def json_of(value: object) -> str:
    """JSON text; NaN and infinities are null as in the sinks, bytes are base64."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_told, allow_nan=False)
    except ValueError:
        from sinks.json_text import json_text

        return json_text(value)


def _told(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
