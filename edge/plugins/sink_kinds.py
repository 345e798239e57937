"""The kinds of sinks that actions of rule files may name."""

from __future__ import annotations

from cloud_sync import archive, sink
from rules.model import register_action
from sinks import sink_kinds

REGISTERED = (archive, sink)
"""Modules that register kinds beside those of `sinks`."""


def register_sinks() -> None:
    """Make every sink, the cloud's included, known to rule files."""
    for kind in sink_kinds():
        register_action(kind.name, kind.settings, kind.bind, kind.widen)
