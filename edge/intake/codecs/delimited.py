"""Payloads of values with a delimiter between them: `7,21.5,ok`. One line is one row,
and a payload has one line.

Columns take their names from the stream's fields, or are called col0, col1, … Values are text, and stay text
unless the stream declares another type for the column; a value that does not fit its declared type refuses
the payload.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from typing import Any

from edge.intake.codecs.base import BadPayload, CodecError, CodecOptions, RowByRow
from sql.catalog.streams import Stream


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "bigint": int,
    "float": _float,
    "boolean": _boolean,
    "string": str,
}


ONE_CHARACTER = "must be one character, and no quote or line end"


def delimiter_of(stream: Stream) -> str:
    """The delimiter of the columns of a message or a CSV line. SQL can write a tab as `\\t` only."""
    return str(stream.options.get("DELIMITER", ",")).replace(r"\t", "\t")


def is_delimiter(text: str) -> bool:
    """True if a text can stand between two columns: see `ONE_CHARACTER`."""
    return len(text) == 1 and text not in '"\r\n'


class DelimitedDecoder(RowByRow):
    """One row per payload; an empty value is NULL."""

    def __init__(self, columns: frozenset[str] | None, options: CodecOptions) -> None:
        if not is_delimiter(options.delimiter):
            raise CodecError(f"delimiter {options.delimiter!r} {ONE_CHARACTER}")
        super().__init__(columns, options)

    def values(self, payload: bytes) -> dict[str, Any]:
        try:
            lines = list(
                csv.reader(
                    payload.decode("utf-8").splitlines(), delimiter=self.options.delimiter, strict=True
                )
            )
        except (ValueError, csv.Error) as error:
            raise BadPayload(f"not delimited text: {error}") from error
        if len(lines) != 1:
            raise BadPayload(f"expected one line of delimited text, got {len(lines)}")
        names = self.options.fields or tuple(f"col{number}" for number in range(len(lines[0])))
        if len(names) != len(lines[0]):
            raise BadPayload(f"expected {len(names)} values ({', '.join(names)}), got {len(lines[0])}")
        types = self.options.types
        return {name: typed_value(name, text, types) for name, text in zip(names, lines[0], strict=True)}


def typed_value(name: str, text: str, types: Mapping[str, str]) -> Any:
    """The value of a text in the column `name`, converted to its declared type; empty is NULL."""
    if text == "":
        return None
    convert = _CONVERTERS.get(types.get(name, "string").lower(), str)
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise BadPayload(f"column '{name}' is declared {types[name]}, got {text[:40]!r}") from None
