"""The `mqtt` sink: results as MQTT messages, confirmed by the broker before they count as delivered."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator

from rules.durations import DurationMs, Seconds
from rules.secrets import reveal
from sinks.base import (
    Clock,
    Fatal,
    Message,
    Reject,
    Retry,
    SinkContext,
    SinkFailure,
    failure_at,
    refusal_of,
    register_sink,
    wait_until,
)
from sinks.connections import SYNONYMS, ConnectionSettings, connected
from sinks.dynamic import check_topic
from sinks.kuiper_keys import REPLACED
from sinks.settings import SinkSettings, Text, fault_of
from sinks.tcp import acknowledge_at_once, send_at_once
from sinks.tls import TLS_WITHOUT_EFFECT, TlsSettings

if TYPE_CHECKING:
    from paho.mqtt.client import Client
    from paho.mqtt.reasoncodes import ReasonCode

_PLAIN, _SECURE = ("tcp", "mqtt"), ("ssl", "tls", "mqtts")

GATEWAY = "mqtt"
"""The connection that an action without `server` uses: the broker of the gateway's streams."""

PUBLISH_MAX = 1000
"""The number of messages published before their confirmations are awaited; message ids are 16 bits wide."""

_TRY_LATER = frozenset({"Server unavailable", "Server busy", "Quota exceeded", "Receive maximum exceeded"})
"""Refusals of a broker that are temporary; all others are caused by the settings of the connection."""


_NO_SESSION = "what is not yet confirmed waits in the gateway, not in a session"


class MqttSettings(SinkSettings, TlsSettings, ConnectionSettings):
    """Publish each message to an MQTT topic.

    Without `server` and `connectionSelector` the broker is that of the gateway's streams. Results go out on
    the connection of the streams, unless the action sets another user, certificate or version, a `clientid`,
    another `keepalive`, a `timeout` or the intervals of its retries. With qos 1 or 2 a message is delivered
    when the broker has confirmed it; with qos 0, when it has been written to the connection.
    """

    address: ClassVar[str | None] = "server"
    remedy: ClassVar[str] = "set mqtt.server of the gateway, or write 'server' in the action"
    target: ClassVar[str | None] = "topic"
    synonyms: ClassVar[Mapping[str, str]] = SYNONYMS
    without_effect: ClassVar[Mapping[str, str]] = {
        **TLS_WITHOUT_EFFECT,
        "enableClientSession": _NO_SESSION,
        "clientStatePath": _NO_SESSION,
        "sessionExpiryIntervalSeconds": _NO_SESSION,
    }
    replaced: ClassVar[Mapping[str, str]] = {
        **REPLACED,
        "properties": "put the values into the message, or into the topic",
    }

    server: Text | None = Field(
        None, description="the broker, such as 'tcp://127.0.0.1:1883', 'ssl://broker:8883' or 'broker:1883'"
    )
    topic: Text = Field(description="the topic, such as 'plant/{{.site}}/alarms'")
    topic_prefix: str = Field(
        "", description="text before the topic; a topic may begin with a field behind one"
    )
    qos: int = Field(1, ge=0, le=2, description="0 at most once, 1 at least once, 2 exactly once")
    retained: bool = Field(False, description="let the broker keep the last message of the topic")
    clientid: Text = Field("", description="client identifier; empty lets the broker choose")
    username: Text = Field("", description="user name")
    password: Text = Field("", description="password")
    protocol_version: Literal["3.1", "3.1.1", "5"] = Field("3.1.1", description="version of the protocol")
    keepalive: Seconds = Field(
        20, ge=5, le=65_535, description="the time between signs of life on an idle connection, 5s to 18h"
    )
    timeout: DurationMs = Field(5000, ge=1, description="time for connecting and for confirming a batch")

    @field_validator("protocol_version", mode="before")
    @classmethod
    def _version_as_text(cls, version: object) -> Any:
        return {"3": "3.1", "4": "3.1.1", "5.0": "5"}.get(str(version), str(version))

    @field_validator("server")
    @classmethod
    def _server_is_an_address(cls, server: object) -> Any:
        if server is None:
            return None
        parts = _address(server)
        if (
            any(char.isspace() for char in reveal(server))
            or parts.scheme not in (*_PLAIN, *_SECURE)
            or not parts.hostname
            or parts.path not in ("", "/")
        ):
            raise ValueError("server must look like 'tcp://host:1883' or 'ssl://host:8883'")
        if parts.username or parts.password:
            raise ValueError("server must not hold a password; use 'username' and 'password'")
        _ = parts.port  # raises ValueError when it is no number
        return server

    @property
    def connection(self) -> str | None:
        return self.connection_selector or (GATEWAY if self.server is None else None)

    @property
    def target_text(self) -> str:
        return self.topic_prefix + reveal(self.topic)

    def faults(self) -> Iterator[str]:
        """The topic is one, and a password has a user."""
        yield from super().faults()
        yield from fault_of(check_topic, self.target_text, "topic")
        if reveal(self.password) and not reveal(self.username):
            yield "'password' needs 'username'"


