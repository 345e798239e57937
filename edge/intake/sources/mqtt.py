"""The MQTT source: stays connected to one broker, or tries to, and hands on the messages in batches.

The gateway's loop serves it: one thread from the socket to the rule. Without a loop it has one of its own.
Only opening a connection, which may block, has a thread for as long as it takes.

    QoS 1, session kept by the broker, acknowledged by hand: a message is the broker's until `acknowledge` was
    called. Broker away: `problem` gives the reason; it retries, ever more slowly up to `reconnect_ms_max`,
    with jitter. Consumer too slow: it calls `pause`; bytes then wait in the socket and the broker, and pings
    go on.

A token holds the number of its connection. What was not acknowledged when a connection ended comes again on
the next one, under a new token; an acknowledgement that comes too late is dropped and counted.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Literal

from edge.base.poller import Poller
from edge.clock import Clock
from edge.config.mqtt_options import BadOptions, MqttOptions, Version
from edge.intake.router import BadTopicFilter, check_filter
from edge.intake.sources.base import ConnectionLost, OnBad, OnBatch
from edge.intake.sources.mqtt_attempts import Opening, Pause, VersionChoice, backoff_ms
from edge.intake.sources.mqtt_connection import (
    Connection,
    Counters,
    Orders,
    VersionRefused,
    with_advice,
)
from edge.intake.sources.mqtt_presence import Presence
from edge.intake.sources.publishing import Publishing
from edge.journal.record import Session

log = logging.getLogger("penstock.mqtt")


Intake = Literal["auto", "buffered", "stock"]


class MqttSource:
    """One broker, one session, any number of subscriptions. Implements `edge.intake.sources.base.Source`.

    intake   "auto": the buffered reader where paho's internals are as expected, else paho's own loop
    poller   of the loop that serves the source, on whose thread `start` and `stop` are
             called; None: it has its own
    publishing   the messages that go out on the connection; needs the buffered reader
    """

    def __init__(
        self,
        options: MqttOptions,
        clock: Clock,
        rng: random.Random | None = None,
        intake: Intake = "auto",
        poller: Poller | None = None,
        publishing: Publishing | None = None,
    ) -> None:
        self.options = options
        self._problem = "not connected yet"
        self._clock = clock
        self._rng = rng or random.Random()
        self._intake = intake
        self.presence = Presence(options.status_topic)
        self._orders = Orders(self.presence)
        self._counters = Counters()
        self._connection: Connection | None = None
        self._versions = VersionChoice(options)
        self._pause = Pause(options.reconnect_ms_min, options.reconnect_ms_max)
        self._epoch = 0
        self._granted: dict[str, int] = {}
        self._cut_off: list[int] = []
        self.on_session: Callable[[Session], None] = lambda session: None
        """Called with the broker's session; on the source's thread, in order with the batches."""
        self._publishing = publishing
        self._is_alone = poller is None
        self._poller = poller or Poller()
        if publishing is not None:
            publishing.on_waiting = partial(self._poller.changed, self)
        self._farewell_ms = 0
        self._thread: threading.Thread | None = None
        self._opening: Opening | None = None
        self._on_batch: OnBatch = lambda batch: None
        self._on_bad: OnBad = lambda bad: self.acknowledge(
            token for _, _, token, _ in bad if token is not None
        )
        if options.insecure_skip_verify:
            log.warning("mqtt.tls_insecure", extra={"server": options.server})

    def set_subscriptions(self, wanted: Mapping[str, int]) -> None:
        """The topic filters to be subscribed from now on, with their QoS; may be called at any time.

        Raises `BadTopicFilter` or `BadOptions`, and then changes nothing.
        """
        for name, qos in wanted.items():
            check_filter(name)
            if qos not in (0, 1, 2):
                raise BadOptions(f"qos of '{name}' is {qos}; MQTT has 0, 1 and 2")
            if qos == 2 and self.options.no_loss:
                raise BadOptions(
                    f"qos 2 of '{name}' would lose messages when the gateway stops: "
                    "the broker is told 'received' before the message is safe; "
                    "use qos 1, whose duplicates penstock makes harmless"
                )
        self._orders.wanted = dict(wanted)
        self._poller.changed(self)

    @property
    def session_name(self) -> str:
        """The name of the session that the broker keeps."""
        return f"{self.options.server} {self.options.client_id}"

    def go_on(self, session: Session) -> None:
        """An earlier run left this session with the broker: subscribe only to what is
        missing. Before `start`."""
        if session.name == self.session_name:
            self._granted = dict(session.granted)

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        """Begin to connect. Does not wait: a broker that is away makes the source
        degraded, not the gateway fail.

        `on_batch` runs on the thread of the loop. If it raises, the connection is given up and the messages
        come again. Without `on_bad`, messages whose topic cannot be used are counted and acknowledged.
        """
        self._on_batch = on_batch
        if on_bad is not None:
            self._on_bad = on_bad
        self._poller.add(self)
        if self._is_alone:
            arguments = (self, self._orders, self._poller)
            self._thread = threading.Thread(
                target=serve_alone, args=arguments, name="mqtt-source", daemon=True
            )
            self._thread.start()

    def acknowledge(self, tokens: Iterable[int]) -> None:
        self._orders.tokens.extend(tokens)
        self._poller.changed(self)

    def pause(self) -> None:
        self._orders.paused = True
        self._poller.changed(self)

    def resume(self) -> None:
        self._orders.paused = False
        self._poller.changed(self)

    def stop(self, timeout_ms: int) -> bool:
        """Send the acknowledgements, publish "offline", disconnect. The session stays with the broker.

        Called on the loop's thread where a loop serves the source.
        """
        self._farewell_ms = timeout_ms
        self._orders.stopping = True
        if self._thread is not None:
            self._poller.changed(self)
            self._thread.join(timeout_ms / 1000)
            return not self._thread.is_alive()
        self.end()
        return True

    @property
    def problem(self) -> str | None:
        """Why there is no connection; None while there is one."""
        return None if self.connected else self._problem

    @property
    def connected(self) -> bool:
        """True if the broker has accepted the connection."""
        connection = self._connection
        return connection is not None and connection.accepted

    @property
    def ready(self) -> bool:
        """True if the broker has also answered all subscriptions."""
        connection = self._connection
        return connection is not None and connection.subscribed()

    @property
    def refused(self) -> dict[str, str]:
        """Topic filters that the broker did not accept as requested, with the reason."""
        connection = self._connection
        return dict(connection.subscriptions.refused) if connection is not None else {}

    @property
    def version(self) -> Version:
        """The version of MQTT spoken, or tried next."""
        return self._versions.version

    @property
    def intake(self) -> str:
        """The reader in use: "buffered" or "stock"; empty while there is no connection."""
        connection = self._connection
        return connection.intake if connection is not None else ""

    @property
    def stats(self) -> dict[str, int]:
        counters = self._counters
        return {
            "connected": int(self.connected),
            "paused": int(self._orders.paused),
            "epoch": self._epoch,
            "subscriptions": len(self._orders.wanted),
            "subscriptions_refused": len(self.refused),
            **{name: getattr(counters, name) for name in Counters.__slots__},
        }

    # The loop.

    def interest(self) -> tuple[int, int]:
        return (-1, 0) if self._connection is None else self._connection.interest()

    def due_in_ms(self) -> int | None:
        if self._connection is not None:
            return self._connection.due_in_ms()
        if self._opening is not None:
            return 0 if self._opening.is_over else None  # its thread wakes the loop
        return max(0, self._pause.until_ms - self._clock.monotonic_ms())

    def prompt(self) -> bool:
        return self._connection is not None and self._connection.prompt()

    def turn(self, is_ready: bool) -> None:
        """Go on with the connection there is, or with making one."""
        if self._orders.stopping:
            return
        if self._connection is not None:
            self._serve(self._connection, is_ready)
        elif self._opening is not None:
            opening = self._opening
            if not opening.is_over:
                return
            self._opening = None
            if opening.failure is None:
                self._connection = opening.connection
            else:
                self._counters.connect_failures += 1
                self._lost(opening.failure)
        elif self._clock.monotonic_ms() >= self._pause.until_ms:
            self._open()

    def _open(self) -> None:
        """Begin a connection."""
        self._epoch += 1
        self._pause.began_ms = self._clock.monotonic_ms()
        version = self._versions.version
        connection = Connection(self.options, version, self._epoch, self._orders, self._counters, self._clock)

        def tell(granted: dict[str, int], is_new: bool) -> None:
            cut_off, self._cut_off = self._cut_off, []
            self.on_session(Session(self.session_name, granted, is_new, cut_off))

        connection.on_session = tell
        connection.publishing = self._publishing
        open_it = partial(connection.open, self._intake, self._granted, self._versions.answer_ms)
        self._opening = Opening(connection, open_it, partial(self._poller.changed, self))

    def _serve(self, connection: Connection, is_ready: bool) -> None:
        try:
            connection.turn(is_ready, self._on_batch, self._on_bad)
        except Exception as error:  # noqa: BLE001 - the consumer's as well: the messages must come again
            self._connection = None
            cut_off = connection.cut_off_id()
            self._cut_off = [] if cut_off is None else [cut_off]
            connection.abandon()
            if connection.accepted:
                error = with_advice(error, connection, self._pause.failures)
                self._versions.is_sure = True
                self._granted = connection.subscriptions.granted
            else:
                self._counters.connect_failures += 1
            self._lost(error)

    def _lost(self, error: Exception) -> None:
        """Note why there is no connection, and when to try again."""
        if isinstance(error, VersionRefused):
            self._versions.refused(error.said_so)
        if isinstance(error, (ConnectionLost, OSError, ValueError)):
            self._problem = str(error) or type(error).__name__
        else:
            log.error("mqtt.consumer_failed", exc_info=error)
            self._problem = f"the batch could not be taken: {error!r}"
        delay_ms = self._pause.after_loss(self._clock.monotonic_ms(), self._rng.random())
        server = self.options.server
        log.warning(
            "mqtt.disconnected", extra={"server": server, "reason": self._problem, "retry_ms": delay_ms}
        )

    def end(self) -> None:
        """Say goodbye on the connection there is."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError, ValueError, ConnectionLost):
                connection.farewell(self._farewell_ms)
            connection.abandon()
        if self._opening is not None:
            self._opening.abandon()
        self._problem = "stopped"


def serve_alone(source: MqttSource, orders: Orders, poller: Poller) -> None:
    """The loop of a source that has one of its own."""
    while not orders.stopping:
        poller.wait(None)
    source.end()
    poller.close()


__all__ = ["BadOptions", "BadTopicFilter", "MqttOptions", "MqttSource", "backoff_ms"]
