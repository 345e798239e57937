"""Settings of an MQTT connection, and the paho client made from them: one client for
each connection attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from edge.intake.sources.mqtt_presence import OFFLINE
from sql.record import Record

if TYPE_CHECKING:
    import ssl

    from paho.mqtt.client import Client
    from paho.mqtt.properties import Properties

Version = Literal["5", "3.1.1"]

PORTS = {"mqtt": 1883, "tcp": 1883, "mqtts": 8883, "ssl": 8883, "tls": 8883}
"""URL schemes of a broker's address and their default ports; the last three mean TLS."""


class Secret(Protocol):
    """A value that is never printed; `rules` makes them from `${env:…}` and `${file:…}`."""

    def reveal(self) -> str: ...


class BadOptions(ValueError):
    """The settings of a connection contradict themselves or MQTT."""


class MqttOptions(Record):
    """The address of a broker, the client's identity, and the limits of the connection.

    server              mqtt://host[:port] or mqtts://host[:port]; tcp, ssl and tls are understood as well
    client_id           must stay the same over restarts: the broker keeps the session under it; empty, where there is
                        no session: the broker chooses
    version             "auto" tries MQTT 5 first and falls back to 3.1.1 where the broker does not support it
    session_expiry_s    time for which the broker keeps subscriptions and unacknowledged messages while we are
                        away; 0: no session, and nothing survives a disconnect (MQTT 3.1.1 has only "never"
                        and "at once")
    receive_max         the number of unacknowledged messages that the broker may send (MQTT 5)
    packet_bytes_max    largest packet taken; a larger one is dropped as it comes in, acknowledged and reported
    keepalive_s         a dead connection is noticed after at most twice this time
    status_prefix       prefix of the status topic `<prefix>/<client_id>/status`, retained; None: no status
    tls                 makes the context of an encrypted connection; None: from the files named here
    no_loss             refuse QoS 2, whose second half would live in memory only
    """

    server: str
    client_id: str
    version: Version | Literal["auto"] = "auto"
    username: str | Secret | None = None
    password: str | Secret | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    alpn: tuple[str, ...] = ()
    insecure_skip_verify: bool = False
    keepalive_s: int = 15
    connect_timeout_s: float = 10.0
    session_expiry_s: int = 7 * 86_400
    receive_max: int = 1_000
    packet_bytes_max: int = 1_048_576
    status_prefix: str | None = "penstock"
    reconnect_ms_min: int = 500
    reconnect_ms_max: int = 30_000
    no_loss: bool = True
    tls: Callable[[], ssl.SSLContext] | None = None

    def __post_init__(self) -> None:
        address(self.server)
        is_named = bool(self.client_id) or not self.session_expiry_s
        if not is_named or (
            self.status_prefix is not None and any(char in self.client_id for char in "/+#\0")
        ):
            raise BadOptions(
                f"client id {self.client_id!r} must not be empty, nor contain '/', '+', '#' or NUL"
            )
        if (self.cert_file is None) != (self.key_file is None):
            raise BadOptions("a client certificate needs both the certificate file and the key file")
        if self.password is not None and self.username is None:
            raise BadOptions("a password needs a user name")
        if self.status_prefix is not None and any(char in self.status_prefix for char in "+#\0"):
            raise BadOptions(f"status prefix {self.status_prefix!r} must not contain '+', '#' or NUL")
        bounds = {
            "keepalive_s": (1, 65_535),
            "session_expiry_s": (0, 0xFFFF_FFFF),
            "receive_max": (1, 65_535),
        }
        bounds |= {"packet_bytes_max": (128, 268_435_455), "reconnect_ms_min": (1, self.reconnect_ms_max)}
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise BadOptions(f"{name} is {getattr(self, name)}; it must be between {low} and {high}")

    @property
    def status_topic(self) -> str | None:
        """The topic of the birth and death messages."""
        return None if self.status_prefix is None else f"{self.status_prefix}/{self.client_id}/status"


def revealed(value: str | Secret) -> str:
    """The text itself, for the one place that sends it."""
    return value if isinstance(value, str) else value.reveal()