class MqttSink:
    """A sink that publishes a batch, then waits for the confirmations of the whole batch.

    paho's own thread reads and writes the connection. When a confirmation is missing, the connection is
    dropped, so that nothing of the batch can arrive late and out of order; the next attempt connects anew.
    """

    def __init__(self, settings: MqttSettings, context: SinkContext) -> None:
        self._settings = self._written = settings
        self._context = context
        self._clock: Clock = context.environment.clock
        self._client: Client | None = None
        self._changed = threading.Condition()
        self._connected: ReasonCode | None = None
        self._lost = False
        self._confirmed: dict[int, ReasonCode] = {}

    def open(self) -> None:
        """Connect and wait for the broker's answer."""
        self.close()
        self._settings = connected(self._written, self._context)
        client = self._make_client()
        parts = _address(self._settings.server)
        secure = parts.scheme in _SECURE
        if secure:
            client.tls_set_context(self._settings.tls_context())
            client.tls_insecure_set(self._settings.insecure_skip_verify)
        try:
            assert parts.hostname
            client.connect(parts.hostname, parts.port or (8883 if secure else 1883), self._settings.keepalive)
        except ssl.SSLCertVerificationError as failure:
            raise Fatal(
                f"certificate of the broker is not trusted: {failure.verify_message}; check rootCaPath"
            ) from failure
        except (OSError, ValueError) as failure:
            where = failure_at(parts.geturl(), failure)
            raise Retry(f"broker cannot be reached: {where}") from failure
        send_at_once(client.socket())
        self._client = client
        client.loop_start()
        self._await_connection()

    def close(self) -> None:
        """Disconnect and discard the messages that paho holds; they are sent again."""
        self._drop(gracefully=not self._lost)

    def _drop(self, *, gracefully: bool) -> None:
        """Drop the connection. A broker that no longer answers gets no DISCONNECT, which could block for
        ever."""
        client, self._client = self._client, None
        if client is not None:
            connection: Any = client.socket()
            if gracefully:
                client.disconnect()
            elif connection is not None:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            client.loop_stop()
            if connection is not None:
                connection.close()
        self._connected, self._lost = None, False

    def send(self, messages: Sequence[Message]) -> None:
        """Publish all messages and wait until all are confirmed, in order."""
        for done in range(0, len(messages), PUBLISH_MAX):
            try:
                self._publish(messages[done : done + PUBLISH_MAX])
            except SinkFailure as failure:
                failure.done += done
                raise

    def _publish(self, messages: Sequence[Message]) -> None:
        if self._client is None or self._lost:
            self.open()
        assert self._client
        with self._changed:
            self._confirmed.clear()
        mids: list[int] = []
        hopeless: str | None = None
        for message in messages:
            try:
                info = self._client.publish(
                    message.target, message.payload, self._settings.qos, self._settings.retained
                )
            except ValueError as failure:  # topic or payload beyond the limits of the protocol
                hopeless = f"cannot be published: {failure}"
                break
            mids.append(info.mid)
        self._await_confirmations(mids)
        if hopeless is not None:
            raise Reject(hopeless, done=len(mids))

    def _make_client(self) -> Client:
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion

        versions = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311, "5": mqtt.MQTTv5}
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=reveal(self._settings.clientid),
            protocol=versions[self._settings.protocol_version],
            reconnect_on_failure=False,  # the delivery does the back-off
        )
        client.connect_timeout = self._settings.timeout / 1000
        if username := reveal(self._settings.username):
            client.username_pw_set(username, reveal(self._settings.password) or None)
        # A dropped client may still call back: it is recognized by identity.
        client.on_connect = lambda caller, data, flags, reason, properties: self._on_connect(caller, reason)
        client.on_connect_fail = lambda caller, data: self._on_lost(caller)
        client.on_disconnect = lambda caller, data, flags, reason, properties: self._on_lost(caller)
        client.on_publish = lambda caller, data, mid, reason, properties: self._on_publish(
            caller, mid, reason
        )
        return client

    def _on_connect(self, client: Client, reason: ReasonCode) -> None:
        with self._changed:
            if client is self._client:
                self._connected = reason
                self._changed.notify_all()

    def _on_lost(self, client: Client) -> None:
        with self._changed:
            if client is self._client:
                self._lost = True
                self._changed.notify_all()

    def _on_publish(self, client: Client, mid: int, reason: ReasonCode) -> None:
        with self._changed:
            if client is self._client:
                if (connection := client.socket()) is not None:
                    # or the broker holds back the confirmations after this one
                    acknowledge_at_once(connection)
                self._confirmed[mid] = reason
                self._changed.notify_all()

    def _await_connection(self) -> None:
        self._wait_until(lambda: self._connected is not None)
        reason = self._connected
        if reason is not None and not reason.is_failure:
            return
        self._drop(gracefully=False)
        if reason is None:
            raise Retry(f"broker did not answer within {self._settings.timeout} ms or closed the connection")
        text = f"broker refused the connection: {refusal_of(reason.getName())}"
        raise Retry(text) if reason.getName() in _TRY_LATER else Fatal(text)

    def _await_confirmations(self, mids: list[int]) -> None:
        self._wait_until(lambda: len(self._confirmed) >= len(mids))
        for done, mid in enumerate(mids):
            reason = self._confirmed.get(mid)
            if reason is None:
                lost = self._lost
                self._drop(gracefully=False)
                raise Retry("connection lost" if lost else "broker did not confirm in time", done=done)
            if reason.is_failure:
                self._drop(gracefully=False)  # later messages of the batch will be sent again, in order
                raise self._refusal(reason.getName(), done)

    def _refusal(self, reason: str, done: int) -> Retry | Reject:
        text = f"broker refused the message: {reason}"
        return Retry(text, done=done) if reason in _TRY_LATER else Reject(text, done=done)

    def _wait_until(self, fulfilled: Callable[[], bool]) -> None:
        """Wait for `fulfilled()`, the loss of the connection, or the time limit."""
        until_ms = self._clock.monotonic_ms() + self._settings.timeout
        with self._changed:
            wait_until(self._clock, self._changed, lambda: fulfilled() or self._lost, until_ms)


def _address(server: object) -> SplitResult:
    """The parts of a broker's address; without a scheme it is not encrypted."""
    text = reveal(server)
    return urlsplit(text if "://" in text else f"tcp://{text}")


register_sink("mqtt", MqttSettings, MqttSink)
