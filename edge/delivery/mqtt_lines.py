"""Connections that mqtt actions publish on, one for all actions with the same broker and credentials: that of
the source, where the gateway reads from this broker with the same settings, or else one of their own.

The gateway's loop serves all of them. A source reads on for confirmations while intake pauses, see
`edge.intake.sources.mqtt.connection`. Some brokers end the connection of a client that publishes what they do
not allow, and some take few unconfirmed messages at a time (mosquitto 20 with MQTT 5, as it comes). Where
connections of a source do not last while results go out, or do not take enough of them, the results move to a
connection of their own. Results that come before the source is there move to its connection later.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from edge.config.mqtt_options import MqttOptions, Version, address
from edge.intake.sources.mqtt.client import make_client
from rules.secrets import reveal
from sinks.connections import connected

if TYPE_CHECKING:
    from edge.base.poller import Poller
    from edge.clock import Clock
    from edge.intake.sources.mqtt.publishing import Publishing
    from edge.intake.sources.mqtt.source import MqttSource
    from sinks import SinkContext
    from sinks.builtin.mqtt import MqttSettings

log = logging.getLogger("penstock.mqtt")

MQTT = "mqtt"
"""The name of the action."""

VERSIONS: dict[str, Version] = {"3.1.1": "3.1.1", "5": "5"}

_SAME = (
    "server", "username", "password", "clientid", "protocol_version", "keepalive", "timeout",
    "retry_interval", "retry_max_interval", "certification_path", "private_key_path", "root_ca_path",
    "certification_raw", "private_key_raw", "root_ca_raw", "insecure_skip_verify",
)  # fmt: skip
"""Settings in which actions that share a connection agree."""

_TIMES = {"timeout", "retry_interval", "retry_max_interval"}
"""Settings that an action on the connection of a source does not have."""


GOODBYE_MS = 200
"""The time limit for the last packets of a connection."""


@dataclass(slots=True, eq=False)
class MqttLine:
    """A connection, and how many actions use it. It begins when the first of them has something to send."""

    poller: Poller
    shared: Callable[[], MqttSource | None]
    """The source whose connection it is, if that is made by now."""
    own: Callable[[Publishing | None], MqttSource]
    """Makes a source that only publishes, including what another one was given so far."""
    users: int = 0
    _source: MqttSource | None = None
    _is_own: bool = False
    _is_apart: bool = False
    """True if the connection of the source does not suit."""

    def begin(self) -> Publishing:
        """Connect, and stay connected; the messages that go out."""
        source = self._source
        if source is None:
            return self._share() or self._open(None)
        if self._is_own and not self._is_apart and not source.results.publishing.is_busy:
            return self._share() or source.results.publishing
        return source.results.publishing

    def _share(self) -> Publishing | None:
        """Publish on the connection of the source, if that is there and suits. The streams may have begun
        after the first result."""
        from edge.intake.sources.mqtt.source import WINDOW_LEAST

        source = self.shared()
        if source is None:
            return None
        if source.results.publishing.window < WINDOW_LEAST:
            self._is_apart = True
            return None
        self.end()
        self._source, self._is_own = source, False
        source.results.on_unsuited = self._part
        return source.results.publishing

    def _part(self, publishing: Publishing, why: str) -> None:
        """Publish on a connection of its own from now on."""
        assert self._source is not None, "it has begun"
        note = f"{why}; results have one of their own now"
        log.warning("mqtt.results_apart", extra={"server": self._source.options.server, "note": note})
        self._leave()
        self._is_apart = True
        self._open(publishing)

    def _open(self, publishing: Publishing | None) -> Publishing:
        self._source, self._is_own = self.own(publishing), True
        self._source.start(lambda batch: None)
        return self._source.results.publishing

    def _leave(self) -> None:
        if self._source is not None:
            self._source.results.on_unsuited = None

    @property
    def problem(self) -> str | None:
        """Why there is no connection; None while there is one."""
        return None if self._source is None else self._source.problem

    def end(self) -> None:
        """Disconnect a source of its own; leave another one connected."""
        if self._source is not None and self._is_own:
            self._source.stop(GOODBYE_MS)
            self.poller.remove(self._source)
        else:
            self._leave()


@dataclass(slots=True)
class Lines:
    """The connections in use. For the loop's thread only.

    brokers   the options of the brokers that streams may read from, by the names of their connections
    sources   those that they do read from
    """

    poller: Poller
    clock: Clock
    rng: random.Random
    brokers: Mapping[str, MqttOptions] = field(default_factory=dict)
    sources: Callable[[], Mapping[str, MqttSource]] = dict
    lines: dict[tuple[Any, ...], MqttLine] = field(default_factory=dict)

    def take(self, settings: MqttSettings, context: SinkContext) -> MqttLine:
        """The connection for an action. Raises `Fatal` where the gateway has no such connection."""
        complete = connected(settings, context)
        name = next((name for name, options in self.brokers.items() if agree(complete, options)), None)
        key = (
            tuple(_plain(value) for setting, value in complete if setting in _SAME)
            if name is None
            else (name,)
        )
        line = self.lines.get(key)
        if line is None:
            shared = partial(self._source, name)
            line = self.lines[key] = MqttLine(self.poller, shared, partial(self._own, complete))
        line.users += 1
        return line

    def give_back(self, line: MqttLine) -> None:
        """An action ends; the last one closes the connection."""
        line.users -= 1
        if not line.users:
            self.lines = {key: known for key, known in self.lines.items() if known is not line}
            line.end()

    def _source(self, name: str | None) -> MqttSource | None:
        return None if name is None else self.sources().get(name)

    def _own(self, settings: MqttSettings, publishing: Publishing | None) -> MqttSource:
        from edge.intake.sources.mqtt.publishing import Publishing
        from edge.intake.sources.mqtt.source import MqttSource

        publishing = publishing or Publishing(settings.timeout)
        options = options_of(settings)
        return MqttSource(options, self.clock, self.rng, poller=self.poller, publishing=publishing)


def agree(settings: MqttSettings, options: MqttOptions) -> bool:
    """True if an action may publish on a connection with these options: it names no other server, user,
    certificates or version, and sets neither a client id nor times of its own."""
    written = settings.model_fields_set
    server, user = address(reveal(settings.server)), reveal(settings.username)
    return (
        server == address(options.server)
        and (user or None) == _text(options.username)
        and (not user or reveal(settings.password) == (_text(options.password) or ""))
        and not (server[2] and _tls_of(settings) != _tls_of_source(options))
        and not reveal(settings.clientid)
        and not written & _TIMES
        and (settings.keepalive == options.keepalive_s or "keepalive" not in written)
        and (settings.protocol_version == options.version or "protocol_version" not in written)
    )


def _tls_of(settings: MqttSettings) -> tuple[Any, ...]:
    files = (settings.root_ca_path, settings.certification_path, settings.private_key_path)
    raw = (settings.root_ca_raw, settings.certification_raw, settings.private_key_raw)
    others = (settings.insecure_skip_verify, settings.tls_min_version, ())
    return (*(_text(path) for path in files), *(_text(text) for text in raw), *others)


def _tls_of_source(options: MqttOptions) -> tuple[Any, ...]:
    files = (options.ca_file, options.cert_file, options.key_file)
    others = (options.insecure_skip_verify, "tls1.2", options.alpn)
    return (*(_text(path) for path in files), None, None, None, *others)


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


def _text(value: object) -> str | None:
    return None if value is None else reveal(value)


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
    from edge.intake.sources.mqtt.readers import fits

    return fits(make_client(MqttOptions("tcp://localhost", "probe"), "3.1.1"))
