"""A short visit to a broker, for commands: connect without a session, read the messages, publish, leave.

Nothing of the gateway is touched: the visit has a client id of the broker's choice and leaves nothing behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from edge.config.mqtt_options import MqttOptions, Version
from edge.intake.sources.mqtt.client import connect, hung_up, make_client, port_advice, subscribe
from rules.problems import in_words
from sinks.base import refusal_of
from sql.record import replace

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

ANSWER_S = 5.0
"""The time limit for each answer of the broker."""

SAMPLES_MAX = 1_000
"""Messages kept of a visit."""


class VisitFailed(Exception):
    """The broker cannot be reached, refuses, or does not answer; the text gives the reason."""


class Visit:
    """A connection to a broker; a context manager. Raises VisitFailed.

    `messages` are (topic, payload, retained) of what was subscribed to.
    """

    def __init__(self, options: MqttOptions) -> None:
        self._options = replace(options, client_id="", session_expiry_s=0, status_prefix=None)
        self._changed = threading.Condition()
        self._answer: Any = None
        self._has_ended = False
        self._granted: dict[int, list[Any]] = {}
        self.messages: list[tuple[str, bytes, bool]] = []
        self.version: Version = "5"
        self._client = self._connected()

    def __enter__(self) -> Visit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        _leave(self._client)

    def subscribe(self, filters: list[str]) -> dict[str, str]:
        """Subscribe; the filters that the broker refuses, with its reason."""
        mid = subscribe(self._client, [(name, 0) for name in filters], self.version)
        self._wait(lambda: mid in self._granted, "did not answer the subscription")
        reasons = zip(filters, self._granted[mid], strict=True)
        return {name: str(reason) for name, reason in reasons if reason.is_failure}

    def wait(self, seconds: float, enough: int) -> None:
        """Wait until `enough` messages have come, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.messages) >= enough, seconds)

    def publish(self, topic: str, payload: bytes) -> None:
        """Publish, and wait until the broker has it."""
        try:
            told = self._client.publish(topic, payload, 1)
            told.wait_for_publish(ANSWER_S)
        except (ValueError, RuntimeError) as error:
            raise VisitFailed(f"'{topic}' cannot be published: {error}") from error
        if not told.is_published():
            raise VisitFailed(f"the broker did not confirm '{topic}' within {ANSWER_S:g} s")

    # --- connecting -----------------------------------------------------------------------------------------

    def _connected(self) -> Client:
        versions: tuple[Version, ...] = (
            ("5", "3.1.1") if self._options.version == "auto" else (self._options.version,)
        )
        failure = VisitFailed("no version of MQTT to try")
        for version in versions:
            self.version, self._answer, self._has_ended = version, None, False
            try:
                return self._open(version)
            except VisitFailed as failed:
                failure = failed
        raise failure

    def _open(self, version: Version) -> Client:
        client = make_client(self._options, version)
        client.on_connect = lambda _, __, ___, reason, ____: self._set_answer(reason)
        client.on_disconnect = lambda *_: self._end()
        client.on_subscribe = lambda _, __, mid, reasons, ___: self._set_granted(mid, reasons)
        client.on_message = lambda _, __, message: self._take(message)
        server = self._options.server
        try:
            connect(client, self._options, version)
        except (OSError, ValueError) as error:
            why = in_words(error) + port_advice(error, server)
            raise VisitFailed(f"{server} cannot be reached: {why}") from error
        client.loop_start()
        try:
            self._wait(self._is_settled, f"{server} did not answer within {ANSWER_S:g} s")
            if self._answer is None:
                raise VisitFailed(f"{server}: {hung_up(server)}")
            if self._answer.is_failure:
                raise VisitFailed(f"{server} refused the connection: {refusal_of(str(self._answer))}")
        except VisitFailed:
            _leave(client)
            raise
        return client

    def _wait(self, fulfilled: Callable[[], bool], failure: str) -> None:
        with self._changed:
            if not self._changed.wait_for(fulfilled, ANSWER_S):
                raise VisitFailed(failure)

    def _set_answer(self, reason: object) -> None:
        with self._changed:
            self._answer = reason
            self._changed.notify_all()

    def _is_settled(self) -> bool:
        return self._answer is not None or self._has_ended

    def _end(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _set_granted(self, mid: int, reasons: list[Any]) -> None:
        with self._changed:
            self._granted[mid] = reasons
            self._changed.notify_all()

    def _take(self, message: MQTTMessage) -> None:
        with self._changed:
            if len(self.messages) < SAMPLES_MAX:
                self.messages.append((message.topic, bytes(message.payload), bool(message.retain)))
            self._changed.notify_all()


def _leave(client: Client) -> None:
    """Say goodbye and close the socket, which paho's thread may leave open where it ends first."""
    connection: Any = client.socket()
    client.disconnect()
    client.loop_stop()
    if connection is not None:
        connection.close()
