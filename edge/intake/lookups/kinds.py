"""The kinds of stores that TYPE of a lookup table may name."""

from __future__ import annotations

from collections.abc import Mapping

from edge.intake.lookups.base import LookupKind


def kinds() -> Mapping[str, LookupKind]:
    """Every kind of store by its TYPE. They are imported at the first call: few gateways need them."""
    from edge.intake.lookups import http, redis, sql

    return {module.KIND.name: module.KIND for module in (http, redis, sql)}
