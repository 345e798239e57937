"""Attempts to connect: the thread that opens a connection, the version of MQTT to try, pauses between
attempts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from edge.config.mqtt_options import MqttOptions, Version
from edge.intake.sources.mqtt_connection import Connection

VERSION_ANSWER_MS = 3_000
"""The time limit for the answer to CONNECT while the broker's version of MQTT is not known."""


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
            self.connection.abandon()

    def _run(self) -> None:
        try:
            self._open_it()
        except Exception as error:  # noqa: BLE001 - the loop reports it
            self.connection.abandon()
            self.failure = error.with_traceback(None)  # which would keep paho's socket
        self.is_over = True
        if self._is_abandoned:
            self.connection.abandon()
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


def backoff_ms(failures: int, low_ms: int, high_ms: int, jitter: float) -> int:
    """The pause after so many failures in a row; `jitter` between 0 and 1 takes away up to half of it.

    >>> [backoff_ms(n, 500, 30_000, 0.0) for n in (1, 2, 3, 20)], backoff_ms(1, 500, 30_000, 1.0)
    ([500, 1000, 2000, 30000], 250)
    """
    full = min(high_ms, low_ms * 2 ** min(failures - 1, 32))
    return int(full * (1 - jitter / 2))


@dataclass(slots=True)
class Pause:
    """When to try again: ever later while connections do not last."""

    low_ms: int
    high_ms: int
    began_ms: int = 0
    until_ms: int = 0
    failures: int = 0

    def after_loss(self, now_ms: int, jitter: float) -> int:
        """Note the end of a connection, or of the attempt at one; returns the pause before the next.

        A broker that accepts and hangs up at once must not be tried again at once.
        """
        lasted_ms = now_ms - self.began_ms
        self.failures = 1 if lasted_ms > self.high_ms else self.failures + 1
        delay_ms = backoff_ms(self.failures, self.low_ms, self.high_ms, jitter)
        self.until_ms = now_ms + delay_ms
        return delay_ms
