"""The MQTT source: keeps a connection to one broker and hands its messages on in batches.

The gateway's loop serves it: one thread from the socket to the rule. Without a loop it has one of its own.
Only opening a connection, which may block, has a thread for as long as it takes.

    QoS 1 and a persistent session: the broker keeps a message until `acknowledge` is called for it.
    The broker is away: `problem` gives the reason; the source retries at growing intervals up to
    `reconnect_ms_max`, with jitter.
    The consumer is too slow: it calls `pause`; bytes then wait in the socket and at the broker, and pings
    go on. Where something is published, confirmations are read on, and messages between them held.

A token holds the number of its connection. What was not acknowledged when a connection ended comes again on
the next one, under a new token; an acknowledgement that comes too late is dropped and counted.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Literal

from edge.base.poller import Interest, Poller
from edge.clock import Clock
from edge.config.mqtt_options import BadOptions, MqttOptions, Version
from edge.intake.router import BadTopicFilter, check_filter
from edge.intake.sources.base import OnBad, OnBatch
from edge.intake.sources.mqtt.attempts import SHORT_LIVES, Attempts
from edge.intake.sources.mqtt.connection import Connection, Orders
from edge.intake.sources.mqtt.handover import Consumer, Counters
from edge.intake.sources.mqtt.link import Link
from edge.intake.sources.mqtt.presence import Presence
from edge.intake.sources.mqtt.publishing import Publishing

log = logging.getLogger("penstock.mqtt")


ReaderChoice = Literal["auto", "buffered", "stock"]

WINDOW_LEAST = 100
"""Confirmations come between messages, which are read about once per `latencyMs`: where the broker takes
fewer unconfirmed messages, results would wait."""

CONFIRM_MS = 5_000
"""The time limit for confirmations of what is published on the connection of a source."""


class SharedPublishing:
    """The messages published on the connections of a source, as long as these suit them.

    on_unsuited   called with the reason where they should have another connection, which takes them over:
                  `SHORT_LIVES` connections in a row did not last and something was published on each, or the
                  broker takes fewer than `WINDOW_LEAST` unconfirmed messages
    """

    def __init__(self, publishing: Publishing | None, on_waiting: Callable[[], None]) -> None:
        """`on_waiting` is called where a message waits and none did before."""
        self.on_unsuited: Callable[[Publishing, str], None] | None = None
        self.publishing = publishing or Publishing(CONFIRM_MS)
        self.publishing.on_waiting = self._on_waiting = on_waiting
        self._short_lives = 0

    def suited(self, window: int) -> Publishing:
        """The messages to publish on a new connection, whose broker takes `window` unconfirmed ones."""
        if window < WINDOW_LEAST:
            self._give_away(f"the broker takes {window} unconfirmed messages at a time on it")
        return self.publishing

    def lost(self, *, is_short: bool) -> None:
        """A connection was lost; `is_short`: it did not last."""
        if self.publishing.has_sent:
            self._short_lives = self._short_lives + 1 if is_short else 0
        if self._short_lives >= SHORT_LIVES:
            self._short_lives = 0
            self._give_away("the connection did not last while results went out")

    def _give_away(self, why: str) -> None:
        if self.on_unsuited is not None:
            given, self.publishing = self.publishing, Publishing(CONFIRM_MS)
            self.publishing.on_waiting = self._on_waiting
            self.on_unsuited(given, why)


class MqttSource:
    """One broker, one session, any number of subscriptions. Implements `edge.intake.sources.base.Source`.

    reader   "auto": the buffered reader where paho's internals are as expected, else paho's own loop
    poller   of the loop that serves the source, on whose thread `start` and `stop` are
             called; None: it has its own
    publishing   the messages that go out on the connection, where the reader is the buffered one
    """

    def __init__(
        self,
        options: MqttOptions,
        clock: Clock,
        rng: random.Random | None = None,
        reader: ReaderChoice = "auto",
        poller: Poller | None = None,
        publishing: Publishing | None = None,
    ) -> None:
        self.options = options
        self.presence = Presence(options.status_topic)
        self._orders = Orders(self.presence)
        self._consumer = Consumer(
            on_bad=lambda bad: self.acknowledge(token for _, _, token, _ in bad if token is not None)
        )
        self._counters = Counters()
        self._is_alone = poller is None
        self._poller = poller or Poller()
        self.results = SharedPublishing(publishing, self._changed)

        def made(version: Version, epoch: int) -> Connection:
            publishing = self.results.publishing
            link = Link(options, version, epoch)
            link.wanted_reader = reader
            connection = Connection(link, self._orders, self._consumer, self._counters, clock, publishing)
            connection.on_window = self.results.suited
            return connection

        changed = partial(self._poller.changed, self)
        self.attempts = Attempts(options, clock, rng or random.Random(), made, changed)
        self._farewell_ms = 0
        self._thread: threading.Thread | None = None
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
        self._changed()

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        """Begin to connect. Does not wait: a broker that is away makes the source
        degraded, not the gateway fail.

        `on_batch` runs on the thread of the loop. If it raises, the connection is given up and the messages
        come again. Without `on_bad`, messages whose topic cannot be used are counted and acknowledged.
        """
        self._consumer.on_batch = on_batch
        if on_bad is not None:
            self._consumer.on_bad = on_bad
        self._poller.add(self)
        if self._is_alone:
            arguments = (self, self._orders, self._poller)
            self._thread = threading.Thread(
                target=serve_alone, args=arguments, name="mqtt-source", daemon=True
            )
            self._thread.start()

    def acknowledge(self, tokens: Iterable[int]) -> None:
        self._orders.tokens.extend(tokens)
        self._changed()

    def pause(self) -> None:
        self._consumer.is_paused = True
        self._changed()

    def resume(self) -> None:
        self._consumer.is_paused = False
        self._changed()

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
        return None if self.connected else self.attempts.problem

    @property
    def connected(self) -> bool:
        """True if the broker has accepted the connection."""
        connection = self.attempts.connection
        return connection is not None and connection.accepted

    @property
    def ready(self) -> bool:
        """True if the broker has also answered all subscriptions."""
        connection = self.attempts.connection
        return connection is not None and connection.subscribed()

    @property
    def refused(self) -> dict[str, str]:
        """Topic filters that the broker did not accept as requested, with the reason."""
        connection = self.attempts.connection
        return dict(connection.subscriptions.refused) if connection is not None else {}

    @property
    def version(self) -> Version:
        """The version of MQTT spoken, or tried next."""
        return self.attempts.versions.version

    @property
    def reader(self) -> str:
        """The reader in use: "buffered" or "stock"; empty while there is no connection."""
        connection = self.attempts.connection
        return connection.link.reader_kind if connection is not None else ""

    @property
    def stats(self) -> dict[str, int]:
        counters = self._counters
        return {
            "connected": int(self.connected),
            "paused": int(self._consumer.is_paused),
            "epoch": self.attempts.epoch,
            "subscriptions": len(self._orders.wanted),
            "subscriptions_refused": len(self.refused),
            "connect_failures": self.attempts.failures,
            **{name: getattr(counters, name) for name in Counters.__slots__},
        }

    # The loop.

    def settle(self) -> Interest:
        return -1, 0, self.attempts.due_ms()

    def prompt(self) -> bool:
        return False

    def turn(self, is_ready: bool) -> bool:
        """Go on with making a connection; the loop serves it once it is made."""
        if self._orders.stopping:
            return False
        self.attempts.turn()
        connection = self.attempts.connection
        if connection is not None:
            connection.on_lost = self._lost
            self._poller.add(connection)
        return True

    def _lost(self, error: Exception) -> None:
        """The connection has failed: make another."""
        connection = self.attempts.connection
        assert connection is not None, "only a connection has turns"
        self._poller.remove(connection)
        is_short = self.attempts.lost(error)
        self._poller.changed(self)
        if connection.accepted:
            self.results.lost(is_short=is_short)

    def _changed(self) -> None:
        """Have the loop handle a change that another thread requested."""
        self._poller.changed(self.attempts.connection or self)

    def end(self) -> None:
        """Disconnect in the orderly way, if there is a connection."""
        if self.attempts.connection is not None:
            self._poller.remove(self.attempts.connection)
        self.attempts.end(self._farewell_ms)


def serve_alone(source: MqttSource, orders: Orders, poller: Poller) -> None:
    """The loop of a source that has one of its own."""
    while not orders.stopping:
        poller.wait(None)
    source.end()
    poller.close()


__all__ = ["BadOptions", "BadTopicFilter", "MqttOptions", "MqttSource"]
