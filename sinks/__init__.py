"""Sinks: the delivery of results to their destinations.

The interface for the daemon:

    environment = Environment(clock, random, data_dir, dead_letters, memory, on_done)
    action = build_action("mqtt", {"server": ..., "topic": ...}, rule_id="hot", environment=environment)
    action.submit(emission, token)      # False: the queue is full, keep the emission
                                        and stop reading the source
    action.stats()                      # state and counters
    action.close(deadline_ms)           # flush until then; the number of emissions left undelivered

`on_done(token, "delivered" | "rejected" | "dropped")` is called from the sink's worker thread when the effect
of the emission is at its destination (or in the dead letters), so the source can be acknowledged.

Start reading at `sinks.base` (the interface of a sink), then `sinks.delivery` (the layer all sinks share),
then any file of `sinks.builtin`. Sinks never read the system clock themselves, and import their client
libraries when they are opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sinks.base import (
    Clock,
    DeadLetterStore,
    Environment,
    Fatal,
    Message,
    Outcome,
    Reject,
    Retry,
    Sink,
    SinkContext,
    SinkKind,
    provide_sinks,
    register_sink,
    sink_kind,
    sink_kinds,
)
from sinks.cache import CachedDelivery, cache_path, mark_of
from sinks.delivery import Delivery, Stats
from sinks.memory_bus import MemoryBus
from sinks.settings import SinkSettings


def build_action(
    name: str,
    settings: Mapping[str, Any] | SinkSettings,
    *,
    rule_id: str,
    environment: Environment,
    key: str = "",
) -> Delivery | CachedDelivery:
    """The delivery to sink `name` for one action of a rule. Nothing is opened before the first `submit`,
    unless a file of `enableCache` exists: its results are sent.

    `settings` are as written in YAML, or the model that a rule file's checks made of them. `key` identifies
    the action among all of the gateway, also after a restart. Raises ValueError for an unknown name and
    pydantic's ValidationError (a ValueError too) for wrong settings.
    """
    kind = sink_kind(name)
    checked = settings if isinstance(settings, SinkSettings) else kind.settings.model_validate(dict(settings))
    assert isinstance(checked, kind.settings), f"settings of another sink than {name!r}"
    context = SinkContext(rule_id, name, environment)
    if checked.enable_cache:
        path = cache_path(environment.cache_dir, f"{key or rule_id}/{name}")
        return CachedDelivery(kind.factory, checked, context, path)
    return Delivery(kind.factory(checked, context), checked, context)


def cache_mark(environment: Environment, key: str, name: str) -> int:
    """The number of the last row in the cache file of an action; 0 without one."""
    return mark_of(cache_path(environment.cache_dir, f"{key}/{name}"))


__all__ = [
    "CachedDelivery",
    "Clock",
    "DeadLetterStore",
    "Delivery",
    "Environment",
    "Fatal",
    "MemoryBus",
    "Message",
    "Outcome",
    "Reject",
    "Retry",
    "Sink",
    "SinkContext",
    "SinkKind",
    "SinkSettings",
    "Stats",
    "build_action",
    "cache_mark",
    "provide_sinks",
    "register_sink",
    "sink_kind",
    "sink_kinds",
]
