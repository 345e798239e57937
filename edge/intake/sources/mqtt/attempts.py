"""Attempts to connect: the thread that opens a connection, the version of MQTT to try, pauses between
attempts."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from edge.base.poller import AT_ONCE
from edge.clock import Clock
from edge.config.mqtt_options import MqttOptions, Version
from edge.intake.sources.base import ConnectionLost
from edge.intake.sources.mqtt.client import port_advice
from edge.intake.sources.mqtt.connection import Connection
from edge.intake.sources.mqtt.link import taken_over
from edge.journal.record import Session
from rules.problems import in_words
from sinks.backoff import Backoff

log = logging.getLogger("penstock.mqtt")

VERSION_ANSWER_MS = 3_000
"""The time limit for the answer to CONNECT while the broker's version of MQTT is not known."""

UNKNOWN = (
    "the broker keeps a session of this client id that this data directory does not know, such as that of "
    "another directory; its subscriptions may bring messages twice, or messages that no stream reads: to end "
    "it, stop the gateway and connect once with this client id, without -c (mosquitto_sub -i ID -t x -W 1)"
)


class VersionRefused(ConnectionLost):
    """The broker refused the version of MQTT that was offered (`said_so`), or closed without a reason."""

    def __init__(self, text: str, said_so: bool) -> None:
        super().__init__(text)
        self.said_so = said_so


