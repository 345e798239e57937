"""FORMAT="pair": a payload `name=value`."""

from __future__ import annotations

from typing import Any

from edge.intake.codecs.base import BadPayload, RowByRow, register_format


class PairDecoder(RowByRow):
    """One column, whose name stands in the payload."""

    def values(self, payload: bytes) -> dict[str, Any]:
        name, sign, value = payload.decode().partition("=")
        if not sign:
            raise BadPayload("a pair has the form name=value")
        return {name: float(value)}


register_format("pair", "penstock_climate.codecs:PairDecoder")
