"""Plug-ins: packages that add functions, aggregates, windows, sources, codecs, sinks or upload targets.

A package names modules under entry points, one group for each kind; a module registers its additions on
import:

    [project.entry-points."penstock.functions"]
    climate = "my_package.climate"

A module that cannot be imported is logged and left out: the gateway runs on without it. Functions run behind
the guard of `rules.functions.guard`, sinks and sources in threads of their own, behind the delivery layer and
the intake.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from cloud_sync.targets import TARGETS
from edge.intake.codecs.base import FORMATS
from edge.intake.sources.known import source_kinds
from rules.functions.guard import guard_function
from sinks import sink_kinds
from sql.aggregates import base as aggregates
from sql.algebra.sample.windows.group_entry import group_windows
from sql.algebra.windows import catalog as windows
from sql.algebra.windows.lots import lot_windows
from sql.functions import registry
from sql.record import Record, replace

log = logging.getLogger("penstock.plugins")

KINDS: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "functions": registry.names,
    "aggregates": aggregates.names,
    "windows": lambda: (
        *(window.name for window in windows.all_windows()),
        *(window.name for window in group_windows()),
        *(window.name for window in lot_windows()),
    ),
    "sources": lambda: tuple(kind.name for kind in source_kinds()),
    "codecs": lambda: tuple(FORMATS),
    "sinks": lambda: tuple(kind.name for kind in sink_kinds()),
    "targets": lambda: tuple(TARGETS),
}
"""The kinds of additions by plug-ins, with the registered names of each kind. The group of entry points is
`penstock.<kind>`."""


class Plugin(Record):
    """One entry point. `adds` are the names that it registered; `error` is the reason why it was left out."""

    kind: str
    name: str
    module: str
    distribution: str
    version: str
    adds: tuple[str, ...] = ()
    error: str = ""


_loaded: list[Plugin] = []
_is_loaded: list[bool] = []


def load_plugins() -> tuple[Plugin, ...]:
    """Import the plug-ins of this Python environment, once; all of them, also those that failed."""
    if not _is_loaded:
        _is_loaded.append(True)
        for kind in KINDS:
            points = sorted(metadata.entry_points(group=f"penstock.{kind}"), key=lambda point: point.name)
            _loaded.extend(_load(kind, point) for point in points)
    return tuple(_loaded)


def _load(kind: str, point: metadata.EntryPoint) -> Plugin:
    owner = point.dist
    plugin = Plugin(
        kind, point.name, point.value, owner.name if owner else "", owner.version if owner else ""
    )
    before, known = KINDS[kind](), set(registry.names())
    try:
        point.load()
    except Exception as error:  # noqa: BLE001  # a plug-in that fails stops nothing else
        log.error("plugin.failed", extra={"plugin": point.name, "kind": kind, "error": str(error)})
        return replace(plugin, error=f"{type(error).__name__}: {error}")
    finally:
        _guard(set(registry.names()) - known, plugin.distribution or point.name)
    return replace(plugin, adds=tuple(sorted(set(KINDS[kind]()) - set(before))))


def _guard(names: set[str], origin: str) -> None:
    """Put functions that have just become known behind the guard."""
    found: dict[str, Any] = {item.name: item for item in map(registry.lookup, names) if item is not None}
    for item in found.values():
        registry.forget(item.name)
        guarded = guard_function(item.name, item.implementation)
        registry.define(replace(item, implementation=guarded, origin=origin, inline=None))
