"""Payloads that are one value: column `self` holds the bytes, as in eKuiper."""

from __future__ import annotations

from typing import Any

from edge.intake.codecs.base import RowByRow


class BinaryDecoder(RowByRow):
    """One row per payload, with the payload as it came in column `self`."""

    def values(self, payload: bytes) -> dict[str, Any]:
        return {"self": payload}
