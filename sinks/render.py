"""Rows to messages: the common properties of eKuiper's sinks, applied in one place.

The order is: rows of the emission, template, `dataField`, `fields` and
`excludeFields`, NULL columns, format, compression. Rows that fill `{{.field}}` of the topic, URL or path
differently go into separate messages, in the order of first appearance.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from rules.protobuf import message_of, message_type
from rules.secrets import reveal
from sinks.base import Message, Row
from sinks.dynamic import Target
from sinks.json_text import count_non_finite, json_bytes
from sinks.settings import SinkSettings
from sinks.template import Template
from sql.errors import DataError
from sql.record import Record
from sql.types import as_text, key_of

if TYPE_CHECKING:
    from sql import Emission


class Unrendered(Record):
    """Rows that could not be rendered as a message, and the reason."""

    rows: tuple[Row, ...]
    reason: str


class Rendered(Record):
    """The messages of some emissions, the rows that could not be rendered, and the number of NaN and
    infinities that became null."""

    messages: list[Message]
    failed: list[Unrendered]
    non_finite: int


def emission_rows(emission: Emission, rowkind_field: str | None = None) -> list[Row]:
    """The rows of an emission to send: inserted, then removed ones, or one row per bad event of an error
    emission.

    Only emissions of rules with `rstream` or `irstream` have removed rows. With `rowkind_field` the rows are
    changes of a store with keys, made in their order: removed rows come first, so that an update of a key
    ends as the new row, and a row that is both inserted and removed changes nothing.
    """
    if emission.kind == "error":
        error = {"error": emission.error, "rule": emission.rule, "at": emission.at_ms}
        return [{**error, "event": event} for event in emission.inserted] or [error]
    if rowkind_field is None:
        return [*emission.inserted, *emission.removed]
    # A row that has its own kind keeps it: an update or a deletion in a table, for example.
    inserted: Sequence[Row] = emission.inserted
    removed: Sequence[Row] = emission.removed
    if inserted and removed:
        inserted, removed = _without(inserted, removed), _without(removed, inserted)
    return [
        *({**row, rowkind_field: "delete"} for row in removed),
        *({**row, rowkind_field: row.get(rowkind_field) or "insert"} for row in inserted),
    ]


def _without(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """The rows without one for each equal row of `others`."""
    left = Counter(map(key_of, others))
    out = []
    for row in rows:
        key = key_of(row)
        left[key] -= 1
        if left[key] < 0:
            out.append(row)
    return out


class Renderer:
    """The renderer of emissions as messages for one sink. Stateless and thread-safe."""

    def __init__(self, settings: SinkSettings, rule_id: str = "") -> None:
        self._settings = settings
        self._rule_id = rule_id
        self._target = Target(settings.target_text, settings.target_kind)
        self._template = Template(reveal(settings.data_template)) if settings.data_template else None
        self._message_type = message_type(settings.schema_id) if settings.schema_id else None
        # Work on parsed values is needed only when something is taken out of the row or of
        # the template's output.
        self._selects = bool(settings.data_field or settings.row_fields or settings.exclude_fields)
        self._chooses = not settings.takes_whole_rows and bool(
            settings.row_fields is not None or settings.exclude_fields
        )
        # A column of a table cannot be left out.
        self._drops_null = not (settings.send_nil_field or settings.format == "delimited")

    def render(self, emissions: Sequence[Emission]) -> Rendered:
        """One set of messages for the rows of all emissions together."""
        settings = self._settings
        rows = [row for emission in emissions for row in emission_rows(emission, settings.rowkind_field)]
        at_ms = emissions[0].at_ms if emissions else 0
        result = Rendered([], [], count_non_finite(rows))
        if not rows and (settings.omit_if_empty or settings.send_single or self._target.is_dynamic):
            return result
        for target, group in self._by_target(rows, result.failed):
            for unit in [[row] for row in group] if settings.send_single else [group]:
                try:
                    result.messages.append(self._message(unit, target, at_ms))
                except (DataError, msgspec.MsgspecError, ValueError, OverflowError) as failure:
                    result.failed.append(Unrendered(tuple(unit), str(failure)))
        return result

    def _by_target(self, rows: list[Row], failed: list[Unrendered]) -> Iterable[tuple[str, list[Row]]]:
        if not self._target.is_dynamic:
            return [(self._target.fill({}), rows)]
        if self._settings.send_single:
            return [pair for row in rows for pair in self._filled(row, failed)]
        groups: dict[str, list[Row]] = {}
        for row in rows:
            for target, unit in self._filled(row, failed):
                groups.setdefault(target, []).extend(unit)
        return groups.items()

    def _filled(self, row: Row, failed: list[Unrendered]) -> list[tuple[str, list[Row]]]:
        try:
            return [(self._target.fill(row), [row])]
        except DataError as failure:
            failed.append(Unrendered((row,), str(failure)))
            return []

    def _message(self, rows: list[Row], target: str, at_ms: int) -> Message:
        settings = self._settings
        if self._template and not self._selects:
            text = self._template.render(rows[0] if settings.send_single else rows, at_ms)
            return self._finished(text.encode(), b"", rows, target, at_ms)
        values = self._template_values(rows, at_ms) if self._template else list(rows)
        shaped = self._shape(values)
        if not settings.encodes:
            return self._finished(b"", b"", shaped, target, at_ms)
        if settings.format == "delimited":
            header, payload = self._delimited(shaped)
            return self._finished(payload, header, shaped, target, at_ms)
        if self._message_type is not None:
            return self._finished(message_of(self._message_type, shaped[0]), b"", shaped, target, at_ms)
        single = len(shaped) == 1 and (settings.send_single or self._gives_its_data(values))
        return self._finished(json_bytes(shaped[0] if single else shaped), b"", shaped, target, at_ms)

    def _finished(self, payload: bytes, header: bytes, rows: list[Any], target: str, at_ms: int) -> Message:
        if not self._settings.appends:
            method = None if self._settings.compresses else self._settings.compression
            payload, header = compress(header + payload, method), b""
        return Message(payload, tuple(rows), target, header, self._rule_id, at_ms)

    def _template_values(self, rows: list[Row], at_ms: int) -> list[Any]:
        """The output of the template, parsed as JSON, because columns are to be taken out of it."""
        assert self._template
        text = self._template.render(rows[0] if self._settings.send_single else rows, at_ms)
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError as failure:
            raise DataError(
                f"dataTemplate gives no JSON, but fields are to be taken from it: {failure}"
            ) from None
        return value if isinstance(value, list) else [value]

    def _shape(self, values: list[Any]) -> list[Any]:
        settings = self._settings
        if settings.data_field is not None:
            values = [inner for value in values for inner in self._data_of(value, settings.data_field)]
        return [self._columns(value) if isinstance(value, dict) else value for value in values]

    def _gives_its_data(self, values: list[Any]) -> bool:
        """True for one row whose `dataField` is no list: the message is that value, as in eKuiper."""
        name = self._settings.data_field
        return name is not None and len(values) == 1 and not isinstance(values[0].get(name), list)

    def _data_of(self, value: object, name: str) -> list[Any]:
        """The value of `dataField`: a list counts as several rows."""
        data = value.get(name) if isinstance(value, dict) else None
        if data is None:
            raise DataError(f"dataField '{name}' is absent or NULL")
        return data if isinstance(data, list) else [data]

    def _columns(self, row: dict[str, Any]) -> dict[str, Any]:
        if self._chooses:
            row = self._settings.chosen(row)
        if self._drops_null and None in row.values():
            return {name: value for name, value in row.items() if value is not None}
        return row

    def _delimited(self, rows: list[Any]) -> tuple[bytes, bytes]:
        """Column line and data lines. Columns have the order of `fields`, else of first appearance."""
        names: dict[str, None] = dict.fromkeys(self._settings.fields or ())
        for row in rows:
            if not isinstance(row, dict):
                raise DataError(f"format delimited needs rows of columns, not {type(row).__name__}")
            names.update(dict.fromkeys(row))
        header = self._lines([list(names)]) if self._settings.has_header else b""
        lines = self._lines([[_cell(row.get(name)) for name in names] for row in rows])
        # Only what is appended to other messages needs an end of its last line.
        return header, lines if self._settings.appends else lines.removesuffix(b"\n")

    def _lines(self, lines: list[list[str]]) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=self._settings.delimiter, lineterminator="\n").writerows(lines)
        return buffer.getvalue().encode()


def _cell(value: object) -> str:
    """A value as a cell of a delimited line; NULL is empty, and a number has no exponent."""
    if value is None:
        return ""
    if isinstance(value, float) and isfinite(value):
        return as_text(value)
    return value if isinstance(value, str) else json_bytes(value).decode()


def compress(data: bytes, method: str | None) -> bytes:
    """Compressed bytes; the same input always gives the same output."""
    if method == "gzip":
        return gzip.compress(data, mtime=0)
    if method == "flate":
        squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return squeeze.compress(data) + squeeze.flush()
    if method == "zstd":
        import zstandard

        return zstandard.ZstdCompressor().compress(data)
    return zlib.compress(data) if method == "zlib" else data
