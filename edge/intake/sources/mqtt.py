"""The MQTT source: stays connected to one broker, or tries to, and hands on what arrives in batches.

    QoS 1, session kept by the broker, acknowledged by hand: a message is the broker's until `acknowledge` was called.
    Broker away: `problem` says why, and it is tried again, ever more slowly up to `reconnect_ms_max`, with jitter.
    Consumer too slow: it calls `pause`; bytes then wait in the socket and the broker, and pings go on.

A token holds the number of its connection. What was not acknowledged when a connection ended comes again on the next
one, under a new token; an acknowledgement that comes too late is dropped and counted.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from edge.clock import Clock
from edge.intake.router import BadTopicFilter, check_filter
from edge.intake.sources.base import BadMessage, ConnectionLost, OnBad, OnBatch
from edge.intake.sources.mqtt_client import BadOptions, MqttOptions, Version
from edge.intake.sources.mqtt_connection import Connection, Counters, Orders, VersionRefused
from edge.journal.record import Session

log = logging.getLogger("penstock.mqtt")

VERSION_ANSWER_MS = 3_000
"""How long a broker may think about CONNECT while we do not know which version it speaks."""

Intake = Literal["auto", "buffered", "stock"]


def backoff_ms(failures: int, low_ms: int, high_ms: int, jitter: float) -> int:
    """How long to wait after so many failures in a row; `jitter` between 0 and 1 takes away up to half of it.

    >>> [backoff_ms(n, 500, 30_000, 0.0) for n in (1, 2, 3, 20)], backoff_ms(1, 500, 30_000, 1.0)
    ([500, 1000, 2000, 30000], 250)
    """
    full = min(high_ms, low_ms * 2 ** min(failures - 1, 32))
    return int(full * (1 - jitter / 2))


class MqttSource:
    """One broker, one session, any number of subscriptions. Implements `edge.intake.sources.base.Source`.

    intake   "auto": the buffered reader where paho's internals are as expected, else paho's own loop
    """

    def __init__(
        self,
        options: MqttOptions,
        clock: Clock,
        rng: random.Random | None = None,
        intake: Intake = "auto",
    ) -> None:
        self.options = options
        self._problem = "not connected yet"
        self._clock = clock
        self._rng = rng or random.Random()
        self._intake = intake
        self._orders = Orders()
        self._counters = Counters()
        self._connection: Connection | None = None
        self._version: Version = "3.1.1" if options.version == "3.1.1" else "5"
        self._version_is_sure = options.version != "auto"
        self._epoch = 0
        self._farewell_ms = 0
        self._granted: dict[str, int] = {}
        self._cut_off: list[int] = []
        self.on_session: Callable[[Session], None] = lambda session: None
        """Told what the broker keeps of this gateway; on the source's thread, in order with the batches."""
        self._retry = threading.Condition()
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
                    f"qos 2 of '{name}' would lose messages when the gateway stops: the broker is told 'received' "
                    "before the message is safe; use qos 1, whose duplicates penstock makes harmless"
                )
        self._orders.wanted = dict(wanted)
        self._orders.wakeup.set()

    @property
    def session_name(self) -> str:
        """What the broker keeps a session for."""
        return f"{self.options.server} {self.options.client_id}"

    def go_on(self, session: Session) -> None:
        """An earlier run left this session with the broker: subscribe only to what is missing. Before `start`."""
        if session.name == self.session_name:
            self._granted = dict(session.granted)

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        """Begin to connect. Does not wait: a broker that is away makes the source degraded, not the gateway fail.

        `on_batch` runs on the source's thread. If it raises, the connection is given up and the messages come again.
        Without `on_bad`, messages whose topic cannot be used are counted and acknowledged.
        """
        assert self._thread is None, "a source is started once"
        self._thread = threading.Thread(
            target=self._run, args=(on_batch, on_bad or self._forget), name="mqtt-source", daemon=True
        )
        self._thread.start()

    def acknowledge(self, tokens: Iterable[int]) -> None:
        self._orders.tokens.extend(tokens)
        if threading.current_thread() is not self._thread:  # on its own thread it looks by itself, after the batch
            self._orders.wakeup.set()

    def pause(self) -> None:
        self._orders.paused = True
        self._orders.wakeup.set()

    def resume(self) -> None:
        self._orders.paused = False
        self._orders.wakeup.set()

    def stop(self, timeout_ms: int) -> bool:
        """Send what was acknowledged, tell "offline", disconnect. The session stays with the broker."""
        self._farewell_ms = timeout_ms
        self._orders.stopping = True
        self._orders.wakeup.set()
        with self._retry:
            self._retry.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_ms / 1000)
        else:
            self._orders.wakeup.close()
        return self._thread is None or not self._thread.is_alive()

    @property
    def problem(self) -> str | None:
        """Why there is no connection; None while there is one."""
        return None if self.connected else self._problem

    @property
    def connected(self) -> bool:
        """Whether the broker has accepted us."""
        connection = self._connection
        return connection is not None and connection.accepted

    @property
    def ready(self) -> bool:
        """Whether the broker has also answered all subscriptions."""
        connection = self._connection
        return connection is not None and connection.subscribed()

    @property
    def refused(self) -> dict[str, str]:
        """Topic filters the broker did not accept as asked, with the reason."""
        connection = self._connection
        return dict(connection.refused) if connection is not None else {}

    @property
    def version(self) -> Version:
        """The version of MQTT spoken, or tried next."""
        return self._version

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

    # The thread.

    def _run(self, on_batch: OnBatch, on_bad: OnBad) -> None:
        """One connection after the other, until the source is to stop."""
        granted = self._granted
        failures = 0
        while not self._orders.stopping:
            began_ms = self._clock.monotonic_ms()
            problem, granted = self._connect_and_serve(on_batch, on_bad, granted)
            if self._orders.stopping:
                break
            # A broker that accepts and hangs up at once must not be asked again at once.
            lasted_ms = self._clock.monotonic_ms() - began_ms
            failures = 1 if lasted_ms > self.options.reconnect_ms_max else failures + 1
            delay_ms = backoff_ms(
                failures, self.options.reconnect_ms_min, self.options.reconnect_ms_max, self._rng.random()
            )
            self._problem = problem
            log.warning(
                "mqtt.disconnected", extra={"server": self.options.server, "reason": problem, "retry_ms": delay_ms}
            )
            with self._retry:
                if not self._orders.stopping:
                    self._clock.wait(self._retry, delay_ms)
        self._problem = "stopped"
        self._orders.wakeup.close()

    def _connect_and_serve(
        self, on_batch: OnBatch, on_bad: OnBad, granted: dict[str, int]
    ) -> tuple[str, dict[str, int]]:
        """Why the connection ended, and the subscriptions that the broker keeps."""
        self._epoch += 1
        connection = Connection(self.options, self._version, self._epoch, self._orders, self._counters, self._clock)
        connection.on_session = self._tell_session
        problem = ""
        try:
            connection.open(self._intake, granted, self._answer_ms())
            self._connection = connection
            connection.serve(on_batch, on_bad)
            connection.farewell(self._farewell_ms)
        except VersionRefused as error:
            problem = str(error)
            self._try_other_version(error.said_so)
        except (ConnectionLost, OSError, ValueError) as error:
            problem = str(error) or type(error).__name__
        except Exception as error:  # the consumer's: whatever it is, the messages must come again
            log.exception("mqtt.consumer_failed")
            problem = f"the batch could not be taken: {error!r}"
        finally:
            self._connection = None
            cut_off = connection.cut_off_id()
            self._cut_off = [] if cut_off is None else [cut_off]
            connection.abandon()
        if not connection.accepted:
            self._counters.connect_failures += 1
            return problem, granted
        self._version_is_sure = True
        return problem, connection.granted

    def _tell_session(self, granted: dict[str, int], is_new: bool) -> None:
        cut_off, self._cut_off = self._cut_off, []
        self.on_session(Session(self.session_name, granted, is_new, cut_off))

    def _answer_ms(self) -> int:
        """Some brokers meet a version they do not know with silence: do not wait long before the other is tried."""
        patience_ms = int(self.options.connect_timeout_s * 1_000)
        return patience_ms if self._version_is_sure else min(patience_ms, VERSION_ANSWER_MS)

    def _try_other_version(self, said_so: bool) -> None:
        """Brokers that know only 3.1.1 say so, hang up or keep silent; one that spoke 5 before has merely gone away."""
        if self.options.version == "auto" and (said_so or not self._version_is_sure):
            self._version = "3.1.1" if self._version == "5" else "5"

    def _forget(self, bad: list[BadMessage]) -> None:
        self.acknowledge(token for _, _, token, _ in bad if token is not None)


__all__ = ["BadOptions", "BadTopicFilter", "MqttOptions", "MqttSource", "backoff_ms"]
