"""The check of the servers of actions by `penstock doctor`: connects as the sinks do, and sends nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.at_once import at_once
from edge.clock import SystemClock
from edge.config import Config
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.mqtt_lines import VERSIONS, options_of

if TYPE_CHECKING:
    from rules.compiled import Compiled
    from rules.model import Action
    from sinks import Environment, SinkSettings
    from sinks.builtin.mqtt import MqttSettings
    from sinks.tls import TlsSettings

Finding = tuple[str, str]
"""ok or error, and a sentence."""

CONNECT_MS = 5_000
"""The time limit for a connection to an HTTP server."""

HTTP = ("http:", "https:")
"""The addresses of servers that a sink connects to with its first request."""


def look(config: Config, rules: Compiled) -> list[Finding]:
    """A finding about each server that actions name, by its first rule. All are asked at once."""
    from sinks import Environment, MemoryBus

    letters = DeadLetters(Path("none"))
    letters.is_muted = True
    output, connections = config.data.dir / "output", config.sink_connections
    environment = Environment(
        SystemClock(), random.Random(), output, letters, MemoryBus(), connections=connections
    )
    servers: list[tuple[str, SinkSettings]] = []
    questions: list[Callable[[], Finding]] = []
    for rule in rules.rules.values():
        for _, _, action in rule.placed_actions:
            settings = _settings(action, environment)
            if settings is not None and (action.sink, settings) not in servers:
                servers.append((action.sink, settings))
                questions.append(partial(_visited, action.sink, settings, rule.id, environment))
    return at_once(questions)


def _visited(sink: str, settings: SinkSettings, rule: str, environment: Environment) -> Finding:
    fault = _fault(sink, settings, rule, environment)
    return "ok" if fault is None else "error", f"rule '{rule}': {sink} {fault or 'answers'}"


def _settings(action: Action, environment: Environment) -> SinkSettings | None:
    """The settings of an action, with those of its connection; None where it names no server of its own, or
    names it by the row."""
    from sinks.connections import BadConnection, ConnectionSettings, completed
    from sinks.settings import SinkSettings

    settings = action.settings
    if not isinstance(settings, SinkSettings):
        return None
    if isinstance(settings, ConnectionSettings):
        try:
            settings = completed(settings, environment.connections)
        except BadConnection:  # `penstock check` reports it
            return None
    addresses = [address for _, address in settings.addresses()]
    return settings if addresses and not any("{{" in address for address in addresses) else None


def _fault(sink: str, settings: SinkSettings, rule: str, environment: Environment) -> str | None:
    """The reason why the servers of a sink cannot be used; None if they answer."""
    from sinks.base import SinkFailure
    from sinks.builtin.mqtt import MqttSettings
    from sinks.tls import TlsSettings

    try:
        if isinstance(settings, MqttSettings) and settings.protocol_version in VERSIONS:
            return _fault_of_broker(settings)
        _open(sink, settings, rule, environment)
    except SinkFailure as failure:
        return failure.reason
    if not isinstance(settings, TlsSettings):
        return None
    urls = [address for _, address in settings.addresses() if address.lower().startswith(HTTP)]
    return next((fault for url in urls if (fault := _fault_of_http(url, settings)) is not None), None)


def _open(sink: str, settings: SinkSettings, rule: str, environment: Environment) -> None:
    """Open a sink and close it. Raises SinkFailure."""
    from sinks.base import SinkContext, sink_kind

    made = sink_kind(sink).factory(settings, SinkContext(rule, sink, environment))
    try:
        made.open()
    finally:
        made.close()


def _fault_of_broker(settings: MqttSettings) -> str | None:
    """The reason why a broker cannot be used. The visit has no client id, so it disturbs no gateway."""
    from edge.intake.sources.mqtt.visit import Visit, VisitFailed

    try:
        with Visit(options_of(settings)):
            return None
    except VisitFailed as failure:
        return str(failure)


def _fault_of_http(url: str, settings: TlsSettings) -> str | None:
    """The reason why an HTTP server takes no connection. No request is sent: it could have an effect."""
    from sinks.base import failure_at
    from sinks.http_client import connection_to

    tls = settings.tls_context() if url.lower().startswith("https:") else None
    connection = connection_to(url, CONNECT_MS, tls)
    try:
        connection.connect()
    except OSError as failure:
        return failure_at(url, failure)
    finally:
        connection.close()
    return None
