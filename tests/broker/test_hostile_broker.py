"""A broker that breaks the rules: what it sends is told and acknowledged, or ends the
connection, never the source."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from edge.intake.sources.mqtt import readers as mqtt_readers
from tests.broker.conftest import StartSource
from tests.support.waiting import PATIENCE_S, wait_for

CONNACK, SUBACK = b"\x20\x02\x00\x00", b"\x90\x03"


class ScriptedBroker:
    """Speaks just enough MQTT 3.1.1 to be believed, then sends one script per connection,
    and collects PUBACKs."""

    def __init__(self, scripts: list[bytes]) -> None:
        self.scripts = scripts
        self.acknowledged: list[int] = []
        self.connections = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self._server.getsockname()[1]}"

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._open:
            connection.close()
        self._thread.join(PATIENCE_S)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        with suppress(OSError):
            self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        script = self.scripts[min(self.connections, len(self.scripts) - 1)]
        self.connections += 1
        held = b""
        while data := connection.recv(65_536):
            held += data
            while len(held) >= 2 and len(held) >= held[1] + 2:
                packet, held = held[: held[1] + 2], held[held[1] + 2 :]
                if packet[0] == 0x10:
                    connection.sendall(CONNACK)
                elif packet[0] == 0x82:
                    connection.sendall(SUBACK + packet[2:4] + b"\x01" + script)
                elif packet[0] == 0x40:
                    self.acknowledged.append(int.from_bytes(packet[2:4], "big"))
                elif packet[0] == 0xC0:
                    connection.sendall(b"\xd0\x00")
                elif packet[0] == 0xE0:
                    connection.shutdown(socket.SHUT_RDWR)


def publish(topic: bytes, payload: bytes, packet_id: int) -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + packet_id.to_bytes(2, "big") + payload
    low, high = len(body) & 127, len(body) >> 7
    return (bytes([0x32, low | 128, high]) if high else bytes([0x32, low])) + body


@pytest.fixture
def scripted() -> Iterator[list[ScriptedBroker]]:
    brokers: list[ScriptedBroker] = []
    yield brokers
    for broker in brokers:
        broker.close()


def options(reader: str) -> dict[str, object]:
    return {"reader": reader, "version": "3.1.1", "packet_bytes_max": 1_000, "status_prefix": None}


@pytest.mark.parametrize("reader", ["buffered", "stock"])
def test_messages_that_cannot_be_used_are_told_and_acknowledged(
    scripted: list[ScriptedBroker], start_source: StartSource, reader: str
) -> None:
    script = (
        publish(b"t", b"one", 1)
        + publish(b"t\xff", b"bad topic", 2)
        + publish(b"t", b"x" * 5_000, 3)
        + publish(b"t", b"two", 4)
    )
    broker = ScriptedBroker([script])
    scripted.append(broker)
    source, consumer = start_source(broker.url, {"t": 1}, **options(reader))
    consumer.wait(2)
    wait_for(lambda: len(broker.acknowledged) == 4, what="acknowledgements")
    assert sorted(broker.acknowledged) == [1, 2, 3, 4]
    assert consumer.payloads == [b"one", b"two"]
    assert [(topic, payload, reason) for topic, payload, _, reason in consumer.bad] == [
        ("t\\xff", b"bad topic", "topic is not valid UTF-8"),
        ("t", b"", "the packet is longer than the 1000 bytes allowed: 5005"),
    ]
    assert source.stats["bad"] == 2 and source.stats["connects"] == 1


@pytest.mark.parametrize("reader", ["buffered", "stock"])
@pytest.mark.parametrize(
    "rubbish",
    [
        b"\x00\x00",
        b"\xf0\x00",
        b"\x32\x03\x00\x09a",
        b"\x30\xff\xff\xff\xff\xff",
        b"\x90\x00",
        b"\x36\x07\x00\x01tab12",
    ],
    ids=["type 0", "type 15", "topic too long", "endless length", "empty SUBACK", "QoS 3"],
)
def test_rubbish_ends_the_connection_and_the_next_one_works(
    scripted: list[ScriptedBroker], start_source: StartSource, reader: str, rubbish: bytes
) -> None:
    broker = ScriptedBroker([publish(b"t", b"before", 1) + rubbish, publish(b"t", b"after", 1)])
    scripted.append(broker)
    source, consumer = start_source(broker.url, {"t": 1}, ready=False, **options(reader))
    wait_for(lambda: b"after" in consumer.payloads, what="the second connection")
    assert consumer.payloads == [b"before", b"after"]
    assert broker.connections == 2
    assert source.stats["connects"] == 2


@pytest.mark.parametrize("change", ["version", "hook", "packet"])
def test_paho_that_is_not_as_expected_is_read_by_its_own_loop(
    scripted: list[ScriptedBroker], start_source: StartSource, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    if change == "version":
        monkeypatch.setattr(mqtt_readers, "paho_version", "3.0.0")
    elif change == "hook":
        monkeypatch.setitem(mqtt_readers._HOOKS, "_packet_reader_of_tomorrow", dict)
    else:
        monkeypatch.setattr(mqtt_readers, "_IN_PACKET_KEYS", {"command", "body"})
    broker = ScriptedBroker([publish(b"t", b"x", 1)])
    scripted.append(broker)
    source, consumer = start_source(broker.url, {"t": 1}, **options("auto"))
    consumer.wait(1)
    assert source.reader == "stock"
