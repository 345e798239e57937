"""The effect of the rules on the gateway's broker: the topics to subscribe to, and the status message."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import combinations, islice
from typing import Any

from edge.base.version import build, version
from edge.deploy.running import Running
from edge.intake.router import cross, wildcards
from edge.intake.sources.mqtt import MqttSource

log = logging.getLogger("penstock.rules")

CROSSING = (
    "in MQTT 5 the broker sends a message that matches both twice, and rules count it twice; "
    "let one filter contain the other, or set mqtt.protocolVersion to 3.1.1"
)

RULES_TOLD_MAX = 1_000
"""The most rules on the status topic; beyond, only their number is published."""


class Broker:
    """The connection of the gateway, seen from its rules. Without a `source` it does nothing."""

    def __init__(self, source: MqttSource | None, qos: int) -> None:
        self._source, self._qos = source, qos
        self._crossing: set[tuple[str, str]] = set()

    def follow(self, filters: list[str], running: Mapping[str, Running]) -> None:
        """Subscribe to these topics, publish the running rules, warn of topics that bring messages twice."""
        if self._source is None:
            return
        for one, other in combinations(wildcards(filters), 2):
            if cross(one, other) and (one, other) not in self._crossing:
                self._crossing.add((one, other))
                log.warning("streams.cross", extra={"filter": one, "other": other, "note": CROSSING})
        self._source.presence.tell(about(running))
        self._source.set_subscriptions(dict.fromkeys(filters, self._qos))


def about(running: Mapping[str, Running]) -> dict[str, Any]:
    """Which program this is, and which version of each rule it runs.

    >>> about({})["rules"]
    {}
    """
    told = {rule_id: _rule(item) for rule_id, item in islice(running.items(), RULES_TOLD_MAX)}
    left_out = {"more_rules": len(running) - len(told)} if len(running) > len(told) else {}
    return {"version": version(), "build": build(), "rules": told, **left_out}


def _rule(item: Running) -> dict[str, Any]:
    differs = {"differs": list(item.differs)} if item.differs else {}
    return {"hash": item.hash, "began": item.state, **differs}
