"""Results on the connection of the source: confirmed in a pause too, and nothing is lost for it, comes in
another order, or is dropped uncounted."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edge.base.poller import Poller
from edge.clock import SystemClock, monotonic_ms
from edge.delivery.mqtt_lines import Lines
from edge.intake.sources.mqtt.source import MqttOptions, MqttSource
from edge.journal.record import Session
from sinks import Environment, MemoryBus, SinkContext
from sinks.builtin.mqtt import MqttSettings
from tests.broker.conftest import Consumer, Publisher, cut_connection
from tests.broker.test_hostile_broker import ScriptedBroker
from tests.support.brokers import Mosquitto
from tests.support.waiting import PATIENCE_MS, wait_for

pytestmark = pytest.mark.broker


class Loop:
    """A loop with one source, turned by the test."""

    def __init__(self, url: str, consumer: Consumer, filters: dict[str, int], **options: Any) -> None:
        self.poller = Poller()
        self.options = MqttOptions(url, "gateway", reconnect_ms_min=20, reconnect_ms_max=200, **options)
        self.source = MqttSource(self.options, SystemClock(), poller=self.poller)
        self.sessions: list[Session] = []
        self.source.attempts.on_session = self.sessions.append
        self.consumer, consumer.source = consumer, self.source
        self.source.set_subscriptions(filters)
        self.source.start(consumer.on_batch, consumer.on_bad)

    def until(self, fulfilled: Callable[[], bool], what: str) -> None:
        def turned() -> bool:
            self.poller.wait(5)
            return fulfilled()

        wait_for(turned, what)

    def idle(self, seconds: int) -> int:
        """Turn for so long; how often that was."""
        turns, until_ms = 0, monotonic_ms() + seconds * 1_000
        while monotonic_ms() < until_ms:
            turns += 1
            self.poller.wait(1_000)
        return turns

    def confirmed(self, count: int, qos: int = 1) -> None:
        """Publish so many messages, and turn until the broker has all of them."""
        done: list[str | None] = []
        for number in range(count):
            self.source.results.publishing.publish("out", b"%d" % number, qos, False, done.append)
        self.until(lambda: len(done) == count and not self.source.results.publishing.is_busy, "confirmations")
        assert done == [None] * count

    def reads(self, count: int) -> None:
        """Publish until so many messages have come between the confirmations."""
        while self.source.stats["messages"] < count:
            self.confirmed(1)


@contextmanager
def loop(
    url: str, filters: dict[str, int], consumer: Consumer | None = None, **options: Any
) -> Iterator[Loop]:
    made = Loop(url, consumer or Consumer(), filters, **options)
    try:
        made.until(lambda: made.source.ready, "subscription")
        yield made
    finally:
        made.source.stop(PATIENCE_MS)
        made.poller.close()


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_confirmations_are_read_in_a_pause_and_messages_held(
    broker: Mosquitto, publish: Publisher, qos: int, version: str
) -> None:
    with loop(broker.url, {"in": qos}, version=version) as made:
        made.source.pause()
        publish.publish_many("in", numbered(0, 300))
        made.confirmed(3_000)
        publish.publish_many("in", numbered(300, 400))
        made.reads(400)
        assert made.consumer.payloads == []
        publish.publish_many("in", numbered(400, 500))
        made.source.resume()
        made.until(lambda: len(made.consumer.messages) >= 500, "the messages")
        assert made.consumer.payloads == numbered(0, 500)
        assert (made.source.stats["dropped"], made.source.stats["connects"]) == (0, 1)
        if qos:
            made.until(lambda: made.source.stats["acknowledged"] == 500, "acknowledgements")


def test_a_pause_without_results_is_as_before(broker: Mosquitto, publish: Publisher) -> None:
    """Nothing is read, and pings go on."""
    with loop(broker.url, {"in": 1}, keepalive_s=1) as made:
        made.confirmed(1)
        made.source.pause()
        made.confirmed(1)
        publish.publish_many("in", numbered(0, 10))
        assert made.idle(4) < 200, "it sleeps though bytes wait in the socket"
        assert (made.source.stats["messages"], made.source.stats["connects"]) == (0, 1)
        made.confirmed(1)
        assert made.idle(4) < 200, "and so it does with messages held"
        assert made.source.stats["connects"] == 1
        made.source.resume()
        made.until(lambda: made.consumer.payloads == numbered(0, 10), "the messages")


def test_what_has_no_room_at_qos_0_is_dropped_and_counted(broker: Mosquitto, publish: Publisher) -> None:
    with loop(broker.url, {"in": 0}, held_bytes_max=10_000) as made:
        made.source.pause()
        publish.publish_many("in", numbered(0, 100))
        made.reads(100)
        made.source.resume()
        made.until(lambda: bool(made.consumer.messages), "the messages")
        kept = len(made.consumer.messages)
        assert 10 < kept < 60 and made.consumer.payloads == numbered(0, kept)
        assert made.source.stats["dropped"] == 100 - kept
        publish.publish("in", b"100", 0)
        made.until(lambda: made.consumer.payloads[-1] == b"100", "what comes then")


def test_what_has_no_room_at_qos_1_comes_again_in_order(broker: Mosquitto, publish: Publisher) -> None:
    with loop(broker.url, {"in": 1}, held_bytes_max=10_000) as made:
        made.source.pause()
        publish.publish_many("in", numbered(0, 100))
        made.reads(100)
        made.source.resume()
        made.until(lambda: b"99" in made.consumer.payloads, "the messages")
        unique = [*dict.fromkeys(made.consumer.payloads)]
        assert unique == numbered(0, 100)
        held = made.consumer.payloads.index(b"0", 1)
        assert made.sessions[-1].cut_off == [*range(held + 1, 101)], "ids of messages that are new"
        assert (made.source.stats["connects"], made.source.stats["dropped"]) == (2, 0)
        made.until(lambda: made.source.stats["acknowledged"] >= 100, "acknowledgements")


def test_a_session_that_is_not_kept_counts_what_had_no_room(broker: Mosquitto, publish: Publisher) -> None:
    with loop(broker.url, {"in": 1}, held_bytes_max=1_000, session_expiry_s=0) as made:
        made.source.pause()
        publish.publish_many("in", numbered(0, 100))
        made.reads(100)
        made.source.resume()
        made.until(lambda: bool(made.consumer.messages), "the messages")
        assert made.source.stats["dropped"] == 100 - len(made.consumer.messages) > 0
        assert made.source.stats["connects"] == 1


def test_a_connection_that_breaks_in_a_pause_hands_on_what_it_holds(
    broker: Mosquitto, publish: Publisher
) -> None:
    with loop(broker.url, {"in": 1, "fleeting": 0}, Consumer(acknowledging=False)) as made:
        made.source.pause()
        publish.publish_many("in", numbered(0, 50))
        publish.publish_many("fleeting", numbered(50, 60), 0)
        made.reads(60)
        assert made.consumer.payloads == []
        cut_connection(made.source)
        done: list[str | None] = []
        made.source.results.publishing.publish("out", b"x", 1, False, done.append)
        made.until(lambda: len(made.consumer.messages) >= 60, "what was held")
        assert made.consumer.payloads == numbered(0, 60)
        made.until(lambda: done == [None], "the confirmation, on the next connection")
        made.consumer.acknowledging = True
        made.source.resume()
        made.until(lambda: len(made.consumer.messages) >= 110, "repetitions")
        assert made.consumer.payloads[60:] == numbered(0, 50)
        made.until(lambda: made.source.stats["acknowledged"] == 50, "acknowledgements")


def test_an_open_message_keeps_its_packet_id_over_connections() -> None:
    """The broker takes a message, hangs up, and takes it again."""
    broker = ClosingBroker(times=1)
    try:
        with loop(broker.url, {"in": 1}, version="3.1.1", status_prefix=None) as made:
            made.confirmed(1)
            assert [packet[0] for packet in broker.published] == [0x32, 0x3A]
            assert broker.published[0][1:] == broker.published[1][1:], "all but the mark of a repetition"
    finally:
        broker.close()


class ClosingBroker(ScriptedBroker):
    """Closes the connection of a client that publishes, so many times at least, and of the first client in
    any case, as brokers do with what they do not allow; later clients it confirms."""

    def __init__(self, times: int, client: bytes = b"") -> None:
        self.published: list[bytes] = []
        self._times, self._client = times, client
        super().__init__([b""])

    def _take(self, connection: socket.socket) -> None:
        threading.Thread(target=self._quietly, args=(connection,), daemon=True).start()

    def _quietly(self, connection: socket.socket) -> None:
        self.connections += 1
        held, is_barred = b"", False
        try:
            while data := connection.recv(65_536):
                held += data
                while len(held) >= 2 and len(held) >= held[1] + 2:
                    packet, held = held[: held[1] + 2], held[held[1] + 2 :]
                    if packet[0] == 0x10:
                        is_barred = bool(self._client) and self._client in packet
                        connection.sendall(b"\x20\x02\x00\x00")
                    elif packet[0] == 0x82:
                        connection.sendall(b"\x90\x03" + packet[2:4] + b"\x01")
                    elif packet[0] & 0xF0 == 0x30:
                        self.published.append(packet)
                        if is_barred or len(self.published) <= self._times:
                            connection.shutdown(socket.SHUT_RDWR)
                            return
                        if packet[0] & 2:
                            connection.sendall(b"\x40\x02" + packet[4 + packet[3] :][:2])
                    elif packet[0] == 0xC0:
                        connection.sendall(b"\xd0\x00")
                    elif packet[0] == 0xE0:
                        connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def context(server: str) -> SinkContext:
    """What an action without `server` sees of the gateway."""
    letters: Any = None
    environment = Environment(
        SystemClock(),
        random.Random(1),
        Path(),
        letters,
        MemoryBus(),
        connections={"mqtt": {"server": server}},
    )
    return SinkContext("hot", "mqtt", environment)


@pytest.mark.parametrize("qos", [0, 1])
def test_results_that_end_the_connection_move_to_one_of_their_own(qos: int) -> None:
    """The broker hangs up on the gateway's client id when it publishes: that must not hold up the intake."""
    broker = ClosingBroker(times=0, client=b"gateway")
    try:
        with loop(broker.url, {"in": 1}, version="3.1.1", status_prefix=None) as made:
            lines = Lines(
                made.poller, SystemClock(), random.Random(1), {"": made.options}, lambda: {"": made.source}
            )
            line = lines.take(MqttSettings.model_validate({"topic": "out"}), context(broker.url))
            done: list[str | None] = []
            alone = made.source.results.publishing

            def publish() -> bool:
                if not qos or not done:
                    line.begin().publish("out", b"x", qos, False, done.append)
                return made.source.results.publishing is not alone

            made.until(publish, "the move")
            made.until(lambda: made.source.ready and line.problem is None, "both connections")
            connects = made.source.stats["connects"]
            line.begin().publish("out", b"last", qos, False, done.append)
            made.until(lambda: broker.published[-1].endswith(b"last"), "results on the other connection")
            assert made.source.stats["connects"] == connects
            lines.give_back(line)
    finally:
        broker.close()


