"""Payloads like a web form: `dev=7&temp=21.5`. Values are text, and of the declared type where declared types
hold; a name that occurs several times gives an array."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from edge.intake.codecs.base import BadPayload, RowByRow
from edge.intake.codecs.delimited import typed_value

FIELDS_MAX = 1_000


class UrlEncodedDecoder(RowByRow):
    """One row per payload."""

    def values(self, payload: bytes) -> dict[str, Any]:
        try:
            pairs = parse_qs(
                payload.decode("utf-8"),
                keep_blank_values=True,
                strict_parsing=True,
                errors="strict",
                max_num_fields=FIELDS_MAX,
            )
        except ValueError as error:
            raise BadPayload(f"not URL-encoded: {error}") from error
        return {
            name: self._value(name, found[0]) if len(found) == 1 else found for name, found in pairs.items()
        }

    def _value(self, name: str, text: str) -> Any:
        types = self.options.types
        if self.options.validator is None or types.get(name, "string") == "string":
            return text
        return typed_value(name, text, types)
