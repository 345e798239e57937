"""`enableCache` of mqtt and rest actions: the destination is away, the gateway is killed, and
all arrives in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.integration.daemon.support import STREAM, daemon, publisher
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.broker

RULE = """
rules:
  - id: each
    sql: SELECT n FROM m
    actions: [{{{action}}}]
"""

COUNT = 1_500
"""More than bufferLength and the gateway's own bound (500 rows) hold: without the file
the source would wait."""

SETTINGS = (
    "enableCache: true, bufferLength: 100, memoryCacheThreshold: 100, retryMaxInterval: 200ms, "
    "retryInterval: 50ms"
)
LIMITS = {"PENSTOCK__LIMITS__DELIVERY_ROWS_MAX": "500"}


@contextmanager
def web_server(port: int) -> Iterator[list[int]]:
    """An HTTP server; the numbers that were posted to it, in order."""
    numbers: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            numbers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))[0]["n"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield numbers
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def reader(port: int, numbers: list[int]) -> Iterator[Event]:
    """A reader whose session the broker keeps while it is away; the event is set once it has subscribed."""
    subscribed = Event()

    def on_connect(client: paho.Client, *_: object) -> None:
        client.subscribe("out", qos=1)

    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="reader", clean_session=False)
    client.on_connect = on_connect
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_message = lambda _c, _u, message: numbers.append(json.loads(message.payload)[0]["n"])
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        yield subscribed
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def far_broker(broker: Mosquitto) -> Iterator[list[int]]:
    """A second broker, started again; the numbers that were published to it, in order."""
    numbers: list[int] = []
    broker.start()
    try:
        with reader(broker.port, numbers):
            yield numbers
    finally:
        broker.stop()


def subscribed_broker(folder: Path, port: int) -> Mosquitto:
    """A broker that is away and has the reader's session: what is published before the reader is back
    waits for it."""
    with mosquitto(folder, persistence=True, port=port) as broker, reader(port, []) as subscribed:
        assert subscribed.wait(PATIENCE_S)
    return broker


@pytest.mark.parametrize("sink", ["mqtt", "rest"])
def test_nothing_is_lost_while_the_destination_is_away(sink: str, broker: Mosquitto, tmp_path: Path) -> None:
    port = free_port()
    address = (
        f'server: "tcp://127.0.0.1:{port}", topic: out, qos: 1'
        if sink == "mqtt"
        else f'url: "http://127.0.0.1:{port}/"'
    )
    rule = STREAM + RULE.format(action=f"{sink}: {{{address}, {SETTINGS}}}")
    far = subscribed_broker(tmp_path / "far", port) if sink == "mqtt" else None
    with daemon(tmp_path, broker.url, {"rule.yaml": rule}, **LIMITS) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for number in range(COUNT):
                plant.send("plant/x", {"n": number}, wait=number % 100 == 99)

        def taken() -> bool:
            status = gateway.status()
            return bool(
                status["rules"]["each"]["counters"]["events_in"] == COUNT
                and status["intake"]["unacknowledged"] == 0
            )

        wait_for(taken, "all messages, acknowledged while the destination is away")
        gateway.kill()
        gateway.start()
        with far_broker(far) if far is not None else web_server(port) as numbers:
            wait_for(lambda: len(numbers) >= COUNT, "all results")
            wait_for(lambda: gateway.status()["rules"]["each"]["actions"][0]["queued"] == 0, "an empty file")
            assert numbers == list(range(COUNT))
        assert gateway.stop() == 0
