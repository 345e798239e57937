"""Payloads that are bytes: the one column that the stream declares holds them, or `self`, as in eKuiper."""

from __future__ import annotations

from typing import Any

from edge.intake.codecs.base import CodecOptions, RowByRow


class BinaryDecoder(RowByRow):
    """One row of one column per payload: the payload as it came."""

    def __init__(self, columns: frozenset[str] | None, options: CodecOptions) -> None:
        super().__init__(columns, options)
        self.column = options.only_column("binary", "self")

    def values(self, payload: bytes) -> dict[str, Any]:
        return {self.column: payload}