def address(server: str) -> tuple[str, int, bool]:
    """Host, port, and whether TLS is spoken.

    >>> address("mqtt://broker"), address("ssl://[::1]:9000"), address("broker.local:1884")
    (('broker', 1883, False), ('::1', 9000, True), ('broker.local', 1884, False))
    """
    url = urlsplit(server if "://" in server else f"mqtt://{server}")
    if url.scheme not in PORTS:
        raise BadOptions(f"server '{server}' has scheme '{url.scheme}'; supported are {', '.join(PORTS)}")
    if url.username is not None or url.password is not None:
        raise BadOptions(
            "credentials in the server's URL would be printed in logs; use username and password"
        )
    try:
        port = url.port
    except ValueError:
        raise BadOptions(f"server '{server}' has no valid port") from None
    if not url.hostname:
        raise BadOptions(f"server '{server}' names no host; expected mqtt://host:port")
    return url.hostname, port or PORTS[url.scheme], PORTS[url.scheme] == 8883


def make_client(options: MqttOptions, version: Version) -> Client:
    """A paho client that neither acknowledges nor reconnects by itself. Raises `OSError` for bad files."""
    from paho.mqtt.client import Client, MQTTv5, MQTTv311
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=options.client_id,
        clean_session=None if version == "5" else options.session_expiry_s == 0,
        protocol=MQTTv5 if version == "5" else MQTTv311,
        reconnect_on_failure=False,
        manual_ack=True,
    )
    client.connect_timeout = options.connect_timeout_s
    if options.username is not None:
        client.username_pw_set(
            revealed(options.username), None if options.password is None else revealed(options.password)
        )
    if address(options.server)[2]:
        client.tls_set_context(tls_context(options) if options.tls is None else options.tls())
        if options.tls is None:
            client.tls_insecure_set(options.insecure_skip_verify)
    if options.status_topic is not None:
        client.will_set(options.status_topic, OFFLINE, qos=1, retain=True)
    return client


def tls_context(options: MqttOptions) -> ssl.SSLContext:
    """TLS 1.2 or newer; checks the broker's certificate against `ca_file`, or the system's authorities."""
    import ssl

    for path in (options.ca_file, options.cert_file, options.key_file):
        if path is not None and not path.is_file():
            raise FileNotFoundError(f"cannot read TLS file '{path}'")
    context = ssl.create_default_context(cafile=str(options.ca_file) if options.ca_file else None)
    if options.cert_file is not None:
        context.load_cert_chain(options.cert_file, options.key_file)
    if options.alpn:
        context.set_alpn_protocols(list(options.alpn))
    if options.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def connect(client: Client, options: MqttOptions, version: Version) -> None:
    """Open the connection and send CONNECT. Blocks up to `connect_timeout_s`; raises `OSError`."""
    host, port, _ = address(options.server)
    if version == "5":
        client.connect(
            host,
            port,
            options.keepalive_s,
            clean_start=options.session_expiry_s == 0,
            properties=connect_properties(options),
        )
    else:
        client.connect(host, port, options.keepalive_s)


def connect_properties(options: MqttOptions) -> Properties:
    """The properties of CONNECT for MQTT 5. They offer no topic aliases: every message then names its topic;
    and no maximum packet size: the broker would drop longer messages in silence; here they are counted and
    reported.
    """
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = options.session_expiry_s
    properties.ReceiveMaximum = options.receive_max
    return properties


def subscribe(client: Client, filters: Sequence[tuple[str, int]], version: Version) -> int:
    """Subscribe to (filter, QoS) pairs in one packet; returns its packet id.

    MQTT 5: retained messages come only with a new subscription, not at every reconnect.
    """
    from paho.mqtt.subscribeoptions import SubscribeOptions

    if version == "5":
        handling = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        _, mid = client.subscribe(
            [(name, SubscribeOptions(qos, retainHandling=handling)) for name, qos in filters]
        )
    else:
        _, mid = client.subscribe(list(filters))
    assert mid is not None, "filters were checked before they came here"
    return mid