class Opening:
    """A connection that a thread opens: names, TCP and TLS may block. `on_end` is called on that thread."""

    def __init__(
        self, connection: Connection, open_it: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        self.connection = connection
        self.is_over = False
        self.failure: Exception | None = None
        self._is_abandoned = False
        self._open_it, self._on_end = open_it, on_end
        threading.Thread(target=self._run, name="mqtt-connect", daemon=True).start()

    def abandon(self) -> None:
        """Give up the connection: it is not needed any more."""
        self._is_abandoned = True
        if self.is_over:
            self.connection.link.abandon()

    def _run(self) -> None:
        try:
            self._open_it()
        except Exception as error:  # noqa: BLE001 - the loop reports it
            self.connection.link.abandon()
            self.failure = error.with_traceback(None)  # which would keep paho's socket
        self.is_over = True
        if self._is_abandoned:
            self.connection.link.abandon()
        else:
            self._on_end()


class VersionChoice:
    """The version of MQTT to offer: 5 first where nothing is configured, and what the broker spoke before."""

    def __init__(self, options: MqttOptions) -> None:
        self.version: Version = "3.1.1" if options.version == "3.1.1" else "5"
        self.is_sure = options.version != "auto"
        self._is_open = options.version == "auto"
        self._patience_ms = int(options.connect_timeout_s * 1_000)

    @property
    def answer_ms(self) -> int:
        """The time to wait for an answer: short while the version is not known, for some brokers
        do not answer an unknown version at all."""
        return self._patience_ms if self.is_sure else min(self._patience_ms, VERSION_ANSWER_MS)

    def refused(self, said_so: bool) -> None:
        """Try the other version: brokers that know only 3.1.1 refuse 5, hang up or do not answer; one that
        spoke 5 before has merely gone away."""
        if self._is_open and (said_so or not self.is_sure):
            self.version = "3.1.1" if self.version == "5" else "5"


@dataclass(slots=True)
class Pause:
    """When to try again: ever later while connections do not last."""

    backoff: Backoff
    rng: random.Random
    began_ms: int = 0
    until_ms: int = 0
    failures: int = 0

    def after_loss(self, now_ms: int) -> int:
        """Note the end of a connection, or of the attempt at one; returns the pause before the next.

        A broker that accepts and hangs up at once must not be tried again at once.
        """
        lasted_ms = now_ms - self.began_ms
        self.failures = 1 if lasted_ms > self.backoff.max_ms else self.failures + 1
        delay_ms = self.backoff.wait_ms(self.failures, self.rng)
        self.until_ms = now_ms + delay_ms
        return delay_ms


class Attempts:
    """Makes one connection after the other. For the loop's thread only.

    connection   the one there is, accepted by the broker or not yet; None between two
    problem      why there is none
    epoch        the number of the last one
    versions     the version of MQTT to offer
    """

    def __init__(
        self,
        options: MqttOptions,
        clock: Clock,
        rng: random.Random,
        made: Callable[[Version, int], Connection],
        on_end: Callable[[], None],
    ) -> None:
        """`made` makes a connection of a version, with its number, to be opened. `on_end` is called on the
        thread that opens a connection, when it has ended."""
        self.on_session: Callable[[Session], None] = lambda session: None
        """Called with the broker's session; in order with the batches."""
        self.connection: Connection | None = None
        self.problem = "not connected yet"
        self.epoch = 0
        self.versions = VersionChoice(options)
        self._options, self._clock = options, clock
        self._made, self._on_end = made, on_end
        self._session_name = f"{options.server} {options.client_id}"
        self._pause = Pause(Backoff(options.reconnect_ms_min, options.reconnect_ms_max), rng)
        self._opening: Opening | None = None
        self._granted: dict[str, int] = {}
        self._has_session = False
        """True if the broker's session is that of this gateway, or of an earlier run of it."""
        self._cut_off: list[int] = []
        self.failures = 0
        """Connections that did not come to be."""

    def go_on(self, session: Session) -> None:
        """An earlier run left this session with the broker: subscribe only to what is missing. Before the
        first turn."""
        if session.name == self._session_name:
            self._has_session = True
            self._granted = dict(session.granted)

    def due_ms(self) -> int | None:
        """When `turn` should be called, on the monotonic clock; None while there is a connection."""
        if self.connection is not None:
            return None
        if self._opening is not None:
            return AT_ONCE if self._opening.is_over else None  # its thread wakes the loop
        return self._pause.until_ms

    def turn(self) -> None:
        """Go on with making a connection."""
        opening = self._opening
        if opening is None:
            if self._clock.monotonic_ms() >= self._pause.until_ms:
                self._open()
        elif opening.is_over:
            self._opening = None
            if opening.failure is None:
                self.connection = opening.connection
            else:
                self.failures += 1
                self._note(opening.failure)

    def _open(self) -> None:
        """Begin a connection."""
        self.epoch += 1
        self._pause.began_ms = self._clock.monotonic_ms()
        connection = self._made(self.versions.version, self.epoch)
        connection.on_session = self._tell
        open_it = partial(connection.open, self._granted, self.versions.answer_ms)
        self._opening = Opening(connection, open_it, self._on_end)

    def _tell(self, granted: dict[str, int], is_new: bool) -> None:
        if not (is_new or self._has_session):
            log.warning("mqtt.session_unknown", extra={"session": self._session_name, "note": UNKNOWN})
        self._has_session = True
        cut_off, self._cut_off = self._cut_off, []
        self.on_session(Session(self._session_name, granted, is_new, cut_off))

    def lost(self, error: Exception) -> bool:
        """Give up the connection, which failed in its turn; whether it did not last."""
        connection, self.connection = self.connection, None
        assert connection is not None, "only a connection has turns"
        self._cut_off = connection.cut_off_ids()
        connection.link.abandon()
        if isinstance(error, ConnectionLost):
            error = explained(error, connection)
        if connection.accepted:
            error = with_advice(error, connection, self._pause.failures)
            self.versions.is_sure = True
            self._granted = connection.subscriptions.granted
        else:
            self.failures += 1
        self._note(error)
        return self._pause.failures > 1

    def _note(self, error: Exception) -> None:
        """Note why there is no connection, and when to try again."""
        if isinstance(error, VersionRefused):
            self.versions.refused(error.said_so)
        if isinstance(error, (ConnectionLost, OSError, ValueError)):
            is_answered = isinstance(error, ConnectionLost) and not isinstance(error, VersionRefused)
            self.problem = in_words(error) + ("" if is_answered else port_advice(error, self._options.server))
        else:
            log.error("mqtt.consumer_failed", exc_info=error)
            self.problem = f"the batch could not be taken: {error!r}"
        delay_ms = self._pause.after_loss(self._clock.monotonic_ms())
        server = self._options.server
        log.warning(
            "mqtt.disconnected", extra={"server": server, "reason": self.problem, "retry_ms": delay_ms}
        )

    def end(self, timeout_ms: int) -> None:
        """Say goodbye on the connection there is, and make no other."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with suppress(OSError, ValueError, ConnectionLost):
                connection.farewell(timeout_ms)
            connection.link.abandon()
        if self._opening is not None:
            self._opening.abandon()
        self.problem = "stopped"


def explained(lost: ConnectionLost, connection: Connection) -> ConnectionLost:
    """The end of a connection with the reason that the broker, or paho, gave."""
    text = connection.link.refusal or connection.link.lost_because or str(lost)
    said_so = "protocol version" in connection.link.refusal.lower()
    if said_so or not (connection.accepted or connection.link.refusal):
        return VersionRefused(text, said_so)
    return ConnectionLost(text)


SHORT_LIVES = 3
"""Connections in a row that were lost soon after the broker had accepted them, from which on another client
with the same id is suspected."""


def with_advice(error: Exception, connection: Connection, failures: int) -> Exception:
    """The error with the likely cause. Brokers seldom say that another client took the session: they accept,
    and soon hang up, `failures` times in a row before this one."""
    if connection.link.lost_because or not isinstance(error, ConnectionLost) or failures < SHORT_LIVES:
        return error
    rival = taken_over(connection.link.options.client_id)
    return ConnectionLost(f"{error}; it is the {failures + 1}th short connection in a row: perhaps {rival}")
