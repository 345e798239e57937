"""The rows of a backfill from what a rule emits."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cloud_sync.declaration import rule_hash
from sql import Emission, Plan
from sql.emission import Row
from sql.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

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

_encoder = msgspec.json.Encoder()


FOUND = (
    "rule STRING, gateway STRING, number BIGINT, at_ms BIGINT, kind STRING, reason STRING, is_open BOOLEAN, "
    "rule_hash STRING, row STRING"
)
"""The rows that a worker returns. `kind` is insert, remove, late or error, or state (`handover`),
which belongs to no rule; `number` counts the rows of a gateway in the order in which they were emitted;
`reason` is that of an error, or the late event as JSON; `is_open`: the end of the raw events made the row,
which closes the windows that are open; `rule_hash` is that of the records that gateways upload;
`row` is JSON."""

EMPTY: dict[str, Any] = dict.fromkeys(column.split()[0] for column in FOUND.split(", "))
"""A row whose fields are all NULL, in the order of the columns."""


class Misfit(Exception):
    """A value does not fit its column; the text says why."""


class Written(NamedTuple):
    """The fields that differ between the rows of a gateway and rule, by columns."""

    number: pa.Array
    at_ms: pa.Array
    kind: pa.Array
    reason: pa.Array
    row: pa.Array


class Runs(NamedTuple):
    """Emissions with rows: the instant of each, what the count of all rows up to one of its rows lacks
    to the number of this row, and the count up to its last one."""

    at_ms: list[int]
    before: list[int]
    ends: list[int]

    def columns(self) -> tuple[pa.Array, pa.Array]:
        """Number and instant of each row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ends, counted = pa.array(self.ends, pa.int32()), pc.cumulative_sum(pa.repeat(1, self.ends[-1]))
        before, at_ms = (
            pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, pa.array(values, pa.int64())))
            for values in (self.before, self.at_ms)
        )
        return pc.add(counted, before), at_ms


class RowWriter:
    """The rows of one rule. It gathers what the rule emits and writes many rows together,
    because the values of a column are checked faster than those of a row."""

    def __init__(self, rule: str, plan: Plan) -> None:
        self.rule = rule
        self.hash = rule_hash(plan.text)
        self._columns = plan.columns_with_states
        self._blank: Row = dict.fromkeys(self._columns or ())
        """Stands in `_rows` for what is no row of the SELECT."""
        self._rows: list[Row] = []
        self._emissions = Runs([], [], [])
        self._kinds: dict[int, str] = {}
        """By place the kinds of rows other than `insert`."""
        self._reasons: dict[int, str | None] = {}
        self._others: dict[int, str | None] = {}
        """By place the texts of rows that are not those of the SELECT."""

    def add(self, emission: Emission, number: int) -> int:
        """Take the rows of an emission, the first of which has this number; the next number.
        Inserted ones come first."""
        rows, runs = self._rows, self._emissions
        place = len(rows)
        if emission.kind == "rows":
            rows += emission.with_states() if emission.states else emission.inserted
            if emission.removed:
                self._kinds.update(
                    dict.fromkeys(range(len(rows), len(rows) + len(emission.removed)), "remove")
                )
                rows += emission.removed
        else:
            self._add_others(emission)
        if (end := len(rows)) > place:
            runs.at_ms.append(emission.at_ms)
            runs.before.append(number - place - 1)
            runs.ends.append(end)
        return number + end - place

    def _add_others(self, emission: Emission) -> None:
        """Take late events, or those that could not be evaluated."""
        is_late = emission.kind == "late"
        for event in emission.inserted if is_late else emission.inserted or ({},):
            place, text = len(self._rows), json_of(_shown(event))
            self._kinds[place] = emission.kind
            self._reasons[place] = text if is_late else emission.error
            self._others[place] = None if is_late else text
            self._rows.append(self._blank)

    def write(self) -> Written | None:
        """The rows that were gathered, which are then forgotten, and None of none; an error in place of a row
        that does not fit the columns."""
        import pyarrow as pa

        count = len(self._rows)
        if not count:
            return None
        texts = self._texts()
        kinds = _replaced(pa.repeat("insert", count), self._kinds)
        reasons = _replaced(pa.nulls(count, pa.string()), self._reasons)
        written = Written(*self._emissions.columns(), kinds, reasons, texts)
        self._rows, self._emissions = [], Runs([], [], [])
        self._kinds, self._reasons, self._others = {}, {}, {}
        return written

    def _texts(self) -> pa.Array:
        """The column `row`."""
        texts = self._together(self._rows)
        if texts is None:
            alone = [self._alone(place, row) for place, row in enumerate(self._rows)]
            texts = _strings(alone)
        return _replaced(texts, self._others)

    def _together(self, rows: list[Row]) -> pa.Array | None:
        """The texts of rows; None if some value needs a check of its own."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = self._columns
        if columns is None or not all(_fit(rows, name, kind) for name, kind in columns.items()):
            return None
        try:
            lines = _encoder.encode_lines(rows)
        except (OverflowError, TypeError, UnicodeEncodeError):
            return None
        return pc.split_pattern(pa.array([lines], pa.string()), "\n").values[:-1]

    def _alone(self, place: int, row: Row) -> str | None:
        """The text of one row."""
        if self._columns is None:
            return json_of(_shown(row))
        try:
            cells = _cells(row, self._columns)
        except Misfit as error:
            self._kinds[place], self._reasons[place] = "error", str(error)
            return None
        try:
            return _encoder.encode(cells).decode()
        except (OverflowError, UnicodeEncodeError):  # integers of more than 64 bits, lone surrogates
            return json_of(cells)


def _replaced(column: pa.Array, others: Mapping[int, str | None]) -> pa.Array:
    """A column with other texts at some places."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not others:
        return column
    places, bits = sorted(others), bytearray(len(column) // 8 + 1)
    for place in places:
        bits[place // 8] |= 1 << place % 8
    mask = pa.Array.from_buffers(pa.bool_(), len(column), [None, pa.py_buffer(bits)])
    return pc.replace_with_mask(column, mask, _strings([others[place] for place in places]))


def _strings(texts: Sequence[str | None]) -> pa.Array:
    """A column of texts. A lone surrogate, which UTF-8 cannot hold, becomes its escape in JSON."""
    import pyarrow as pa

    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        encoded = [text and text.encode("utf-8", "backslashreplace") for text in texts]
        return pa.array(encoded, pa.string())


def _fit(rows: list[Row], name: str, kind: Type) -> bool:
    """True if the values of a column fit its type and are written unchanged."""
    allowed = CLASSES.get(kind, ())
    try:
        classes = {row[name].__class__ for row in rows}
    except KeyError:
        classes = {row.get(name).__class__ for row in rows}
    if not allowed or not classes <= {*allowed, NoneType}:
        return False
    if kind is not Type.INTEGER or int not in classes:
        return True
    values = [value for row in rows if (value := row.get(name)) is not None]
    return min(values) in INTEGERS and max(values) in INTEGERS


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


def json_of(value: object) -> str:
    """JSON text; NaN and infinities are null as in the sinks, bytes are base64."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_told, allow_nan=False)
    except ValueError:
        from sinks.json_text import json_text

        return json_text(value)


def _told(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
