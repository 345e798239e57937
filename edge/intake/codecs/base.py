"""The interface of decoders, and the registry of decoders by a stream's `FORMAT`.

A decoder takes all payloads of a batch in one call and never raises for a bad one: it returns the rows of the
good ones, in order, and the index and the reason of each bad one. A payload may hold several rows: a JSON
array of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from edge.intake.codecs.rows import META, attributes, row_class
from sql.catalog.validation import Validator
from sql.errors import DataError, did_you_mean
from sql.record import Record, field

Row = Any
"""A dict (column -> value), or an object of a class made by `row_class` (an attribute per column)."""

Bad = tuple[int, str]
"""Which payload of the batch could not be decoded, and why in one clause."""


class BadPayload(ValueError):
    """One payload does not follow the format. Never leaves `decode_many`."""


class CodecError(ValueError):
    """The stream names a format, or options, that do not exist."""


class CodecOptions(Record):
    """The options of a stream for its payloads.

    bytes_max   longest payload that is decoded
    depth_max   greatest nesting depth of arrays and objects
    delimiter   between the values of a `delimited` payload
    schema      FILE.Message of a `protobuf` payload
    fields      column names of a `delimited` payload, in order; without them the columns are col0, col1, …
    types       declared type of a column ("bigint", "float", "boolean"), for formats that carry text only
    validator   checks the columns whose declared types hold; None: nothing is checked
    """

    bytes_max: int = 1_048_576
    depth_max: int = 128
    delimiter: str = ","
    schema: str = ""
    fields: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    validator: Validator | None = None

    def only_column(self, format_name: str, default: str) -> str:
        """The name of the one column of a format that has one. Raises `CodecError` for several."""
        if len(self.fields) > 1:
            names = ", ".join(self.fields)
            raise CodecError(f"format {format_name} has one column, not {len(self.fields)}: {names}")
        return self.fields[0] if self.fields else default


class Decoder(Protocol):
    """Decodes the payloads of one stream."""

    def decode_many(
        self, payloads: Sequence[bytes], metas: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[list[Row], list[Bad]]:
        """Rows of the good payloads in order, and the bad ones.

        `metas`, one for each payload, becomes column "$meta" of the payload's rows. Payloads never provide
        that column.
        """


FORMATS = {
    "json": "edge.intake.codecs.json_codec:JsonDecoder",
    "delimited": "edge.intake.codecs.delimited:DelimitedDecoder",
    "binary": "edge.intake.codecs.binary:BinaryDecoder",
    "protobuf": "edge.intake.codecs.protobuf:ProtobufDecoder",
    "urlencoded": "edge.intake.codecs.urlencoded:UrlEncodedDecoder",
    "value": "edge.intake.codecs.value:ValueDecoder",
}
"""The place of the decoder of a FORMAT: module and class."""


def register_format(name: str, path: str) -> None:
    """Register a decoder under a FORMAT; it is made as `Class(columns, options)`, see `RowByRow`.

    The module is imported when a stream names the format.
    """
    assert name not in FORMATS, f"format {name!r} is registered twice"
    FORMATS[name] = path


def decoder_for(
    format_name: str, columns: frozenset[str] | None, options: CodecOptions | None = None
) -> Decoder:
    """The decoder of a stream. `columns`: those that the rules read, None for the whole
    message (rows are dicts then).

    >>> decoder_for("JSON", None).decode_many([b'{"a": 1}', b"nonsense"])[0]
    [{'a': 1}]
    >>> decoder_for("avro", None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    edge.intake.codecs.base.CodecError: format 'avro' is not supported; supported are json, delimited, ...
    """
    path = FORMATS.get(format_name.lower())
    if path is None:
        hint = did_you_mean(format_name.lower(), FORMATS)
        message = f"format '{format_name}' is not supported; supported are {', '.join(FORMATS)}"
        raise CodecError(f"{message}: {hint}" if hint else message)
    module, name = path.split(":")
    make: Callable[[frozenset[str] | None, CodecOptions], Decoder] = getattr(import_module(module), name)
    return make(columns, options or CodecOptions())


class RowByRow:
    """Base of the plain formats: a subclass turns one payload into a dict, or raises `BadPayload`."""

    def __init__(self, columns: frozenset[str] | None, options: CodecOptions) -> None:
        self.options = options
        self._row_class = None if columns is None else row_class(columns)
        self._attributes = attributes(columns or ())

    def values(self, payload: bytes) -> dict[str, Any]:
        """The columns of one payload."""
        raise NotImplementedError

    def decode_many(
        self, payloads: Sequence[bytes], metas: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[list[Row], list[Bad]]:
        rows: list[Row] = []
        bad: list[Bad] = []
        for index, payload in enumerate(payloads):
            try:
                if len(payload) > self.options.bytes_max:
                    raise BadPayload(too_long(payload, self.options.bytes_max))
                values = self.values(payload)
                if self.options.validator is not None:
                    values = self.options.validator.check(values)
            except (ValueError, DataError) as error:
                bad.append((index, str(error)))
                continue
            values.pop(META, None)
            if metas is not None:
                values[META] = metas[index]
            rows.append(self._row(values))
        return rows, bad

    def _row(self, values: dict[str, Any]) -> Row:
        if self._row_class is None:
            return values
        return self._row_class(**{name: values.get(column) for column, name in self._attributes.items()})


def too_long(payload: bytes, bytes_max: int) -> str:
    """The reason for refusing a payload by its length, which stands last: refusals are counted by what is
    before the colon."""
    return f"the payload is longer than the {bytes_max} bytes allowed: {len(payload)}"
