"""The names that are registered now, by the kind of addition. Imported where there is a plug-in, for it needs
the registries of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cloud_sync.targets import TARGETS
from edge.intake.codecs.base import FORMATS
from edge.intake.sources.registry import source_kinds
from sinks import sink_kinds
from sql.aggregates import base as aggregates
from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES
from sql.algebra.windows.catalog import WINDOWS
from sql.algebra.windows.lots import LOT_ENTRIES
from sql.functions import registry

REGISTERED: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "functions": registry.names,
    "aggregates": aggregates.names,
    "windows": lambda: (*WINDOWS, *GROUP_ENTRIES, *LOT_ENTRIES),
    "sources": lambda: tuple(kind.name for kind in source_kinds()),
    "codecs": lambda: tuple(FORMATS),
    "sinks": lambda: tuple(kind.name for kind in sink_kinds()),
    "targets": lambda: tuple(TARGETS),
}
"""One entry for each of `edge.plugins.entry_points.KINDS`."""
