"""What every source promises (`edge.plugins.source_contract`), shown for those that come
along, with real senders."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from edge.clock import SystemClock
from edge.intake.sources.http_push_server import PushServers
from edge.intake.sources.mqtt.source import MqttOptions, MqttSource
from edge.intake.sources.registry import SourceEnvironment, settings_of, source_kind
from edge.plugins.source_contract import Plant, SourceContract
from sql.catalog.streams import Stream
from tests.broker.conftest import Publisher
from tests.support.brokers import Mosquitto
from tests.support.streams import catalog_of
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.broker


def declared(options: str) -> Stream:
    catalog = catalog_of(f"CREATE STREAM s () WITH ({options})")
    return catalog.streams["s"]


def environment(folder: Path, push: PushServers | None = None) -> SourceEnvironment:
    (folder / "input").mkdir(exist_ok=True)
    servers = push or PushServers(None, None, 1_000, 10)
    return SourceEnvironment(SystemClock(), folder / "input", folder / "positions", servers)


def made(folder: Path, options: str, push: PushServers | None = None) -> Any:
    """A new source of a stream with these options."""
    stream = declared(options)
    kind = source_kind(str(stream.options["TYPE"]))
    assert kind is not None
    return kind.make(stream, settings_of(kind, stream), environment(folder, push))


class TestFile(SourceContract):
    def plant(self, folder: Path) -> Plant:
        path = environment(folder).input_dir / "rows.jsonl"
        path.touch()

        def send(numbers: Sequence[int]) -> None:
            with path.open("a") as file:
                file.writelines(f'{{"n": {number}}}\n' for number in numbers)

        extra = json.dumps({"fileType": "lines", "follow": True}).replace('"', '\\"')
        options = f'TYPE="file", DATASOURCE="rows.jsonl", EXTRA="{extra}"'
        return Plant(lambda: made(folder, options), send, rewinds=True)


class TestHttpPush(SourceContract):
    def plant(self, folder: Path) -> Plant:
        push = PushServers(("127.0.0.1", 0), None, 1_000, 10)

        def send_one(number: int) -> None:
            while True:
                if push.address is None:
                    return
                with contextlib.closing(
                    http.client.HTTPConnection(*push.address, timeout=PATIENCE_S)
                ) as connection:
                    connection.request("POST", "/in", json.dumps({"n": number}))
                    status = connection.getresponse().status
                if status != 503:  # held back: send it again
                    assert status == 200
                    return

        def send_all(numbers: Sequence[int]) -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):  # the source has ended
                for number in numbers:
                    send_one(number)

        def send(numbers: Sequence[int]) -> None:
            threading.Thread(target=send_all, args=(numbers,), daemon=True).start()

        return Plant(lambda: made(folder, 'TYPE="httppush", DATASOURCE="/in"', push), send)


class TestHttpPull(SourceContract):
    def plant(self, folder: Path) -> Plant:
        waiting: list[int] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"n": waiting.pop(0)}).encode() if waiting else b""
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                """Be quiet."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/out"
        options = f'TYPE="httppull", DATASOURCE="{address}", EXTRA="{{\\"interval\\": 1}}"'

        def close() -> None:
            server.shutdown()
            server.server_close()

        return Plant(lambda: made(folder, options), waiting.extend, close=close)


class TestMqtt(SourceContract):
    def plant(self, folder: Path) -> Plant:
        broker = Mosquitto(folder / "broker").start()
        publisher = Publisher(broker.port)

        def make() -> MqttSource:
            options = MqttOptions(broker.url, client_id="gateway", reconnect_ms_min=20, reconnect_ms_max=200)
            source = MqttSource(options, SystemClock(), random.Random(1))
            source.set_subscriptions({"plant/x": 1})
            self.source = source
            return source

        def send(numbers: Sequence[int]) -> None:
            wait_for(lambda: self.source.ready, "subscription")
            publisher.publish_many("plant/x", [b'{"n": %d}' % number for number in numbers])

        def close() -> None:
            publisher.close()
            broker.stop()

        return Plant(make, send, rewinds=True, close=close)
