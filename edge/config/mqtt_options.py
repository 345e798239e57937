"""Settings of an MQTT connection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from rules.secrets import Secret
from sql.record import Record

if TYPE_CHECKING:
    import ssl

Version = Literal["5", "3.1.1"]

SETTINGS = {
    "keepalive_s": "keepaliveS",
    "session_expiry_s": "sessionExpiryS",
    "receive_max": "receiveMax",
}
"""Bounded options that the configuration has as well, by their names there."""

PORTS = {"mqtt": 1883, "tcp": 1883, "mqtts": 8883, "ssl": 8883, "tls": 8883}
"""URL schemes of a broker's address and their default ports; the last three mean TLS."""


class BadOptions(ValueError):
    """The settings of a connection contradict themselves or MQTT. `setting`: the name of the wrong one in the
    configuration; empty where it is not one alone."""

    def __init__(self, message: str, setting: str = "") -> None:
        super().__init__(message)
        self.setting = setting


class MqttOptions(Record):
    """The address of a broker, the client's identity, and the limits of the connection.

    server              mqtt://host[:port] or mqtts://host[:port]; tcp, ssl and tls are understood as well
    client_id           must stay the same over restarts: the broker keeps the session under it;
                        empty, where there is no session: the broker chooses
    version             "auto" tries MQTT 5 first and falls back to 3.1.1 where the broker does not support it
    session_expiry_s    time for which the broker keeps subscriptions and unacknowledged messages while we are
                        away; 0: no session, and nothing survives a disconnect (MQTT 3.1.1 has only "never"
                        and "at once")
    receive_max         the number of unacknowledged messages that the broker may send (MQTT 5)
    packet_bytes_max    largest packet taken; a larger one is dropped as it comes in,
                        acknowledged and reported
    held_bytes_max      the memory of messages that are held in a pause of the consumer
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
    held_bytes_max: int = 8_000_000
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
                f"client id {self.client_id!r} must not be empty, nor contain '/', '+', '#' or NUL",
                "clientId",
            )
        if (self.cert_file is None) != (self.key_file is None):
            raise BadOptions(
                "a client certificate needs both the certificate file and the key file",
                "certFile" if self.key_file is None else "keyFile",
            )
        if self.password is not None and self.username is None:
            raise BadOptions("a password needs a user name", "password")
        if self.status_prefix is not None and any(char in self.status_prefix for char in "+#\0"):
            raise BadOptions(
                f"status prefix {self.status_prefix!r} must not contain '+', '#' or NUL", "statusPrefix"
            )
        for name, value, low, high in (
            ("keepalive_s", self.keepalive_s, 1, 65_535),
            ("session_expiry_s", self.session_expiry_s, 0, 0xFFFF_FFFF),
            ("receive_max", self.receive_max, 1, 65_535),
            ("packet_bytes_max", self.packet_bytes_max, 128, 268_435_455),
            ("reconnect_ms_min", self.reconnect_ms_min, 1, self.reconnect_ms_max),
        ):
            if not low <= value <= high:
                raise BadOptions(
                    f"{SETTINGS.get(name, name)} is {value}; it must be between {low} and {high}",
                    SETTINGS.get(name, ""),
                )

    @property
    def status_topic(self) -> str | None:
        """The topic of the birth and death messages."""
        return None if self.status_prefix is None else f"{self.status_prefix}/{self.client_id}/status"


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
        raise BadOptions(f"server '{server}' has no valid port; expected 1 to 65535") from None
    if not url.hostname:
        raise BadOptions(f"server '{server}' names no host; expected mqtt://host:port")
    return url.hostname, port or PORTS[url.scheme], PORTS[url.scheme] == 8883
