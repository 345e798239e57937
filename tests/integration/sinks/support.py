"""Around the sinks: a gateway with real parts, an HTTP server that answers as told, an MQTT subscriber."""

from __future__ import annotations

import http.server
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.clock import SystemClock
from edge.delivery.dead_letters import DeadLetters
from sinks import CachedDelivery, Delivery, Environment, MemoryBus, build_action
from tests.support.waiting import PATIENCE_MS, PATIENCE_S, wait_for


class Gateway:
    """What the daemon hands to sinks, with real clock and real dead letters; collects receipts."""

    def __init__(self, folder: Path) -> None:
        self.clock = SystemClock()
        self.letters = DeadLetters(folder / "letters")
        self.memory = MemoryBus()
        self.receipts: list[tuple[Any, str]] = []
        self.environment = Environment(
            self.clock, random.Random(3), folder / "data", self.letters, self.memory, self._on_done
        )
        self.deliveries: list[Delivery | CachedDelivery] = []

    def _on_done(self, token: Any, outcome: str) -> None:
        self.receipts.append((token, outcome))

    def action(self, name: str, settings: dict[str, Any]) -> Delivery | CachedDelivery:
        """A delivery that retries fast and is closed with the gateway."""
        fast = {"retryInterval": 20, "retryMaxInterval": 100}
        delivery = build_action(name, fast | settings, rule_id="hot", environment=self.environment)
        self.deliveries.append(delivery)
        return delivery

    def await_receipts(self, count: int) -> list[tuple[Any, str]]:
        """The receipts, as soon as there are `count` of them."""
        wait_for(lambda: len(self.receipts) >= count)
        return list(self.receipts)

    def within(self, milliseconds: int = PATIENCE_MS) -> int:
        """A deadline for `Delivery.close`."""
        return self.clock.monotonic_ms() + milliseconds

    def dead_letters(self) -> str:
        """The text of the dead letter file; empty when there is none."""
        return self.letters.path.read_text() if self.letters.path.exists() else ""

    def close(self) -> None:
        """Close every delivery and the dead letters."""
        for delivery in self.deliveries:
            delivery.close(self.within(500))
        self.letters.close()


@dataclass
class Request:
    """One request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: tuple[str, int]


@dataclass
class HttpPeer:
    """A server on a free port. `answers` holds (status, headers, body, delay in seconds) for the next
    requests; then it says 200."""

    answers: list[tuple[int, dict[str, str], bytes, float]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    close_after_each: bool = False
    server: http.server.ThreadingHTTPServer | None = None
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        assert self.server
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(
        self, status: int, headers: dict[str, str] | None = None, body: bytes = b"", delay_s: float = 0
    ) -> None:
        """Queue one answer."""
        self.answers.append((status, headers or {}, body, delay_s))

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[HttpPeer]:
        """The server, while the block runs."""
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.server.daemon_threads = True
        thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.released.set()
            self.server.shutdown()
            self.server.server_close()
            thread.join()


def _handler(peer: HttpPeer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            peer.requests.append(Request(self.command, self.path, headers, body, self.client_address))
            status, extra, text, delay_s = peer.answers.pop(0) if peer.answers else (200, {}, b"", 0)
            if delay_s:
                peer.released.wait(delay_s)
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **extra}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)
            except OSError:
                self.close_connection = True  # the client did not wait
            if peer.close_after_each:
                self.close_connection = True

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET = do_HEAD = _serve

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    return Handler


class Listener:
    """A plain paho subscriber that keeps what it receives as (topic, payload, retained)."""

    def __init__(self, port: int, topic_filter: str, qos: int = 1) -> None:
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion

        self.messages: list[tuple[str, bytes, bool]] = []
        self._ready = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda client, data, flags, reason, properties: client.subscribe(
            topic_filter, qos
        )
        self._client.on_subscribe = lambda client, data, mid, reasons, properties: self._ready.set()
        self._client.on_message = lambda client, data, message: self.messages.append(
            (message.topic, bytes(message.payload), message.retain)
        )
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert self._ready.wait(PATIENCE_S)

    def payloads(self) -> list[bytes]:
        """What has arrived so far."""
        return [payload for _, payload, _ in self.messages]

    def close(self) -> None:
        """Disconnect."""
        connection: Any = self._client.socket()
        self._client.disconnect()
        self._client.loop_stop()
        if connection is not None:
            connection.close()
