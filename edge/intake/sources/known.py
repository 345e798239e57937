"""Every kind of source. Those that come along are imported for the first stream that names them."""

from __future__ import annotations

from importlib import import_module

from edge.intake.sources import registry
from edge.intake.sources.registry import SourceKind

MODULES = {"file": "file", "httppull": "http_pull", "httppush": "http_push", "simulator": "simulator"}
"""The module of each of them, which registers it."""


def source_kind(name: str) -> SourceKind | None:
    """The kind called so, or None."""
    if name.lower() in MODULES:
        import_module(f"edge.intake.sources.{MODULES[name.lower()]}")
    return registry.source_kind(name)


def source_kinds() -> tuple[SourceKind, ...]:
    """All kinds, by name."""
    for module in MODULES.values():
        import_module(f"edge.intake.sources.{module}")
    return registry.source_kinds()
