"""The effect of the rules on the brokers: the connections there are, their topics, and the status message."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from edge.base.version import build, version
from edge.deploy.deployed_rule import DeployedRule
from edge.gateway import Gateway
from edge.intake.backlog import Arrival
from edge.intake.broker_state import MAIN, BrokerStates, source_name
from edge.intake.router import cross, router_of, to_subscribe, wildcards
from edge.intake.sources.mqtt.source import MqttSource

log = logging.getLogger("penstock.rules")

CROSSING = (
    "in MQTT 5 the broker sends a message that matches both twice, and rules count it twice; "
    "let one filter contain the other, or set mqtt.protocolVersion to 3.1.1"
)

LEFT = (
    "the configuration has no such connection any more; "
    "the broker keeps its messages until the session expires"
)

RULES_TOLD_MAX = 1_000
"""The most rules on the status topic; beyond, only their number is published."""


class Broker:
    """One connection, seen from the rules."""

    def __init__(self, source: MqttSource, qos: int) -> None:
        self.source, self._qos = source, qos
        self._crossing: set[tuple[str, str]] = set()

    def follow(self, filters: list[str], running: Mapping[str, DeployedRule]) -> None:
        """Subscribe to these topics, publish the running rules, warn of topics that bring messages twice."""
        wild = wildcards(filters)
        router = router_of(wild)
        for one in wild:
            for other in sorted(router.crossing(one)):
                if one < other and cross(one, other) and (one, other) not in self._crossing:
                    self._crossing.add((one, other))
                    log.warning("streams.cross", extra={"filter": one, "other": other, "note": CROSSING})
        self.source.presence.tell(about(running))
        self.source.set_subscriptions(dict.fromkeys(filters, self._qos))


class Brokers:
    """The connections in use, by name: that to the gateway's own broker, and those that streams name. Used by
    the gateway loop only.

    A connection whose streams are all gone stays, without subscriptions, until the gateway stops.
    """

    def __init__(self, make: Callable[[str], Broker | None] = lambda connection: None) -> None:
        """`make` makes a connection of a name, if it is configured; it is not opened yet."""
        self._make = make
        self._made: dict[str, Broker] = {}
        self._left: set[str] = set()
        self.filters: dict[str, list[str]] = {}
        """The topics that streams read, by connection."""
        self._need([MAIN])

    @property
    def sources(self) -> dict[str, MqttSource]:
        """The source of each connection."""
        return {name: broker.source for name, broker in self._made.items()}

    def follow(
        self, wanted: Mapping[str, list[str]], running: Mapping[str, DeployedRule], states: BrokerStates
    ) -> None:
        """Subscribe to these topics of each connection, and publish the running rules."""
        before, self.filters = self.filters, {name: to_subscribe(topics) for name, topics in wanted.items()}
        for name in self.filters.keys() & before.keys():
            states[name].redeliveries.forget_retained(set(self.filters[name]) - set(before[name]))
        self._need(self.filters)
        for name, broker in self._made.items():
            broker.follow(self.filters.get(name, []), running)

    def connect(self, gateway: Gateway) -> None:
        """Open the connections that are not open; never while the journal is replayed.

        A session that an earlier run left is taken up, if only to end its subscriptions:
        the broker would go on to keep messages for them.
        """
        sessions = {name: state.session for name, state in gateway.brokers.all.items()}
        self._need(name for name, session in sessions.items() if session is not None and session.granted)
        for name, session in sessions.items():
            if name not in {*self._made, *self._left} and session is not None and session.granted:
                self._left.add(name)
                log.warning("mqtt.session_left", extra={"session": session.name, "note": LEFT})
        for name, broker in self._made.items():
            if source_name(name) not in gateway.sources:
                _open(gateway, name, broker.source)

    def _need(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._made and (broker := self._make(name)) is not None:
                self._made[name] = broker


def _open(gateway: Gateway, name: str, source: MqttSource) -> None:
    """Connect, and go on with the session that the broker keeps."""
    added, session = gateway.brokers.add(name), gateway.brokers[name].session
    if session is not None:
        source.attempts.go_on(session)
    source.attempts.on_session = lambda session: gateway.intake.put(
        Arrival(added, [], [], replace(session, connection=name))
    )
    gateway.backlog.sheds.add(added)
    gateway.sources.add(added, source)


def about(running: Mapping[str, DeployedRule]) -> dict[str, Any]:
    """Which program this is, and which version of each rule it runs.

    >>> about({})["rules"]
    {}
    """
    told = {rule_id: _rule(item) for rule_id, item in islice(running.items(), RULES_TOLD_MAX)}
    left_out = {"more_rules": len(running) - len(told)} if len(running) > len(told) else {}
    return {"version": version(), "build": build(), "rules": told, **left_out}


def _rule(item: DeployedRule) -> dict[str, Any]:
    differs = {"differs": list(item.differs)} if item.differs else {}
    return {"hash": item.hash, "began": item.state, **differs}
