"""Payloads that are messages of Protocol Buffers; SCHEMAID names their type."""

from __future__ import annotations

from typing import Any

from edge.intake.codecs.base import BadPayload, CodecError, CodecOptions, RowByRow
from rules.protobuf import columns_of, message_type


class ProtobufDecoder(RowByRow):
    """One row per payload, a column for each field."""

    def __init__(self, columns: frozenset[str] | None, options: CodecOptions) -> None:
        super().__init__(columns, options)
        try:
            self._type = message_type(options.schema)
        except ValueError as error:
            raise CodecError(f"SCHEMAID: {error}") from None

    def values(self, payload: bytes) -> dict[str, Any]:
        from google.protobuf.message import DecodeError

        try:
            return columns_of(self._type.FromString(payload))
        except DecodeError as error:
            raise BadPayload(f"no message {self._type.DESCRIPTOR.full_name}: {error}") from None
