"""Connections that mqtt actions publish on, one for all actions with the same broker and credentials.

The gateway's loop serves them, as it serves the source. They are not the source's own connection: that one is
not read while intake pauses, and confirmations of results must come through above all then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from edge.config.mqtt_options import MqttOptions, Version
from edge.intake.sources.mqtt_client import make_client
from rules.secrets import reveal
from sinks.connections import connected

if TYPE_CHECKING:
    from edge.base.poller import Poller
    from edge.clock import Clock
    from edge.intake.sources.mqtt import MqttSource
    from edge.intake.sources.publishing import Publishing
    from sinks import SinkContext
    from sinks.builtin.mqtt import MqttSettings

MQTT = "mqtt"
"""The name of the action."""

VERSIONS: dict[str, Version] = {"3.1.1": "3.1.1", "5": "5"}

_SAME = (
    "server", "username", "password", "clientid", "protocol_version", "keepalive", "timeout",
    "retry_interval", "retry_max_interval", "certification_path", "private_key_path", "root_ca_path",
    "certification_raw", "private_key_raw", "root_ca_raw", "insecure_skip_verify",
)  # fmt: skip
"""Settings in which actions that share a connection agree."""


GOODBYE_MS = 200
"""The time limit for the last packets of a connection."""


@dataclass(slots=True, eq=False)
class Line:
    """A connection, and how many actions use it. It is opened when the first of them
    has something to send."""

    source: MqttSource
    publishing: Publishing
    poller: Poller
    users: int = 0
    is_begun: bool = False

    def begin(self) -> None:
        """Connect, and stay connected."""
        if not self.is_begun:
            self.is_begun = True
            self.source.start(lambda batch: None)

    def end(self) -> None:
        """Say goodbye."""
        if self.is_begun:
            self.source.stop(GOODBYE_MS)
            self.poller.remove(self.source)


@dataclass(slots=True)
class Lines:
    """The connections in use. For the loop's thread only."""

    poller: Poller
    clock: Clock
    rng: random.Random
    lines: dict[tuple[Any, ...], Line] = field(default_factory=dict)

    def take(self, settings: MqttSettings, context: SinkContext) -> Line:
        """The connection for an action. Raises `Fatal` where the gateway has no such connection."""
        complete = connected(settings, context)
        key = tuple(_plain(value) for name, value in complete if name in _SAME)
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = self._open(complete)
        line.users += 1
        return line

    def give_back(self, line: Line) -> None:
        """An action ends; the last one closes the connection."""
        line.users -= 1
        if not line.users:
            self.lines = {key: known for key, known in self.lines.items() if known is not line}
            line.end()

    def _open(self, settings: MqttSettings) -> Line:
        from edge.intake.sources.mqtt import MqttSource
        from edge.intake.sources.publishing import Publishing

        publishing = Publishing(settings.timeout)
        source = MqttSource(
            options_of(settings), self.clock, self.rng, poller=self.poller, publishing=publishing
        )
        return Line(source, publishing, self.poller)


def options_of(settings: MqttSettings) -> MqttOptions:
    """The options of the connection that an action's settings describe."""
    assert settings.server is not None
    user = reveal(settings.username)
    return MqttOptions(
        server=reveal(settings.server),
        client_id=reveal(settings.clientid),
        version=VERSIONS[settings.protocol_version],
        username=user or None,
        password=reveal(settings.password) if user else None,
        tls=partial(_tls, settings),
        keepalive_s=settings.keepalive,
        connect_timeout_s=settings.timeout / 1_000,
        session_expiry_s=0,
        status_prefix=None,
        reconnect_ms_min=settings.retry_interval,
        reconnect_ms_max=settings.retry_max_interval,
    )


def _tls(settings: MqttSettings) -> Any:
    context = settings.tls_context()
    if settings.insecure_skip_verify:
        context.check_hostname = False
    return context


def _plain(value: object) -> Any:
    return value if value is None or isinstance(value, (bool, int)) else reveal(value)


def shares(settings: MqttSettings) -> bool:
    """True if the loop can publish for an action; otherwise it has a thread and a connection of its own."""
    return (
        settings.qos < 2
        and settings.protocol_version in VERSIONS
        and not settings.batches
        and settings.disable_buffer_full_discard
        and not settings.retry_count
        and not settings.enable_cache
        and _paho_fits()
    )


@cache
def _paho_fits() -> bool:
    from edge.intake.sources.mqtt_readers import fits

    return fits(make_client(MqttOptions("tcp://localhost", "probe"), "3.1.1"))
