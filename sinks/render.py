"""Rows to messages: the common properties of eKuiper's sinks, applied in one place.

The order is: rows of the emission, template, `dataField`, `fields` and
`excludeFields`, NULL columns, format, compression. Rows that fill `{{.field}}` of the topic, URL or path
differently go into separate messages, in the order of first appearance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from rules.protobuf import message_of, message_type
from rules.secrets import reveal
from sinks.base import Message, Row
from sinks.dynamic import Target
from sinks.formats.compression import compressor
from sinks.formats.delimited import delimited
from sinks.formats.json_text import count_non_finite, json_bytes
from sinks.settings import SinkSettings
from sinks.template import Template
from sql.errors import DataError
from sql.record import Record
from sql.types import key_of

if TYPE_CHECKING:
    from sql import Emission


class Unrendered(Record):
    """Rows that could not be rendered as a message, and the reason."""

    rows: tuple[Row, ...]
    reason: str


@dataclass(slots=True)
class Rendered:
    """The messages of some emissions, the rows that could not be rendered, and the number of NaN and
    infinities that became null."""

    messages: list[Message] = field(default_factory=list)
    failed: list[Unrendered] = field(default_factory=list)
    non_finite: int = 0


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
        self._fixed_target = None if self._target.is_dynamic else self._target.fill({})
        self._template = Template(reveal(settings.data_template)) if settings.data_template else None
        self._message_type = message_type(settings.schema_id) if settings.schema_id else None
        # Work on parsed values is needed only when something is taken out of the row or of
        # the template's output.
        self._selects = bool(settings.data_field or settings.row_fields or settings.exclude_fields)
        self._writes_text = self._template is not None and not self._selects
        self._writes_json = settings.encodes and settings.format == "json" and not self._writes_text
        self._chooses = not settings.takes_whole_rows and bool(
            settings.row_fields is not None or settings.exclude_fields
        )
        # A column of a table cannot be left out.
        self._drops_null = not (settings.send_nil_field or settings.format == "delimited")
        method = None if settings.appends or settings.compresses else settings.compression
        self._compress = compressor(method)

    def render(self, emissions: Sequence[Emission]) -> Rendered:
        """One set of messages for the rows of all emissions together."""
        settings, target = self._settings, self._fixed_target
        rows: list[Row] = []
        for emission in emissions:
            rows += emission_rows(emission, settings.rowkind_field)
        result = Rendered()
        if not rows and (settings.omit_if_empty or settings.send_single or target is None):
            return result
        at_ms = emissions[0].at_ms if emissions else 0
        groups = self._by_target(rows, result.failed) if target is None else ((target, rows),)
        for target, group in groups:
            for unit in zip(group) if settings.send_single else (group,):  # tuples of one row, or all
                if settings.send_single and settings.omit_if_empty and self._is_empty(unit[0]):
                    continue
                try:
                    self._add_message(result, unit, target, at_ms)
                except (DataError, msgspec.MsgspecError, ValueError, OverflowError) as failure:
                    result.failed.append(Unrendered(tuple(unit), str(failure)))
        return result

    def _by_target(self, rows: list[Row], failed: list[Unrendered]) -> Iterable[tuple[str, list[Row]]]:
        """The rows by the targets that they fill."""
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

    def _is_empty(self, row: Row) -> bool:
        """True if a row has no column to send."""
        return not row if self._settings.send_nil_field else all(value is None for value in row.values())

    def _add_message(self, result: Rendered, rows: Sequence[Row], target: str, at_ms: int) -> None:
        """Render these rows as one message. Raises what says that they cannot be rendered."""
        header = b""
        if self._writes_text:
            shaped, payload = rows, self._text(rows, at_ms).encode()
        else:
            values, is_list = self._values(rows, at_ms)
            shaped = self._shape(values)
            header, payload = self._encoded(shaped, is_list)
        # JSON writes NaN as null: a payload without that word has lost none.
        if b"null" in payload or not self._writes_json:
            result.non_finite += count_non_finite(shaped if self._template is None else rows)
        if self._compress is not None:
            payload = self._compress(payload)
        message = Message(payload, tuple(shaped), target, header, self._rule_id, at_ms)
        result.messages.append(message)

    def _text(self, rows: Sequence[Row], at_ms: int) -> str:
        """The output of the template."""
        assert self._template is not None
        return self._template.render(rows[0] if self._settings.send_single else rows, at_ms)

    def _values(self, rows: Sequence[Row], at_ms: int) -> tuple[Sequence[Any], bool]:
        """The values that something is taken out of, and whether they make a list: the rows, or the output of
        the template. What `dataField` holds in a single value decides by itself, as in eKuiper."""
        values: Sequence[Any] = rows
        is_list = not self._settings.send_single
        if self._template is not None:
            value = _parsed(self._text(rows, at_ms))
            is_list = isinstance(value, list)
            values = value if is_list else [value]
        name = self._settings.data_field
        if name is not None and len(values) == 1 and isinstance(values[0], dict):
            is_list = isinstance(values[0].get(name), list)
        return values, is_list

    def _shape(self, values: Sequence[Any]) -> Sequence[Any]:
        """The part of the values to send: their `dataField` and the columns chosen. A message has each of its
        `fields`; other columns are left out where they are NULL."""
        settings = self._settings
        if settings.data_field is not None:
            values = [inner for value in values for inner in _data_of(value, settings.data_field)]
        if self._chooses:
            values = [settings.chosen(value) if isinstance(value, dict) else value for value in values]
            if settings.encodes and settings.row_fields is not None:
                return values
        return [*map(_without_null, values)] if self._drops_null else values

    def _encoded(self, shaped: Sequence[Any], is_list: bool) -> tuple[bytes, bytes]:
        """The column line, of a sink that appends, and the payload."""
        settings = self._settings
        if not settings.encodes:
            return b"", b""
        if settings.format == "delimited":
            return self._delimited(shaped)
        if self._message_type is not None:
            return b"", message_of(self._message_type, shaped[0])
        return b"", json_bytes(shaped if is_list else shaped[0])

    def _delimited(self, rows: Sequence[Any]) -> tuple[bytes, bytes]:
        """Columns have the order of `fields`, else of first appearance."""
        settings = self._settings
        header, lines = delimited(rows, settings.fields or (), settings.delimiter)
        if not settings.has_header:
            header = b""
        if settings.appends:
            return header, lines
        return b"", header + lines.removesuffix(b"\n")  # nothing follows that needs the end of the line


def _parsed(text: str) -> Any:
    """The output of a template as JSON, because columns are to be taken out of it."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as failure:
        raise DataError(
            f"dataTemplate gives no JSON, but fields are to be taken from it: {failure}"
        ) from None


def _data_of(value: object, name: str) -> list[Any]:
    """The value of `dataField`: a list counts as several rows."""
    data = value.get(name) if isinstance(value, dict) else None
    if data is None:
        raise DataError(f"dataField '{name}' is absent or NULL")
    return data if isinstance(data, list) else [data]


def _without_null(value: object) -> object:
    """A row without its NULL columns; anything else as it is."""
    if isinstance(value, dict) and None in value.values():
        return {name: inner for name, inner in value.items() if inner is not None}
    return value