def test_results_that_came_before_the_streams_move_to_their_connection(broker: Mosquitto) -> None:
    sources: dict[str, MqttSource] = {}
    with loop(broker.url, {"in": 1, "out": 1}, version="3.1.1", status_prefix=None) as made:
        lines = Lines(made.poller, SystemClock(), random.Random(1), {"": made.options}, lambda: sources)
        line = lines.take(MqttSettings.model_validate({"topic": "out"}), context(broker.url))
        done: list[str | None] = []
        before = (broker.folder / "mosquitto.log").read_text()

        def publish(number: int) -> None:
            line.begin().publish("out", b"%d" % number, 1, False, done.append)

        publish(0)
        sources[""] = made.source
        publish(1)  # the first is on its way on a connection of its own, so this one goes behind it
        made.until(lambda: len(done) == 2, "confirmations")
        publish(2)
        made.until(lambda: len(made.consumer.messages) == 3, "the results")
        assert made.consumer.payloads == numbered(0, 3)
        log = (broker.folder / "mosquitto.log").read_text().removeprefix(before)
        assert log.count("New client connected") == 1
        wait_for(lambda: "disconnected" in (broker.folder / "mosquitto.log").read_text().removeprefix(before))
        assert line.begin() is made.source.results.publishing
        lines.give_back(line)
