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
from importlib import metadata
from typing import Any

from rules.functions.guard import guard_function
from sql.functions import registry
from sql.record import Record, replace

log = logging.getLogger("penstock.plugins")

KINDS = ("functions", "aggregates", "windows", "sources", "codecs", "sinks", "targets")
"""The kinds of additions by plug-ins, in the order in which they are loaded. The group of entry points is
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
        installed = metadata.entry_points()  # once: it reads a file of each installed package
        for kind in KINDS:
            points = sorted(installed.select(group=f"penstock.{kind}"), key=lambda point: point.name)
            _loaded.extend(_load(kind, point) for point in points)
    return tuple(_loaded)


def _load(kind: str, point: metadata.EntryPoint) -> Plugin:
    from edge.plugins.registries import REGISTERED

    owner, names = point.dist, REGISTERED[kind]
    plugin = Plugin(
        kind, point.name, point.value, owner.name if owner else "", owner.version if owner else ""
    )
    before, known = names(), set(registry.names())
    try:
        point.load()
    except Exception as error:  # noqa: BLE001  # a plug-in that fails stops nothing else
        log.error("plugin.failed", extra={"plugin": point.name, "kind": kind, "error": str(error)})
        return replace(plugin, error=f"{type(error).__name__}: {error}")
    finally:
        _guard(set(registry.names()) - known, plugin.distribution or point.name)
    return replace(plugin, adds=tuple(sorted(set(names()) - set(before))))


def _guard(names: set[str], origin: str) -> None:
    """Put functions that have just become known behind the guard."""
    found: dict[str, Any] = {item.name: item for item in map(registry.lookup, names) if item is not None}
    for item in found.values():
        registry.forget(item.name)
        guarded = guard_function(item.name, item.implementation)
        registry.define(replace(item, implementation=guarded, origin=origin, inline=None))
