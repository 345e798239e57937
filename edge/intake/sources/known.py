"""Every kind of source: importing this module registers those that come along."""

from __future__ import annotations

from edge.intake.sources import file, http_pull, http_push, simulator
from edge.intake.sources.registry import source_kind, source_kinds

__all__ = ["file", "http_pull", "http_push", "simulator", "source_kind", "source_kinds"]
