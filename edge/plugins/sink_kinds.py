"""The kinds of sinks that actions of rule files may name."""

from __future__ import annotations

from importlib import import_module

from sinks import provide_sinks

MODULES = {"cloud": "cloud_sync.sink", "archive": "cloud_sync.archive"}
"""The modules that register kinds beside those of `sinks`."""


def register_sinks() -> None:
    """Make every sink, the cloud's included, known to rule files."""
    provide_sinks(_load)


def _load(name: str | None) -> None:
    for kind, module in MODULES.items():
        if name in (kind, None):
            import_module(module)
