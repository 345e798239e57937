"""Schema files: what the columns of a rule's uploaded rows mean, one file in the bucket for each declaration.

    v2-schemas/rule=<rule>/<rule hash>-<id>.json

The id is the beginning of the SHA-256 of the content, so a file never changes,
and gateways with the same rule write the same one.
It is there before the first data file whose manifest names it.
This module needs nothing but the standard library: Spark's workers import it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cloud_sync.names import VERSION, schema_name

SCHEMA_BYTES_MAX = 1 << 20
TEXT_CHARS_MAX = 65_536
"""The longest text that a first or last value may be."""
INT64 = range(-(2**63), 2**63)
"""Whole numbers beyond these do not fit the cloud's columns."""
THEN = ("warn", "quarantine", "fail")
HASHED = "hashed"
_ID = re.compile(r"[0-9a-f]{16}")


class Key(NamedTuple):
    """A column that identifies a row. `type` is the SELECT's;
    `mark` is `hashed` for one that never leaves the gateway in clear, else empty."""

    name: str
    type: str
    mark: str = ""


class Column(NamedTuple):
    """A value column: how it merges, and its type. `of` names the sketch that it follows from, `part` the
    percentile."""

    name: str
    merge: str
    type: str
    of: str | None = None
    part: float | None = None


class Check(NamedTuple):
    """An expectation of the rule about its rows: of a column that it lies from `min` to `max`, or is not NULL
    (`not_null`); or, without a column, that no window is older than `freshness_ms`. `then`: one of THEN."""

    column: str | None
    then: str
    min: float | None = None
    max: float | None = None
    not_null: bool = False
    freshness_ms: int | None = None


class Schema(NamedTuple):
    """The declaration of one action of one version of a rule. `windows` are the names of the levels,
    from fine to coarse; `secret` columns do not leave the gateway."""

    rule: str
    rule_hash: str
    windows: tuple[str, ...]
    zone: str
    restates: bool
    keys: tuple[Key, ...]
    values: tuple[Column, ...]
    secret: tuple[str, ...] = ()
    expect: tuple[Check, ...] = ()


class SchemaFile(NamedTuple):
    """A schema as it lies in the bucket."""

    rule: str
    rule_hash: str
    id: str
    content: bytes

    @property
    def key(self) -> str:
        """The hash of the rule and the id: what the spool's rows name."""
        return f"{self.rule_hash}-{self.id}"

    @property
    def name(self) -> str:
        """The name of the file in the bucket."""
        return schema_name(self.rule, self.key)


class BadSchema(ValueError):
    """The content is no schema; the text says why."""


def schema_file(schema: Schema) -> SchemaFile:
    """The file of a schema: equal schemas give equal bytes and an equal name."""
    fields = {
        "version": VERSION,
        **schema._asdict(),
        "keys": [_set_fields(key) for key in schema.keys],
        "values": [_set_fields(value) for value in schema.values],
        "expect": [_set_fields(check) for check in schema.expect],
    }
    content = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    return SchemaFile(schema.rule, schema.rule_hash, schema_id(content), content)


def schema_id(content: bytes) -> str:
    """The id of a schema, from the bytes of its file.

    >>> schema_id(b"")
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(content).hexdigest()[:16]


def is_id(text: str) -> bool:
    """True if a text has the form of an id, or of a rule's hash."""
    return _ID.fullmatch(text) is not None


def _set_fields(part: Key | Column | Check) -> dict[str, Any]:
    """The fields that are set."""
    fields = part._asdict().items()
    return {name: value for name, value in fields if value is not None and value is not False and value != ""}


def read_schema(content: bytes) -> Schema:
    """The schema of a file. Raises BadSchema."""
    if len(content) > SCHEMA_BYTES_MAX:
        raise BadSchema(f"a schema of {len(content)} bytes is beyond the bound of {SCHEMA_BYTES_MAX}")
    try:
        fields = json.loads(content)
        return _schema(fields)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadSchema(f"it is no schema: {error!r}"[:200]) from None
    except ValueError as error:
        raise BadSchema(f"it is no schema: {error}") from None


def _schema(fields: Mapping[str, Any]) -> Schema:
    if fields["version"] != VERSION:
        raise ValueError(f"it has version {fields['version']!r}; update penstock")
    found = Schema(
        _text(fields["rule"]),
        _text(fields["rule_hash"]),
        tuple(map(_text, fields["windows"])),
        _text(fields["zone"]),
        fields["restates"] is True,
        tuple(
            Key(_text(key["name"]), _text(key["type"]), _text(key.get("mark", ""))) for key in fields["keys"]
        ),
        tuple(map(_column, fields["values"])),
        tuple(map(_text, fields["secret"])),
        tuple(map(_check, fields["expect"])),
    )
    names = [*(key.name for key in found.keys), *(value.name for value in found.values)]
    if len({*names}) < len(names):
        raise ValueError("it names a column twice")
    return found


def _column(fields: Mapping[str, Any]) -> Column:
    of = fields.get("of")
    return Column(
        _text(fields["name"]),
        _text(fields["merge"]),
        _text(fields["type"]),
        None if of is None else _text(of),
        _number(fields.get("part")),
    )


def _check(fields: Mapping[str, Any]) -> Check:
    column, then, freshness = fields.get("column"), fields["then"], fields.get("freshness_ms")
    if then not in THEN or not (freshness is None or (isinstance(freshness, int) and freshness > 0)):
        raise ValueError("it holds a check that is none")
    if (column is None) is not (freshness is not None):
        raise ValueError("a check is about a column or about freshness")
    return Check(
        None if column is None else _text(column),
        then,
        _number(fields.get("min")),
        _number(fields.get("max")),
        fields.get("not_null") is True,
        freshness,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no number")
    return float(value)


# --- versions of a table ------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """The columns of one version of a rule's table: those of all schemas that evolved it."""

    zone: str
    keys: frozenset[tuple[str, str]]
    values: Mapping[str, Column]


def shape(schema: Schema) -> Shape:
    """The table that a schema begins."""
    keys = frozenset((key.name, key.mark) for key in schema.keys)
    return Shape(schema.zone, keys, {value.name: value for value in schema.values})


def evolved(table: Shape, schema: Schema) -> Shape | None:
    """The table with the columns of one more schema; None if it is no addition,
    so that the next version begins.

    An addition has the same keys and the same zone, and its values merge as those of the same name do.
    Levels and checks may differ.
    """
    other = shape(schema)
    is_same = other.zone == table.zone and other.keys == table.keys
    if not is_same or any(table.values.get(name, value) != value for name, value in other.values.items()):
        return None
    return table._replace(values={**table.values, **other.values})


def versions(schemas: Iterable[Schema]) -> list[int]:
    """The version of its rule's table that each schema belongs to, from 1.
    The schemas come in the order in which they appeared first; one that no version can take begins the next.

    >>> keys, values = (Key("dev", "string"),), (Column("n", "count", "int"),)
    >>> one = Schema("r", "0" * 16, ("1m",), "UTC", False, keys, values)
    >>> two = one._replace(values=(*one.values, Column("x", "sum", "float")))
    >>> three = two._replace(values=(Column("x", "sum", "int"),))
    >>> versions([one, two, three, one])
    [1, 1, 2, 1]
    """
    tables: list[Shape] = []
    found = []
    for schema in schemas:
        for number, table in enumerate(tables):
            if (grown := evolved(table, schema)) is not None:
                tables[number] = grown
                break
        else:
            number = len(tables)
            tables.append(shape(schema))
        found.append(number + 1)
    return found
